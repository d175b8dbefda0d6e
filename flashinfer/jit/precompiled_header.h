// SPDX-License-Identifier: Apache-2.0
// The system headers of CPU kernels, parsed once for a compiler and its flags: <immintrin.h> is two thirds of the time
// that g++ 12 takes for a small kernel (rmsnorm: 0.29 s, 0.11 s with it). The kernel's code is the same with and
// without.
#pragma once
#include <string>
#include <vector>

#include "flashinfer/jit/toolchain.h"

#pragma GCC visibility push(default)

namespace flashinfer::jit {

/// Folders of precompiled headers in the folder of a target begin with this.
inline constexpr const char* kPrecompiledHeaderPrefix = ".pch-";

/// The compiler options that make kernels for `target` use the precompiled header in the cache for `flags`, those of
/// the kernel or of its guarded form. It is made (0.6 s, 28 MB) when this process compiles its second kernel with these
/// flags, so that a single kernel does not wait for it. Empty for GPUs, before that, with a compiler cache in front of
/// the compiler, under sanitizers (their code differs), and where it cannot be made.
std::vector<std::string> precompiled_header_options(Target target, const Toolchain& toolchain, const Flags& flags);
/// Forgets how many kernels this process compiled (tests).
void forget_precompiled_headers();

}  // namespace flashinfer::jit

#pragma GCC visibility pop
