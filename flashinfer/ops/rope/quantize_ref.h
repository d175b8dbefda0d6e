// SPDX-License-Identifier: Apache-2.0
// RoPE with a cast to FP8, in double precision: one element at a time, rounded once.
#pragma once
#include <algorithm>
#include <cmath>

#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/rope/quantize.h"

namespace flashinfer::ref {

inline double saturate(DType t, double x) {
  const double most = t == DType::kF8E4M3 ? 448 : 57344;
  return std::isnan(x) ? x : std::clamp(x, -most, most);
}
/// Element (token, head, i) of [n, h, d] or [n, d].
inline double element3(const TensorView& t, int64_t n, int64_t h, int64_t i) {
  return t.rank() == 3 ? at(t, {n, h, i}) : at(t, {n, i});
}

/// What is written for element i of a head: rotated with the table's row of `position`, or as it is when there is no
/// table.
inline double rope_element(const TensorView& x, int64_t token, int64_t head, int64_t i, const TensorView* table,
                           int64_t position, bool neox) {
  const double own = element3(x, token, head, i);
  if (!table) return own;
  const int64_t half = table->size(1) / 2, pair = neox ? i % half : i / 2;
  const bool first = neox ? i < half : i % 2 == 0;
  const double other = element3(x, token, head, neox ? (first ? i + half : i - half) : (first ? i + 1 : i - 1));
  const double c = at(*table, {position, pair}), s = at(*table, {position, half + pair});
  return first ? own * c - other * s : own * c + other * s;
}
/// x[token] into out[where...]: put(head, i, value) stores.
template <class Put>
void rope_quantize_part(const TensorView& x, DType to, double scale, int64_t token, const TensorView* table,
                        int64_t position, bool neox, Put put_element) {
  for (int64_t h = 0; h < (x.rank() == 3 ? x.size(1) : 1); ++h)
    for (int64_t i = 0; i < x.size(-1); ++i)
      put_element(h, i, saturate(to, rope_element(x, token, h, i, table, position, neox) * scale));
}
inline void rope_quantize_rows(const TensorView& x, const TensorView& out, double scale, const TensorView* table,
                               const TensorView& pos, bool neox) {
  for (int64_t t = 0; t < x.size(0); ++t)
    rope_quantize_part(x, out.dtype(), scale, t, table, op::index_at(pos, t), neox,
                       [&](int64_t h, int64_t i, double v) {
                         if (out.rank() == 3)
                           put(out, {t, h, i}, v);
                         else
                           put(out, {t, i}, v);
                       });
}
inline void rope_quantize_fp8(const RopeQuantizeFp8& a) {
  const double sq = static_cast<float>(a.quant_scale_q), sk = static_cast<float>(a.quant_scale_kv);
  rope_quantize_rows(a.q_rope, *a.q_rope_out, sq, &a.cos_sin_cache, a.pos_ids, a.is_neox);
  rope_quantize_rows(a.k_rope, *a.k_rope_out, sk, &a.cos_sin_cache, a.pos_ids, a.is_neox);
  if (a.q_nope) rope_quantize_rows(*a.q_nope, *a.q_nope_out, sq, nullptr, a.pos_ids, a.is_neox);
  if (a.k_nope) rope_quantize_rows(*a.k_nope, *a.k_nope_out, sk, nullptr, a.pos_ids, a.is_neox);
}

/// Q of the tokens that are not padding; 0 for those that are.
inline void rope_quantize_query(const RopeQuantizeFp8Append& a, const TensorView& x, const TensorView& out,
                                bool rotate) {
  const double scale = static_cast<float>(a.quant_scale_q);
  for (int64_t t = 0; t < x.size(0); ++t) {
    const bool padding = op::index_at(a.batch_indices, t) < 0;
    const int64_t position = padding ? 0 : op::index_at(a.pos_ids, t);
    for (int64_t h = 0; h < x.size(1); ++h)
      for (int64_t i = 0; i < x.size(2); ++i) {
        const double v =
            padding ? 0 : rope_element(x, t, h, i, rotate ? &a.cos_sin_cache : nullptr, position, a.is_neox) * scale;
        put(out, {t, h, i}, saturate(out.dtype(), v));
      }
  }
}
/// One part of K, or V, to elements [shift, shift + width) of the heads of a cache plane.
inline void rope_quantize_cache(const RopeQuantizeFp8Append& a, const TensorView& x, const TensorView& cache,
                                int64_t shift, bool rotate) {
  const double scale = static_cast<float>(a.quant_scale_kv);
  const bool nhd = a.kv_layout == "NHD";
  for (int64_t t = 0; t < x.size(0); ++t) {
    const int64_t b = op::index_at(a.batch_indices, t), position = op::index_at(a.positions, t);
    if (b < 0) continue;
    const int64_t page = op::index_at(a.kv_indices, op::index_at(a.kv_indptr, b) + position / a.page_size),
                  entry = position % a.page_size;
    rope_quantize_part(x, cache.dtype(), scale, t, rotate ? &a.cos_sin_cache : nullptr, op::index_at(a.pos_ids, t),
                       a.is_neox, [&](int64_t h, int64_t i, double v) {
                         if (x.rank() == 2)
                           put(cache, {page, entry, shift + i}, v);
                         else if (nhd)
                           put(cache, {page, entry, h, shift + i}, v);
                         else
                           put(cache, {page, h, entry, shift + i}, v);
                       });
  }
}
inline void rope_quantize_fp8_append(const RopeQuantizeFp8Append& a) {
  rope_quantize_query(a, a.q_rope, *a.q_rope_out, true);
  if (a.q_nope) rope_quantize_query(a, *a.q_nope, *a.q_nope_out, false);
  const bool mla = a.k_rope.rank() == 2;
  const TensorView &first = a.paged_kv_cache.first, &second = a.paged_kv_cache.second;
  rope_quantize_cache(a, a.k_rope, mla ? second : first, 0, true);
  if (a.k_nope) rope_quantize_cache(a, *a.k_nope, first, mla ? 0 : a.k_rope.size(-1), false);
  if (a.v) rope_quantize_cache(a, *a.v, second, 0, false);
}

}  // namespace flashinfer::ref
