// SPDX-License-Identifier: Apache-2.0
// Facts about the machine and this build, shared by show-config and collect-env.
#pragma once
#include <string>

namespace flashinfer::cli {

std::string cpu_model();
/// "native, x86-64-v4, x86-64-v3, portable": the targets whose kernels this CPU runs.
std::string runnable_targets();
/// The C++ compiler for kernels, or why there is none.
std::string kernel_compiler();

}  // namespace flashinfer::cli
