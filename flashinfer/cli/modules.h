// SPDX-License-Identifier: Apache-2.0
// Shared by the commands about compiled kernels.
#pragma once
#include <string>
#include <vector>

#include "flashinfer/jit/modules.h"

namespace flashinfer::cli {

/// The kernels of the ops' case tables (those that `aot` compiles) and all others on disk.
std::vector<jit::ModuleStatus> all_modules();
/// "norm.rmsnorm{dtype=bfloat16}", followed by the target when it is not the selected one.
std::string shown_name(const jit::ModuleStatus& m);
/// Local time, "2026-11-21 10:16:06".
std::string time_text(int64_t unix_seconds);

}  // namespace flashinfer::cli
