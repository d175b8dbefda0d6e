// SPDX-License-Identifier: Apache-2.0
// The case tables of the family (cases.cc).
#pragma once
#include <span>

#include "flashinfer/op/op.h"

namespace flashinfer::ops::moe {
std::span<const op::Case> routing_cases();
std::span<const op::Case> deepseek_cases();
std::span<const op::Case> fused_cases();
}  // namespace flashinfer::ops::moe
