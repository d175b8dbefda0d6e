// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/version.h"

#define FI_TEXT_(x) #x
#define FI_TEXT(x) FI_TEXT_(x)

namespace flashinfer::build {

const char* version() { return FI_VERSION; }
const char* build_type() { return FI_BUILD_TYPE; }
const char* sanitizer_flags() { return FI_SANITIZER_FLAGS; }
const char* static_prefix() { return FI_STATIC_PREFIX; }
const char* source_root() { return FI_SOURCE_ROOT; }
const char* build_root() { return FI_BUILD_ROOT; }
const char* compiler() {
#if defined(__clang__)
  return "Clang " FI_TEXT(__clang_major__) "." FI_TEXT(__clang_minor__) "." FI_TEXT(__clang_patchlevel__);
#else
  return "GCC " FI_TEXT(__GNUC__) "." FI_TEXT(__GNUC_MINOR__) "." FI_TEXT(__GNUC_PATCHLEVEL__);
#endif
}

}  // namespace flashinfer::build
