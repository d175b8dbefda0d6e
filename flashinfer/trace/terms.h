// SPDX-License-Identifier: Apache-2.0
// What names of axes, and of inputs that a plan sets, mean.
#pragma once
#include <string>
#include <string_view>

namespace flashinfer::trace {

/// Empty for a name that says it itself.
std::string axis_meaning(std::string_view name);
std::string plan_meaning(std::string_view key);

}  // namespace flashinfer::trace
