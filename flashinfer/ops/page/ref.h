// SPDX-License-Identifier: Apache-2.0
// The page operators from their definitions, element by element.
#pragma once
#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/page/op.h"

namespace flashinfer::ref {

/// One of K and V: `plane` 0 or 1.
inline void append_plane(const AppendPagedKvCache& a, const TensorView& from, int plane) {
  const bool nhd = a.kv_layout == "NHD", stacked = a.paged_kv_cache.stacked;
  const TensorView cache = stacked      ? a.paged_kv_cache.first.select(1, plane)
                           : plane == 0 ? a.paged_kv_cache.first
                                        : a.paged_kv_cache.second;
  const bool flat = cache.rank() == 3;  // pages of one token
  const int64_t page_size = flat ? 1 : cache.size(nhd ? 1 : 2);
  for (int64_t t = 0; t < from.size(0); ++t) {
    const int64_t b = op::index_at(a.batch_indices, t), position = op::index_at(a.positions, t);
    if (b < 0) continue;
    const int64_t page = op::index_at(a.kv_indices, op::index_at(a.kv_indptr, b) + position / page_size);
    const int64_t entry = position % page_size;
    for (int64_t h = 0; h < from.size(1); ++h)
      for (int64_t d = 0; d < from.size(2); ++d) {
        const double x = at(from, {t, h, d});
        if (flat)
          put(cache, {page, h, d}, x);
        else if (nhd)
          put(cache, {page, entry, h, d}, x);
        else
          put(cache, {page, h, entry, d}, x);
      }
  }
}
inline void append_paged_kv_cache(const AppendPagedKvCache& a) {
  append_plane(a, a.append_key, 0);
  append_plane(a, a.append_value, 1);
}

inline void get_batch_indices_positions(const GetBatchIndicesPositions& a) {
  const int64_t batch = a.append_indptr.size(0) - 1;
  for (int64_t t = 0; t < a.nnz; ++t) {
    double request = -1, position = 0;
    for (int64_t b = 0; b < batch; ++b)
      if (t >= op::index_at(a.append_indptr, b) && t < op::index_at(a.append_indptr, b + 1)) {
        request = static_cast<double>(b);
        position = static_cast<double>(op::index_at(a.seq_lens, b) - op::index_at(a.append_indptr, b + 1) + t);
      }
    put(*a.batch_indices, {t}, request);
    put(*a.positions, {t}, position);
  }
}

inline void get_seq_lens(const GetSeqLens& a) {
  for (int64_t b = 0; b < a.kv_last_page_len.size(0); ++b) {
    const int64_t pages = op::index_at(a.kv_indptr, b + 1) - op::index_at(a.kv_indptr, b);
    put(*a.out, {b},
        static_cast<double>(std::max<int64_t>(pages - 1, 0) * a.page_size + op::index_at(a.kv_last_page_len, b)));
  }
}

}  // namespace flashinfer::ref
