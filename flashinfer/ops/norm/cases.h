// SPDX-License-Identifier: Apache-2.0
// The case tables of the family (cases.cc).
#pragma once
#include <span>

#include "flashinfer/op/op.h"

namespace flashinfer::ops::norm {
std::span<const op::Case> rmsnorm_cases();
std::span<const op::Case> gemma_rmsnorm_cases();
std::span<const op::Case> fused_add_rmsnorm_cases();
std::span<const op::Case> gemma_fused_add_rmsnorm_cases();
std::span<const op::Case> layernorm_cases();
}  // namespace flashinfer::ops::norm
