// SPDX-License-Identifier: Apache-2.0
// The case tables of the family (cases.cc).
#pragma once
#include <span>

#include "flashinfer/op/op.h"

namespace flashinfer::ops::moe {
std::span<const op::Case> routing_cases();
std::span<const op::Case> deepseek_cases();
std::span<const op::Case> fused_cases();
std::span<const op::Case> trtllm_bf16_cases();
std::span<const op::Case> trtllm_bf16_routed_cases();
std::span<const op::Case> trtllm_fp8_per_tensor_scale_cases();
std::span<const op::Case> trtllm_fp8_per_tensor_scale_routed_cases();
std::span<const op::Case> trtllm_fp8_per_channel_scale_cases();
std::span<const op::Case> trtllm_fp8_per_channel_scale_routed_cases();
std::span<const op::Case> trtllm_fp8_block_scale_cases();
std::span<const op::Case> trtllm_fp8_block_scale_routed_cases();
std::span<const op::Case> trtllm_fp4_block_scale_cases();
std::span<const op::Case> trtllm_fp4_block_scale_routed_cases();
std::span<const op::Case> trtllm_mxint4_block_scale_cases();
std::span<const op::Case> trtllm_mxint4_block_scale_routed_cases();
}  // namespace flashinfer::ops::moe
