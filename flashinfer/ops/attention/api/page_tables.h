// SPDX-License-Identifier: Apache-2.0
// Page tables of three dimensions: one for each KV head (block-sparse attention), or one of K and one of V.
#pragma once
#include <algorithm>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/attention/api/checks.h"

namespace flashinfer::attention {

/// `x` from page `pages` and head `head` on.
inline ops::KvPlane moved(ops::KvPlane x, int64_t pages, int64_t head) {
  x.data = static_cast<char*>(x.data) + (pages * x.stride_page + head * x.stride_h) * size_of(x.dtype);
  return x;
}
/// KV head `h` alone.
inline Planes planes_of_head(const Planes& kv, int64_t h) {
  Planes one{moved(kv.k, 0, h), moved(kv.v, 0, h)};
  one.k.heads = one.v.heads = 1;
  return one;
}
/// V's pages counted from page `distance`.
inline Planes with_value_pages_from(const Planes& kv, int64_t distance) { return {kv.k, moved(kv.v, distance, 0)}; }

/// Page tables [requests, 2, pages]: K's, and V's, whose pages lie `distance` behind K's.
struct SeparateTables {
  TensorView of_k;
  int64_t distance = 0;
};
inline void check_separate_shape(const TensorView& tables, const TensorView& seq_lens) {
  FI_CHECK(tables.rank() == 3 && tables.size(1) == 2, ValueError, "block_tables is ", to_string(tables),
           ", but must be [requests, 2, pages], those of K and those of V, with uses_shared_paged_kv_idx=False");
  FI_CHECK(seq_lens.rank() == 1 && seq_lens.size(0) == tables.size(0), ValueError, "seq_lens is ", to_string(seq_lens),
           ", but block_tables has ", tables.size(0), " requests");
}
/// NotImplementedError where the distance is not the same for all pages that the lengths need; ValueError for the shape
/// and pages of V outside the pool.
inline SeparateTables separate_tables(const TensorView& tables, const TensorView& seq_lens,
                                      const ops::KvPlane& values) {
  check_separate_shape(tables, seq_lens);
  FI_CHECK(values.page_size >= 1, ValueError, "the cache has pages of ", values.page_size, " tokens");
  SeparateTables t{tables.select(1, 0)};
  bool first = true;
  for (int64_t b = 0; b < tables.size(0); ++b) {
    const TensorView k = t.of_k.select(0, b), v = tables.select(1, 1).select(0, b);
    const int64_t pages = std::min(ceil_div(op::index_at(seq_lens, b), values.page_size), tables.size(2));
    for (int64_t i = 0; i < pages; ++i) {
      const int64_t page = op::index_at(v, i), distance = page - op::index_at(k, i);
      FI_CHECK(page >= 0 && page < values.pages, ValueError, "block_tables[", b, "][1][", i, "] is ", page,
               ", but the cache has ", values.pages, " pages");
      if (first) t.distance = distance, first = false;
      throw_if_given(str("block_tables[", b, "][:, ", i, "]"), distance != t.distance,
                     str("V lies ", distance, " pages behind K there, and ", t.distance, " elsewhere"));
    }
  }
  return t;
}

}  // namespace flashinfer::attention
