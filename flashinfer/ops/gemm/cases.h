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
// cases_scaled.cc
std::span<const op::Case> mm_fp8_cases();
std::span<const op::Case> mm_mxfp8_cases();
std::span<const op::Case> bmm_mxfp8_cases();
std::span<const op::Case> mm_fp4_cases();
std::span<const op::Case> groupwise_cases();
std::span<const op::Case> blockscaled_cases();
std::span<const op::Case> prepare_quantized_cases();
// cases_gguf.cc
std::span<const op::Case> mm_gguf_cases();
std::span<const op::Case> prepare_gguf_weights_cases();
std::span<const op::Case> gguf_dequantize_cases();
// cases_router.cc
std::span<const op::Case> mm_M1_16_K6144_N256_cases();
std::span<const op::Case> mm_M1_16_K7168_N128_cases();
std::span<const op::Case> mm_M1_16_K7168_N256_cases();
std::span<const op::Case> mm_M1_16_K7168_N256_bf16_cases();
std::span<const op::Case> mm_M1_16_K7168_N384_cases();
std::span<const op::Case> mm_M1_16_K7168_N384_bf16_cases();
std::span<const op::Case> mm_M1_16_K7168_N896_cases();
std::span<const op::Case> mm_M1_16_K7168_N896_bf16_cases();
std::span<const op::Case> tinygemm_cases();
std::span<const op::Case> prepare_low_latency_cases();
// cases_grouped.cc
std::span<const op::Case> grouped_mm_bf16_cases();
std::span<const op::Case> grouped_mm_fp8_cases();
std::span<const op::Case> grouped_mm_mxfp8_cases();
std::span<const op::Case> grouped_mm_fp4_cases();
std::span<const op::Case> group_gemm_fp8_groupwise_cases();
std::span<const op::Case> group_deepgemm_fp8_cases();
std::span<const op::Case> group_gemm_fp8_contiguous_cases();
std::span<const op::Case> batch_deepgemm_fp8_cases();
std::span<const op::Case> group_gemm_mxfp4_cases();
std::span<const op::Case> group_gemm_nvfp4_cases();
std::span<const op::Case> segment_cases();
std::span<const op::Case> masked_scaled_bmm_cases();
std::span<const op::Case> ragged_scaled_bmm_cases();
std::span<const op::Case> ragged_block_scaled_bmm_cases();
std::span<const op::Case> grouped_gemm_nt_masked_cases();
}  // namespace flashinfer::ops::gemm
