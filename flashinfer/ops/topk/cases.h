// SPDX-License-Identifier: Apache-2.0
// The case tables of the family (cases.cc).
#pragma once
#include <span>

#include "flashinfer/op/op.h"

namespace flashinfer::ops::topk {
std::span<const op::Case> top_k_cases();
std::span<const op::Case> page_table_cases();
std::span<const op::Case> ragged_cases();
std::span<const op::Case> varlen_cases();
}  // namespace flashinfer::ops::topk
