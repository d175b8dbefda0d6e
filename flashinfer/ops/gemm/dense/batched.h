// SPDX-License-Identifier: Apache-2.0
// Batches of products with masked rows, segments, and products added to an existing matrix. All sum in f32, in one
// order for an element whatever the other rows, and round once. ValueError: inconsistent extents or dtypes.
#pragma once
#include <optional>
#include <string>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// out[q, r] = a[q, r] . b[q] for r < masked_m[q]; the other rows become 0.
struct MaskedBmm {
  TensorView a;         // [q, m, k], transpose_a: [q, k, m]; bf16|f16
  TensorView b;         // [q, k, n], transpose_b: [q, n, k]; as a
  TensorView masked_m;  // i32 [q], in [0, m]
  bool transpose_a = false, transpose_b = false;
  std::optional<TensorView> out = {};  // [q, m, n] as a
  std::string backend = "cutile";
};
Tensor masked_bmm(const MaskedBmm& args);

/// out[r] = a[r] . b[q] for r in [m_indptr[q], m_indptr[q + 1]); rows of no segment become 0.
struct RaggedBmm {
  TensorView a;                                 // [m, k], transpose_a: [k, m]; bf16|f16
  TensorView b;                                 // [q, n, k]; without transpose_b: [q, k, n]; as a
  TensorView m_indptr;                          // i32 [q + 1]
  int64_t max_m = 0;                            // upper bound of the segment lengths
  std::optional<TensorView> max_m_device = {};  // ignored
  bool transpose_a = false, transpose_b = true;
  std::optional<DType> out_dtype = {};  // bf16, f16 or f32; a's when absent
  std::string backend = "cutile";
  std::optional<TensorView> out = {};  // C++ only: memory for the result, [m, n]
};
Tensor ragged_bmm(const RaggedBmm& args);

/// c = alpha * a . b + beta * c, in place; with beta = 0 the old c is ignored. Returns c.
struct GemmAlphaBeta {
  TensorView a;  // [m, k], trans_a: [k, m]; bf16|f16
  TensorView b;  // [n, k]; without trans_b: [k, n]; as a
  TensorView c;  // [m, n] bf16|f16|f32
  bool trans_a = false, trans_b = true;
  double alpha = 1.0, beta = 0.0;
  std::optional<int64_t> num_sms = {};  // CUDA only
  std::string backend = "cutile";
};
void gemm_alpha_beta(const GemmAlphaBeta& args);

}  // namespace flashinfer

#pragma GCC visibility pop
