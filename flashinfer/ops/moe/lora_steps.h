// SPDX-License-Identifier: Apache-2.0
// The two steps of bgmv_moe apart, in tensors of the caller. The matrices are tensors: Python's bgmv_moe_shrink and
// bgmv_moe_expand, which take addresses, find the tensors that fill_w_ptr was given.
#pragma once
#include <cstdint>
#include <vector>

#include "flashinfer/core/tensor.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// y[s, p] += weights[s][l, e] . x[t], t = sorted_token_ids[p], e = expert_ids[p], l = lora_indices[t]; with
/// per_pair_input x[p] in place of x[t]. Nothing is added for pairs whose token or adapter is negative or whose token
/// is not below the number of lora_indices. ValueError: inconsistent extents, an expert or adapter outside the
/// matrices.
struct BgmvMoeShrinkWeights {
  TensorView y;                     // [slices, pairs, rank] bf16|f16|f32
  TensorView x;                     // [t, h] bf16|f16|f32; per_pair_input: [pairs, h]
  std::vector<TensorView> weights;  // each [adapters, experts, rank, h] bf16|f16|f32
  TensorView sorted_token_ids;      // [pairs] i32|i64
  TensorView expert_ids;            // [pairs] i32|i64
  TensorView lora_indices;          // [t] i32|i64
  bool per_pair_input = false;
};
void bgmv_moe_shrink_weights(const BgmvMoeShrinkWeights& args);

/// Columns [slice_start_loc[s], slice_start_loc[s] + output_slices[s]) of y: with finalize, y[t] += sum over pairs p of
/// token t, in order, of topk_weights[p] * (weights[s][l, e] . x[s, p]); else y[p] = weights[s][l, e] . x[s, p],
/// unweighted, and zeros for the pairs that bgmv_moe_shrink_weights skips. ValueError as there, and for columns outside
/// y.
struct BgmvMoeExpandWeights {
  TensorView y;                             // [t, columns] bf16|f16|f32; not finalize: [pairs, columns]
  TensorView x;                             // [slices, pairs, rank] bf16|f16|f32
  std::vector<TensorView> weights;          // each [adapters, experts, output_slices[s], rank] bf16|f16|f32
  TensorView sorted_token_ids, expert_ids;  // [pairs] i32|i64
  TensorView topk_weights;                  // [pairs] f32
  TensorView lora_indices;                  // [t] i32|i64
  TensorView slice_start_loc;               // [slices] i32|i64
  std::vector<int64_t> output_slices;
  bool finalize = true;
};
void bgmv_moe_expand_weights(const BgmvMoeExpandWeights& args);

}  // namespace flashinfer

#pragma GCC visibility pop
