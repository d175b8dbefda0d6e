// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding. With angle phi = position * f[i], a pair (a, b) becomes
// (a cos phi - b sin phi, b cos phi + a sin phi).
// Pairs are elements (i, i + rd/2), or (2i, 2i + 1) when interleaved; rd is rotary_dim, even, at most d (its default);
// elements from rd on are copied. Angles are computed in double, so that large positions (1e6 and more) keep the
// precision of small ones; cos and sin are computed once a token and shared by all heads.
//
// The plain functions return (q, k), rotated copies; the _inplace ones write over q and k and return nothing. q and k
// may be strided (slices of a fused projection), last dimension contiguous. ValueError: inconsistent shapes or dtypes,
// a rotary_dim that is odd or outside [2, d], an indptr that does not start at 0, decreases, or does not end at n, a
// position outside the cache, a theta or scale that is not positive.
#pragma once
#include <optional>
#include <utility>

#include "flashinfer/core/tensor.h"
#include "flashinfer/ops/rope/quantize.h"  // with a cast to FP8

#pragma GCC visibility push(default)

namespace flashinfer {

struct ApplyRope {
  TensorView q;                            // [n, hq, d] f16|bf16|f32
  TensorView k;                            // [n, hk, d] as q
  TensorView indptr;                       // [b+1] i32|i64: request r has tokens indptr[r] .. indptr[r+1] - 1
  TensorView offsets;                      // [b] i32|i64: position of the request's first token
  std::optional<int64_t> rotary_dim = {};  // rd
  bool interleave = false;
  double rope_scale = 1;  // f[i] = theta^(-2i/rd) / rope_scale
  double rope_theta = 1e4;
  std::optional<TensorView> q_rope = {};  // C++ only: memory for the results, as q and k; not for the _inplace form
  std::optional<TensorView> k_rope = {};
};
std::pair<Tensor, Tensor> apply_rope(const ApplyRope& args);
void apply_rope_inplace(const ApplyRope& args);

struct ApplyRopePosIds {
  TensorView q;  // as in ApplyRope
  TensorView k;
  TensorView pos_ids;  // [n] i32|i64: position of each token
  std::optional<int64_t> rotary_dim = {};
  bool interleave = false;
  double rope_scale = 1;
  double rope_theta = 1e4;
  std::optional<TensorView> q_rope = {};
  std::optional<TensorView> k_rope = {};
};
std::pair<Tensor, Tensor> apply_rope_pos_ids(const ApplyRopePosIds& args);
void apply_rope_pos_ids_inplace(const ApplyRopePosIds& args);

/// Llama 3.1: with g = theta^(-2i/rd) and s = clamp((g * old_context_len / (2 pi) - low) / (high - low), 0, 1),
/// f[i] = (1 - s) g / rope_scale + s g.
struct ApplyLlama31Rope {
  TensorView q;
  TensorView k;
  TensorView indptr;
  TensorView offsets;
  std::optional<int64_t> rotary_dim = {};
  bool interleave = false;
  double rope_scale = 8;
  double rope_theta = 5e5;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  int64_t old_context_len = 8192;
  std::optional<TensorView> q_rope = {};
  std::optional<TensorView> k_rope = {};
};
std::pair<Tensor, Tensor> apply_llama31_rope(const ApplyLlama31Rope& args);
void apply_llama31_rope_inplace(const ApplyLlama31Rope& args);

struct ApplyLlama31RopePosIds {
  TensorView q;
  TensorView k;
  TensorView pos_ids;
  std::optional<int64_t> rotary_dim = {};
  bool interleave = false;
  double rope_scale = 8;
  double rope_theta = 5e5;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  int64_t old_context_len = 8192;
  std::optional<TensorView> q_rope = {};
  std::optional<TensorView> k_rope = {};
};
std::pair<Tensor, Tensor> apply_llama31_rope_pos_ids(const ApplyLlama31RopePosIds& args);
void apply_llama31_rope_pos_ids_inplace(const ApplyLlama31RopePosIds& args);

/// cos and sin from a table: row p holds cos of the rd/2 angles of position p, then sin. It must be f32: 16 bits cost
/// visible accuracy. RuntimeError: head_size smaller than the table's rd.
struct ApplyRopeCosSinCache {
  TensorView positions;  // [n] i32|i64, each in [0, max_pos)
  TensorView query;      // [n, hq * head_size] f16|bf16|f32
  TensorView key;        // [n, hk * head_size]
  int64_t head_size = 0;
  TensorView cos_sin_cache;               // [max_pos, rd] f32
  bool is_neox = true;                    // pairs (i, i + rd/2); false: interleaved
  std::optional<TensorView> q_rope = {};  // C++ only: memory for the results
  std::optional<TensorView> k_rope = {};
};
std::pair<Tensor, Tensor> apply_rope_with_cos_sin_cache(const ApplyRopeCosSinCache& args);
void apply_rope_with_cos_sin_cache_inplace(const ApplyRopeCosSinCache& args);

}  // namespace flashinfer

#pragma GCC visibility pop
