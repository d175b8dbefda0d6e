// SPDX-License-Identifier: Apache-2.0
// The case tables of the family (cases.cc).
#pragma once
#include <span>

#include "flashinfer/op/op.h"

namespace flashinfer::ops::sampling {
std::span<const op::Case> softmax_cases();
std::span<const op::Case> sampling_cases();
std::span<const op::Case> top_k_top_p_cases();
}  // namespace flashinfer::ops::sampling
