// SPDX-License-Identifier: Apache-2.0
// LoRA in a mixture of experts: each token has an adapter, each (token, expert) pair its product with the adapter's
// matrices of the expert.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "flashinfer/core/tensor.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// Of slice s, whose columns follow those of slice s - 1:
///   out[t, columns of s] = sum over pairs p of token t of topk_weights[p] * (lora_b[s][l, e] (lora_a[s][l, e] x[t])),
/// t = sorted_token_ids[p], e = expert_ids[p], l = lora_indices[t]. Pairs whose token or adapter is negative or whose
/// token is not below the number of tokens count nothing. Pairs are added in their order; everything is in f32.
/// ValueError: inconsistent extents or dtypes, an expert or adapter outside the matrices, an output_dim other than the
/// slices' sum.
struct BgmvMoe {
  TensorView x;                                            // [t, h] bf16|f16|f32
  std::vector<TensorView> lora_a_weights, lora_b_weights;  // [adapters, experts, rank, h], [.., out, rank] as x
  TensorView sorted_token_ids, expert_ids;                 // [pairs] i32|i64
  TensorView lora_indices;                                 // [t] i32|i64
  TensorView topk_weights;                                 // [pairs] f32
  int64_t num_experts = 0;
  std::optional<int64_t> output_dim{};
  std::optional<TensorView> output{};  // C++ only: memory for the result, [t, sum of out] f32
};
Tensor bgmv_moe(const BgmvMoe& args);

}  // namespace flashinfer

#pragma GCC visibility pop
