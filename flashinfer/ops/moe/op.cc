// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/moe/op.h"

#include "flashinfer/ops/moe/ops.h"

namespace flashinfer::ops::moe {
namespace {
constexpr const op::Op* kOps[] = {
    &routing_op,     &deepseek_op,   &hash_op,         &lora_op,           &lora_shrink_op, &lora_expand_op,
    &gen_routing_op, &fused_op,      &moe_gemm_fp8_op, &moe_gemm_mxfp8_op, &workspace_op,   &trtllm_ops[0],
    &trtllm_ops[1],  &trtllm_ops[2], &trtllm_ops[3],   &trtllm_ops[4],     &trtllm_ops[5],  &trtllm_ops[6],
    &trtllm_ops[7],  &trtllm_ops[8], &trtllm_ops[9],   &trtllm_ops[10],    &trtllm_ops[11]};
}  // namespace
extern const std::span<const op::Op* const> all;
constinit const std::span<const op::Op* const> all = kOps;
}  // namespace flashinfer::ops::moe
