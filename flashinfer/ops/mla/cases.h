// SPDX-License-Identifier: Apache-2.0
// The case tables of the family (cases.cc).
#pragma once
#include <span>

#include "flashinfer/op/op.h"

namespace flashinfer::ops::mla {
std::span<const op::Case> run_cases();
std::span<const op::Case> append_cases();
std::span<const op::Case> concat_cases();
std::span<const op::Case> concat_quant_cases();
std::span<const op::Case> dense_cases();
std::span<const op::Case> xqa_cases();
}  // namespace flashinfer::ops::mla
