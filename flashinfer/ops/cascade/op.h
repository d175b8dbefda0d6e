// SPDX-License-Identifier: Apache-2.0
// Merging attention states. A state is a normalised output v and its LSE s in base 2:
//   m = max_i s_i;  v = sum_i 2^(s_i - m) v_i / sum_i 2^(s_i - m);  s = m + log2 sum_i 2^(s_i - m)
// A state with s = -inf is empty; a row without states or with only empty ones gives v = 0, s = -inf. v is f16, bf16 or
// f32, s float32 (ValueError otherwise: an update of a converted copy would be lost). Sums are in f32.
#pragma once
#include <optional>
#include <utility>

#include "flashinfer/core/tensor.h"
#include "flashinfer/ops/cascade/wrappers.h"

#pragma GCC visibility push(default)

namespace flashinfer {

struct MergeState {
  TensorView v_a;                      // [n, H, D]
  TensorView s_a;                      // [n, H] f32
  TensorView v_b;                      // [n, H, D] as v_a
  TensorView s_b;                      // [n, H] f32
  std::optional<TensorView> v{}, s{};  // C++ only: memory for the results
};
/// (v, s) of the two states.
std::pair<Tensor, Tensor> merge_state(const MergeState& args);

struct MergeStateInPlace {
  TensorView v;                      // [n, H, D], written
  TensorView s;                      // [n, H] f32, written
  TensorView v_other;                // [n, H, D] as v
  TensorView s_other;                // [n, H] f32
  std::optional<TensorView> mask{};  // bool [n]: false leaves the token unchanged
};
void merge_state_in_place(const MergeStateInPlace& args);

struct MergeStates {
  TensorView v;                                      // [n, S, H, D]
  TensorView s;                                      // [n, S, H] f32
  std::optional<TensorView> v_merged{}, s_merged{};  // C++ only: memory for the results, [n, H, D] and [n, H]
};
/// (v, s) of S states a row; S = 0 gives empty rows, S = 1 copies.
std::pair<Tensor, Tensor> merge_states(const MergeStates& args);

}  // namespace flashinfer

#pragma GCC visibility pop
