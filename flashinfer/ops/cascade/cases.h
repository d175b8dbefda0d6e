// SPDX-License-Identifier: Apache-2.0
// The case tables of the family (cases.cc).
#pragma once
#include <span>

#include "flashinfer/op/op.h"

namespace flashinfer::ops::cascade {
std::span<const op::Case> merge_state_cases();
std::span<const op::Case> merge_state_in_place_cases();
std::span<const op::Case> merge_states_cases();
std::span<const op::Case> multi_level_cases();
std::span<const op::Case> shared_decode_cases();
std::span<const op::Case> shared_prefill_cases();
}  // namespace flashinfer::ops::cascade
