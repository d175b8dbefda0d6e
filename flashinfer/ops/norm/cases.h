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
// quant_cases.cc
std::span<const op::Case> rmsnorm_quant_cases();
std::span<const op::Case> fused_add_quant_cases();
std::span<const op::Case> layernorm_quant_cases();
std::span<const op::Case> fp8_block_cases();
std::span<const op::Case> rmsnorm_fp4_cases();
std::span<const op::Case> add_rmsnorm_fp4_cases();
std::span<const op::Case> rmsnorm_silu_cases();
// diffusion_cases.cc
std::span<const op::Case> dit_gamma_cases();
std::span<const op::Case> dit_gate_cases();
std::span<const op::Case> dit_scale_cases();
std::span<const op::Case> qk_norm_rope_cases();
}  // namespace flashinfer::ops::norm
