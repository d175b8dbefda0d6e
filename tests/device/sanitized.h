// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "flashinfer/core/version.h"

namespace flashinfer {

/// Built with a sanitizer: the emulator is then three to six times slower, and what kernels do was checked by the plain
/// build.
inline bool sanitized() { return *build::sanitizer_flags() != '\0'; }

}  // namespace flashinfer
