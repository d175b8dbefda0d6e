// SPDX-License-Identifier: Apache-2.0
// The case tables of the family (cases.cc).
#pragma once
#include <span>

#include "flashinfer/op/op.h"

namespace flashinfer::ops::sparse {
std::span<const op::Case> block_cases();
std::span<const op::Case> variable_cases();
std::span<const op::Case> block_forward_cases();
std::span<const op::Case> variable_forward_cases();
std::span<const op::Case> convert_cases();
}  // namespace flashinfer::ops::sparse
