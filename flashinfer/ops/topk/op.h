// SPDX-License-Identifier: Apache-2.0
// Exact top-k (ops.md section 6). Always deterministic: equal values are ranked by index, so the set, and with `sorted`
// the order, is defined. -0 equals +0; NaN ranks below everything. Greedy decoding is k = 1: one vectorised pass, the
// smallest index of equal logits wins (or the largest with tie_break = 2), whatever the batch or threads.
#pragma once
#include <optional>
#include <utility>

#include "flashinfer/core/tensor.h"

namespace flashinfer {

struct TopK {
  TensorView input;                        // [rows, d] f32|f16|bf16, d < 2^32, rows may be strided
  int64_t k = 0;                           // 1 <= k <= d
  bool sorted = false;                     // largest first, equal values by rank of their index; else in order of index
  bool deterministic = false;              // accepted: it always is
  int64_t tie_break = 0;                   // which of equal values is taken: 0 and 1 the smaller index, 2 the larger
  bool dsa_graph_safe = false;             // CUDA only
  std::optional<TensorView> values = {};   // ours: memory for the results, [rows, k] as input
  std::optional<TensorView> indices = {};  // [rows, k] i64
};
/// (values, indices). A row with fewer than k elements above -inf gives all of them, then -inf at distinct positions,
/// then NaN. ValueError: k outside [1, d], a tie_break outside [0, 2], shapes or dtypes that do not fit, a strided last
/// dimension.
std::pair<Tensor, Tensor> top_k(const TopK& args);

}  // namespace flashinfer
