// SPDX-License-Identifier: Apache-2.0
// Exact top-k. Always deterministic: equal values are ranked by index, so the set, and with `sorted` the order, is
// defined. -0 equals +0; NaN ranks below everything. Greedy decoding is k = 1: one vectorised pass, the smallest index
// of equal logits wins (or the largest with tie_break = 2), whatever the batch or threads.
//
// The two transforms select for sparse attention: row r's scores are input[r, row_starts[r] .. + lengths[r]), positions
// p are relative to that start. A row of at most k scores gives all its positions in order, else the k largest in order
// of position; slots after them are -1.
#pragma once
#include <optional>
#include <utility>

#include "flashinfer/core/tensor.h"
#include "flashinfer/ops/topk/varlen.h"

#pragma GCC visibility push(default)

namespace flashinfer {

struct TopK {
  TensorView input;                        // [rows, d] f32|f16|bf16, d < 2^32, rows may be strided
  int64_t k = 0;                           // 1 <= k <= d
  bool sorted = false;                     // largest first, equal values by rank of their index; else in order of index
  bool deterministic = false;              // accepted: it always is
  int64_t tie_break = 0;                   // which of equal values is taken: 0 and 1 the smaller index, 2 the larger
  bool dsa_graph_safe = false;             // CUDA only
  std::optional<TensorView> values = {};   // C++ only: memory for the results, [rows, k] as input
  std::optional<TensorView> indices = {};  // [rows, k] i64
};
/// (values, indices). A row with fewer than k elements above -inf gives all of them, then -inf at distinct positions,
/// then NaN. ValueError: k outside [1, d], a tie_break outside [0, 2], shapes or dtypes that are inconsistent, a
/// strided last dimension.
std::pair<Tensor, Tensor> top_k(const TopK& args);

struct TopKPageTableTransform {
  TensorView input;                             // [rows, d] f32|f16|bf16, rows may be strided
  TensorView src_page_table;                    // [batch, pages] i32, rows may be strided
  TensorView lengths;                           // [rows] i32|i64
  int64_t k = 0;                                // >= 1, may exceed d
  std::optional<TensorView> row_to_batch = {};  // [rows] i32|i64; absent: row r has table r, and rows == batch
  bool deterministic = false;                   // accepted: it always is
  int64_t tie_break = 0;                        // as top_k
  bool dsa_graph_safe = false;                  // CUDA only
  std::optional<TensorView> row_starts = {};    // [rows] i32|i64; absent: 0
  std::optional<TensorView> page_table_row_starts =
      {};                                          // [rows] i32|i64, in pages; absent: row_starts if page_size is 1
  int64_t page_size = 1;                           // a power of two up to 2^30
  std::optional<TensorView> out = {};              // [rows, k] i32
  std::optional<TensorView> out_raw_indices = {};  // [rows, k] i32: receives the positions p
};
/// table[start + p / page_size] * page_size + p % page_size for each selected position p, where table is the row's page
/// table and start its page_table_row_starts. ValueError: a window outside its row, a page outside its table, a batch
/// index outside the tables, row_starts without page_table_row_starts where pages hold more than one token,
/// inconsistent tables and rows.
Tensor top_k_page_table_transform(const TopKPageTableTransform& args);

struct TopKRaggedTransform {
  TensorView input;                           // [rows, d] f32|f16|bf16, rows may be strided
  TensorView offsets;                         // [rows] i32|i64
  TensorView lengths;                         // [rows] i32|i64
  int64_t k = 0;                              // >= 1, may exceed d
  bool deterministic = false;                 // accepted: it always is
  int64_t tie_break = 0;                      // as top_k
  bool dsa_graph_safe = false;                // CUDA only
  std::optional<TensorView> row_starts = {};  // [rows] i32|i64; absent: 0
  std::optional<TensorView> output = {};      // C++ only: memory for the result, [rows, k] i32
};
/// p + offsets[row] for each selected position p. ValueError: a window outside its row.
Tensor top_k_ragged_transform(const TopKRaggedTransform& args);

}  // namespace flashinfer

#pragma GCC visibility pop
