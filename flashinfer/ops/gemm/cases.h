// SPDX-License-Identifier: Apache-2.0
// The case tables of the family (cases.cc).
#pragma once
#include <span>

#include "flashinfer/op/op.h"

namespace flashinfer::ops::gemm {
std::span<const op::Case> mm_bf16_cases();
std::span<const op::Case> bmm_bf16_cases();
std::span<const op::Case> bmm_fp8_cases();
std::span<const op::Case> prepare_mm_weights_cases();
}  // namespace flashinfer::ops::gemm
