// SPDX-License-Identifier: Apache-2.0
// References of the operators beside the attention itself (reference.cc).
#pragma once
#include <algorithm>
#include <cmath>

#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/mla/op.h"

namespace flashinfer::ref {

inline void append_paged_mla_kv_cache(const AppendPagedMlaKvCache& a) {
  for (const auto& [from, cache] : {std::pair(&a.append_ckv, &a.ckv_cache), std::pair(&a.append_kpe, &a.kpe_cache)}) {
    if (!*cache) continue;
    const int64_t page_size = (*cache)->size(1);
    for (int64_t t = 0; t < from->size(0); ++t) {
      const int64_t b = op::index_at(a.batch_indices, t), position = op::index_at(a.positions, t);
      if (b < 0) continue;
      const int64_t page = op::index_at(a.kv_indices, op::index_at(a.kv_indptr, b) + position / page_size);
      for (int64_t d = 0; d < from->size(1); ++d) put(**cache, {page, position % page_size, d}, at(*from, {t, d}));
    }
  }
}

inline void concat_mla_k(const ConcatMlaK& a) {
  const int64_t nope = a.k_nope.size(2);
  for (int64_t t = 0; t < a.k.size(0); ++t)
    for (int64_t h = 0; h < a.k.size(1); ++h)
      for (int64_t d = 0; d < a.k.size(2); ++d)
        put(a.k, {t, h, d}, d < nope ? at(a.k_nope, {t, h, d}) : at(a.k_rope, {t, 0, d - nope}));
}

inline void concat_mla_kv_quant_fp8(const ConcatMlaKvQuantFp8& a) {
  const auto cast = [](double x) {
    e4m3_t y;
    if (std::isnan(x))
      y.bits = 0x7f;
    else
      y = e4m3_t(round_to_odd(std::min(std::max(x, -448.0), 448.0)));
    return y;
  };
  const auto put_code = [&](const TensorView& to, int64_t t, int64_t h, int64_t d, double x) {
    to.data_as<e4m3_t>()[t * to.stride(0) + h * to.stride(1) + d] = cast(x);
  };
  for (int64_t t = 0; t < a.kv_nope.size(0); ++t)
    for (int64_t h = 0; h < a.kv_nope.size(1); ++h) {
      for (int64_t d = 0; d < a.kv_nope.size(2); ++d)
        if (d < a.nope_dim)
          put_code(*a.key, t, h, d, at(a.kv_nope, {t, h, d}));
        else
          put_code(*a.value, t, h, d - a.nope_dim, at(a.kv_nope, {t, h, d}));
      for (int64_t d = 0; d < a.k_pe.size(-1); ++d)
        put_code(*a.key, t, h, a.nope_dim + d, load_element(a.k_pe, t * a.k_pe.stride(0) + d));
    }
}

}  // namespace flashinfer::ref
