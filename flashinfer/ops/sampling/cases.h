// SPDX-License-Identifier: Apache-2.0
// The case tables of the family (cases.cc).
#pragma once
#include <span>

#include "flashinfer/op/op.h"

namespace flashinfer::ops::sampling {
std::span<const op::Case> softmax_cases();
std::span<const op::Case> sampling_cases();
std::span<const op::Case> sampling_from_logits_cases();
std::span<const op::Case> top_k_sampling_cases();
std::span<const op::Case> top_p_sampling_cases();
std::span<const op::Case> min_p_sampling_cases();
std::span<const op::Case> top_k_top_p_cases();
std::span<const op::Case> top_k_top_p_logits_cases();
std::span<const op::Case> top_p_renorm_cases();
std::span<const op::Case> top_k_renorm_cases();
std::span<const op::Case> top_k_mask_cases();
std::span<const op::Case> chain_cases();
}  // namespace flashinfer::ops::sampling
