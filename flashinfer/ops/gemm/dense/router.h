// SPDX-License-Identifier: Apache-2.0
// Small products of fixed shape: router projections, and the weight layout of mm_fp8.
#pragma once
#include <optional>

#include "flashinfer/core/tensor.h"
#include "flashinfer/op/value.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// out = mat_a . mat_b; the shape is in the op's name.
struct RouterGemm {
  TensorView mat_a;  // [m, k] bf16, 1 to 16 rows
  TensorView mat_b;  // [k, n] bf16, column-major: the transposed view of a [n, k] weight
  /// [m, n] f32; bf16 of mm_M1_16_K7168_N128 and of the names that end in _bf16
  TensorView out;
  bool launch_with_pdl = true;  // CUDA only
};
void mm_M1_16_K6144_N256(const RouterGemm& args);
void mm_M1_16_K7168_N128(const RouterGemm& args);
void mm_M1_16_K7168_N256(const RouterGemm& args);
void mm_M1_16_K7168_N256_bf16(const RouterGemm& args);
void mm_M1_16_K7168_N384(const RouterGemm& args);
void mm_M1_16_K7168_N384_bf16(const RouterGemm& args);
void mm_M1_16_K7168_N896(const RouterGemm& args);
void mm_M1_16_K7168_N896_bf16(const RouterGemm& args);

/// out = input . weight^T + bias
struct TinygemmBf16 {
  TensorView input;                // [m, k] bf16, k a multiple of 8
  TensorView weight;               // [n, k] bf16, n a multiple of 16
  TensorView out;                  // [m, n] bf16
  std::optional<TensorView> bias;  // [n] bf16
  bool use_pdl = false;            // CUDA only
};
void tinygemm_bf16(const TinygemmBf16& args);

/// Converts a weight to the layout of mm_fp8: rows within each 32 are interleaved 4 x 8, then blocks of 128 k: out[b,
/// 32 g + j] = w[32 g + 4 (j % 8) + j / 8, 128 b : 128 b + 128].
struct PrepareLowLatencyGemmWeights {
  TensorView w;                           // [n, k] e4m3, n a multiple of 32, k of 128
  op::Value permutation_indices_cache{};  // FlashInfer keeps index tables in it; unused here
  std::optional<TensorView> out;          // [k / 128, n, 128]
};
Tensor prepare_low_latency_gemm_weights(const PrepareLowLatencyGemmWeights& args);

}  // namespace flashinfer

#pragma GCC visibility pop
