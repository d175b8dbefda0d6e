// SPDX-License-Identifier: Apache-2.0
// The case tables of the family, one for each op.
#pragma once
#include <span>

#include "flashinfer/op/op.h"

namespace flashinfer::ops::linear_attention {
std::span<const op::Case> selective_state_update_cases();  // mamba/cases.cc
}  // namespace flashinfer::ops::linear_attention
