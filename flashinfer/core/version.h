// SPDX-License-Identifier: Apache-2.0
// Version and build of this library: for the banner, the metadata of a recording, `show-config` and the JIT's key.
#pragma once

#pragma GCC visibility push(default)

namespace flashinfer::build {

const char* version();          // "0.1.0"
const char* commit();           // git commit, 12 digits, or "unknown"
const char* compiler();         // "GCC 12.2.0", "Clang 19.1.7"
const char* build_type();       // "Release", "Debug"
const char* sanitizer_flags();  // "-fsanitize=address,undefined ..." or ""; JIT artifacts must be built with them too
/// CMAKE_INSTALL_PREFIX of a static library, which lies in programs anywhere; "" for a shared one, whose own place
/// tells.
const char* static_prefix();
/// The folder of flashinfer/ (sources and kernel headers) and the build folder, at build time; an installed library may
/// find neither.
const char* source_root();
const char* build_root();

}  // namespace flashinfer::build

#pragma GCC visibility pop
