// SPDX-License-Identifier: Apache-2.0
// Page tables of three dimensions: one for each KV head (block-sparse attention), or one of K and one of V.
#pragma once
#include <algorithm>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/attention/api/checks.h"

namespace flashinfer::attention {

/// KV head `h` alone.
inline Planes planes_of_head(Planes kv, int64_t h) {
  for (ops::KvPlane* x : {&kv.k, &kv.v}) {
    x->data = static_cast<char*>(x->data) + h * x->stride_h * size_of(x->dtype);
    x->heads = 1;
  }
  return kv;
}

/// Page tables [requests, 2, pages]: those of K, and those of V.
inline TensorView k_tables(const TensorView& tables) { return tables.select(1, 0); }
inline TensorView v_tables(const TensorView& tables) { return tables.select(1, 1); }
inline void check_separate_shape(const TensorView& tables, const TensorView& seq_lens) {
  FI_CHECK(tables.rank() == 3 && tables.size(1) == 2, ValueError, "block_tables is ", to_string(tables),
           ", but must be [requests, 2, pages], those of K and those of V, with uses_shared_paged_kv_idx=False");
  FI_CHECK(seq_lens.rank() == 1 && seq_lens.size(0) == tables.size(0), ValueError, "seq_lens is ", to_string(seq_lens),
           ", but block_tables has ", tables.size(0), " requests");
}
/// f(request, place, page of K, page of V) for the pages that the lengths need; those of V are in the pool.
template <class F>
void for_separate_pages(const TensorView& tables, const TensorView& seq_lens, const ops::KvPlane& values, const F& f) {
  check_separate_shape(tables, seq_lens);
  FI_CHECK(values.page_size >= 1, ValueError, "the cache has pages of ", values.page_size, " tokens");
  for (int64_t b = 0; b < tables.size(0); ++b) {
    const TensorView k = k_tables(tables).select(0, b), v = v_tables(tables).select(0, b);
    const int64_t pages = std::min(ceil_div(op::index_at(seq_lens, b), values.page_size), tables.size(2));
    for (int64_t i = 0; i < pages; ++i) {
      const int64_t page = op::index_at(v, i);
      FI_CHECK(page >= 0 && page < values.pages, ValueError, "block_tables[", b, "][1][", i, "] is ", page,
               ", but the cache has ", values.pages, " pages");
      f(b, i, op::index_at(k, i), page);
    }
  }
}

}  // namespace flashinfer::attention
