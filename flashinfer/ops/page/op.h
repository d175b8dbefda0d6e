// SPDX-License-Identifier: Apache-2.0
// Page table helpers. Index arrays are int32 or int64 in host memory.
#pragma once
#include <optional>
#include <string>
#include <utility>

#include "flashinfer/op/call.h"
#include "flashinfer/ops/page/nvfp4.h"  // appending to NVFP4 caches
#include "flashinfer/ops/page/step.h"   // between two steps of a decode loop

#pragma GCC visibility push(default)

namespace flashinfer {

/// Copies token t of append_key and append_value to slot positions[t] of request batch_indices[t], that is to entry
/// positions[t] % page_size of page kv_indices[kv_indptr[b] + positions[t] / page_size]. A negative batch index
/// (padding) is skipped. Elements are copied without conversion: the cache must have the dtype of the appended tensors.
/// ValueError: a page id outside the pool, a position beyond the request's pages, last_page_len outside 1..page_size,
/// indptr that decreases. Nothing is written then.
struct AppendPagedKvCache {
  TensorView append_key;        // [nnz, Hkv, Dk], rows and heads may be strided
  TensorView append_value;      // [nnz, Hkv, Dv]
  TensorView batch_indices;     // [nnz]
  TensorView positions;         // [nnz]
  op::PagedKv paged_kv_cache;   // written
  TensorView kv_indices;        // page ids
  TensorView kv_indptr;         // [B+1], in pages
  TensorView kv_last_page_len;  // [B], after appending
  std::string kv_layout = "NHD";
};
void append_paged_kv_cache(const AppendPagedKvCache& args);

/// The request and the position of every appended token, batch = b and seq_lens[b] - append_indptr[b+1] + t; past
/// append_indptr[B] they are -1 and 0. int32 [nnz] each.
struct GetBatchIndicesPositions {
  TensorView append_indptr;  // [B+1]
  TensorView seq_lens;       // [B], after appending
  int64_t nnz = 0;
  std::optional<TensorView> batch_indices{}, positions{};  // int32 [nnz]; allocated when absent
};
std::pair<Tensor, Tensor> get_batch_indices_positions(const GetBatchIndicesPositions& args);

/// max(pages - 1, 0) * page_size + kv_last_page_len, int32 [B].
struct GetSeqLens {
  TensorView kv_indptr;         // [B+1], in pages
  TensorView kv_last_page_len;  // [B]
  int64_t page_size = 0;
  std::optional<TensorView> out{};  // C++ only: memory for the result
};
Tensor get_seq_lens(const GetSeqLens& args);

}  // namespace flashinfer

#pragma GCC visibility pop
