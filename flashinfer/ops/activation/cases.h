// SPDX-License-Identifier: Apache-2.0
// The case tables of the family (cases.cc).
#pragma once
#include <span>

#include "flashinfer/op/op.h"

namespace flashinfer::ops::activation {
std::span<const op::Case> silu_cases();
std::span<const op::Case> gelu_cases();
std::span<const op::Case> gelu_tanh_cases();
}  // namespace flashinfer::ops::activation
