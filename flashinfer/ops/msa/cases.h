// SPDX-License-Identifier: Apache-2.0
// The case tables of the family (cases.cc).
#pragma once
#include <span>

#include "flashinfer/op/op.h"

namespace flashinfer::ops::msa {
std::span<const op::Case> score_cases();
std::span<const op::Case> score_fp4_cases();
std::span<const op::Case> select_cases();
std::span<const op::Case> attention_cases();
std::span<const op::Case> decode_cases();
}  // namespace flashinfer::ops::msa
