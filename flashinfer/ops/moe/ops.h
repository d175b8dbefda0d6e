// SPDX-License-Identifier: Apache-2.0
// The family's ops.
#pragma once
#include "flashinfer/op/op.h"

namespace flashinfer::ops::moe {
extern const op::Op routing_op, deepseek_op;             // routing.cc
extern const op::Op hash_op;                             // hash.cc
extern const op::Op lora_op;                             // lora.cc
extern const op::Op lora_shrink_op, lora_expand_op;      // lora_steps.cc
extern const op::Op gen_routing_op;                      // gen_routing.cc
extern const op::Op fused_op;                            // fused.cc
extern const op::Op trtllm_ops[12];                      // trtllm.cc
extern const op::Op moe_gemm_fp8_op, moe_gemm_mxfp8_op;  // moe_gemm.cc
extern const op::Op workspace_op;                        // workspace.cc
}  // namespace flashinfer::ops::moe
