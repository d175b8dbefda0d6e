// SPDX-License-Identifier: Apache-2.0
// The family's ops that live outside op.cc.
#pragma once
#include "flashinfer/op/op.h"

namespace flashinfer::ops::norm {
extern const op::Op rmsnorm_quant_op, fused_add_quant_op, layernorm_quant_op, fp8_block_op;  // quant.cc
extern const op::Op rmsnorm_fp4_op, add_rmsnorm_fp4_op, rmsnorm_silu_op;                     // fp4.cc
extern const op::Op sigmoid_gate_op, gated_residual_op, gated_next_op;                       // gated.cc
extern const op::Op dit_gamma_op, dit_gate_op, dit_scale_op, qk_norm_rope_op;                // diffusion.cc
}  // namespace flashinfer::ops::norm
