// SPDX-License-Identifier: Apache-2.0
// The family's ops that live outside op.cc.
#pragma once
#include "flashinfer/op/op.h"

namespace flashinfer::ops::gemm {
extern const op::Op mm_fp8_op, mm_mxfp8_op, bmm_mxfp8_op, mm_fp4_op, groupwise_op, blockscaled_op, mm_gguf_op,
    prepare_gguf_op, gguf_dequantize_op;
extern const op::Op grouped_mm_bf16, grouped_mm_fp8, grouped_mm_mxfp8, grouped_mm_fp4, group_gemm_fp8_groupwise,
    group_deepgemm_fp8, group_gemm_fp8_contiguous, batch_deepgemm_fp8, group_gemm_mxfp4, group_gemm_nvfp4,
    segment_init_op, segment_reset_op, segment_run_op;
extern const op::Op mm_M1_16_K6144_N256_op, mm_M1_16_K7168_N128_op, mm_M1_16_K7168_N256_op, mm_M1_16_K7168_N256_bf16_op,
    mm_M1_16_K7168_N384_op, mm_M1_16_K7168_N384_bf16_op, mm_M1_16_K7168_N896_op, mm_M1_16_K7168_N896_bf16_op,
    tinygemm_op, prepare_low_latency_op;
extern const op::Op masked_bmm_op, ragged_bmm_op, alpha_beta_op;  // batched.cc
extern const op::Op masked_scaled_bmm_op, ragged_scaled_bmm_op, ragged_block_scaled_bmm_op,
    grouped_gemm_nt_masked_op;                            // scaled_batches.cc
extern const op::Op blockscale_sm90_op;                   // blockscale.cc
extern const op::Op pad_indptr_op;                        // pad_indptr.cc
extern const op::Op prepare_quantized_op;                 // prepare_quantized.cc
extern const op::Op prepare_bf16_fp4_op, mm_bf16_fp4_op;  // bf16_fp4.cc
}  // namespace flashinfer::ops::gemm
