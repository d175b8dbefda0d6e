// SPDX-License-Identifier: Apache-2.0
// Manifold-constrained hyper-connections: a layer reads a mixture of four residual streams and its result is mixed back
// into them. Everything in f32 until the last rounding; sums over a row have one order. ValueError: inconsistent ranks
// or extents, other than four streams, an eps that is not positive.
#pragma once
#include <cstdint>
#include <optional>
#include <tuple>

#include "flashinfer/core/tensor.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// out[.., j, h] = x[.., h] * post_layer_mix[.., j] + sum_i residual[.., i, h] * comb_res_mix[.., i, j].
struct MhcPost {
  TensorView x;                     // [.., H] as residual
  TensorView residual;              // [.., 4, H] bf16|f16|f32, contiguous
  TensorView post_layer_mix;        // [.., 4] or [.., 4, 1] f32
  TensorView comb_res_mix;          // [.., 4, 4] f32
  std::optional<TensorView> out{};  // C++ only: memory for the result, as residual
};
Tensor mhc_post(const MhcPost& args);

/// m = dot_mix / sqrt(sqrsum / k + rms_eps), in parts of 4, 4 and 16. With s = mhc_scale and b = mhc_base:
///   pre_i = sigmoid(m_i s_0 + b_i) + mhc_pre_eps,    layer_input[.., h] = sum_i pre_i residual[.., i, h]
///   post_mix_i = sigmoid(m_(4+i) s_1 + b_(4+i)) * mhc_post_mult_value
///   comb_mix = Sinkhorn's iteration of the 4x4 matrix m_(8..) s_2 + b_(8..): softmax of its rows + mhc_sinkhorn_eps,
///   columns divided by their sum + mhc_sinkhorn_eps, then sinkhorn_repeat - 1 times rows and columns likewise.
/// Returns (post_mix, comb_mix, layer_input).
struct MhcPreBigFuse {
  TensorView dot_mix;    // [.., 24] f32, or [num_splits, .., 24], whose sum over the splits counts
  TensorView sqrsum;     // [..] f32, or [num_splits, ..]
  TensorView residual;   // [.., 4, H] bf16|f16|f32, contiguous
  TensorView mhc_scale;  // [3] f32
  TensorView mhc_base;   // [24] f32
  int64_t k = 0;         // elements that sqrsum is the sum of
  double rms_eps = 1e-6, mhc_pre_eps = 1e-6, mhc_sinkhorn_eps = 1e-6, mhc_post_mult_value = 1.0;
  int64_t sinkhorn_repeat = 20;
  int64_t num_splits = 1;                                           // 1, 2, 4, 8 or 16
  int64_t block_size = 0;                                           // CUDA only
  std::optional<TensorView> post_mix{}, comb_mix{}, layer_input{};  // C++ only: [.., 4, 1], [.., 4, 4] f32, [.., H]
};
std::tuple<Tensor, Tensor, Tensor> mhc_pre_big_fuse(const MhcPreBigFuse& args);

/// The same with the sum of squares of `residual` as sqrsum, and k = 4 H.
struct MhcPreBigFuseWithPrenorm {
  TensorView dot_mix;  // [.., 24] or [1, .., 24]
  TensorView residual, mhc_scale, mhc_base;
  double rms_eps = 1e-6, mhc_pre_eps = 1e-6, mhc_sinkhorn_eps = 1e-6, mhc_post_mult_value = 1.0;
  int64_t sinkhorn_repeat = 20;
  int64_t block_size = 0;
  std::optional<TensorView> post_mix{}, comb_mix{}, layer_input{};
};
std::tuple<Tensor, Tensor, Tensor> mhc_pre_big_fuse_with_prenorm(const MhcPreBigFuseWithPrenorm& args);

}  // namespace flashinfer

#pragma GCC visibility pop
