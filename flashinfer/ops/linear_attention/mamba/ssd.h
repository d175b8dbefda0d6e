// SPDX-License-Identifier: Apache-2.0
// Mamba-2 over whole sequences (prefill).
#pragma once
#include <optional>
#include <utility>

#include "flashinfer/core/tensor.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// Extents: b rows of s tokens, N sequences (b, or as cu_seqlens says), nh heads, ng groups of heads, p elements of a
/// head, n of a row of the state.
struct SsdChunkScan {
  TensorView x;                              // [b, s, nh, p] f32|f16|bf16
  TensorView dt;                             // [b, s, nh] f32|f16|bf16, any strides
  TensorView A;                              // [nh] f32
  TensorView B, C;                           // [b, s, ng, n] dtype of x; head h uses group h * ng / nh
  std::optional<TensorView> D;               // [nh] or [nh, p] f32|f16|bf16
  std::optional<TensorView> z;               // [b, s, nh, p] dtype of x
  std::optional<TensorView> dt_bias;         // [nh] f32|f16|bf16
  bool dt_softplus = false;                  // softplus of dt + dt_bias (above 20: itself)
  std::optional<double> dt_min, dt_max;      // bounds of the result
  std::optional<TensorView> initial_states;  // [N, nh, p, n] of state_dtype; absent: zeros
  std::optional<TensorView> cu_seqlens;      // [N + 1], b = 1: sequences one after the other
  std::optional<TensorView>
      checkpoint_token_indices;  // [N]: the tokens of x before which a state is stored; negative: none
  std::optional<TensorView> checkpoint_state_slots;  // [N] int32|int64: its slot in checkpoint_states; negative: none
  std::optional<TensorView> checkpoint_states;       // [slots, nh, p, n] of state_dtype. Updated
  std::optional<TensorView> out;                     // [b, s, nh, p] dtype of x
  bool return_final_states = true;
  DType state_dtype = DType::kBF16;        // f32, f16 or bf16
  std::optional<TensorView> final_states;  // [N, nh, p, n]
};
/// For each token, with dt' = dt + dt_bias (softplus of it, within the bounds): S = e^(A dt') S + dt' x B;
/// out = (S C + D x) silu(z). bf16: chunks of 64 tokens as products of bf16 matrices, S in f32; other types: token by
/// token in f32. A sequence without tokens keeps its initial state. A result does not depend on the other sequences.
/// ValueError: shapes, dtypes and options that do not fit together, cu_seqlens that does not end at s, a slot or a
/// checkpoint outside its range; on the CPU also NaN in A, dt or dt_bias.
std::pair<Tensor, Tensor> ssd_chunk_scan(const SsdChunkScan& args);

}  // namespace flashinfer

#pragma GCC visibility pop
