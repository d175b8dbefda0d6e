// SPDX-License-Identifier: Apache-2.0
// Top-k and top-p as filters on the CPU: the threshold is found exactly without sorting, then one pass writes the row.
#pragma once
#include "flashinfer/kernels/cpu/select_threshold.h"
#include "flashinfer/ops/sampling/kernels/params.h"

namespace flashinfer::cpu {

/// y[i] = x[i] * scale where x[i] >= least, `other` elsewhere (NaN too).
template <class T, class U>
FI_VEC_INLINE void write_kept(const T* x, U* y, int64_t n, float least, float scale, float other) {
  const Vec low = splat(least), by = splat(scale), rest = splat(other);
  const auto kept = [&](Vec v) { return select(low <= v, v * by, rest); };
  write_row(
      y, n, [&](int64_t i) { return kept(load(x + i)); }, [&](int64_t i, int64_t m) { return kept(load_n(x + i, m)); });
}

/// The sum of the elements that reach `least` > 0.
template <class T>
FI_VEC_INLINE double kept_mass(const T* x, int64_t n, float least, const float* tops) {
  const Vec low = splat(least);
  double sum = 0;
  for (int64_t b = 0; b < n; b += kStatsBlock) {
    if (!(tops[b / kStatsBlock] >= least)) continue;
    sum += static_cast<double>(sum_row(
        n - b < kStatsBlock ? n - b : kStatsBlock,
        [&](Vec a, int64_t i) {
          const Vec v = load(x + b + i);
          return detail::add_where(low <= v, a, v);
        },
        [&](Vec a, int64_t i, int64_t left) {
          const Vec v = load_n(x + b + i, left);
          return detail::add_where(first_n(left) & (low <= v), a, v);
        }));
  }
  return sum;
}

template <class T, class U>
inline void filter_row(const FilterParams& p, int64_t r) {
  const T* x = static_cast<const T*>(p.input) + r * p.input_stride;
  U* y = static_cast<U*>(p.out) + r * p.out_stride;
  const FilterScratch at = filter_scratch(p.v);
  const BlockStats s = stats_at(p.scratch + at.row, p.v);
  float* values = p.scratch + at.values;
  uint32_t* positions = reinterpret_cast<uint32_t*>(p.scratch + at.positions);
  int64_t k = p.top_k ? p.top_k[r * p.top_k_stride] : p.v;
  if (k <= 0 || k > p.v) k = p.v;
  if (p.mask) {
    float least = -__builtin_inff();
    if (k < p.v) {
      block_stats<false>(x, 0, p.v, s);
      least = kth_value(x, p.v, s, k, values, positions);
    }
    return write_kept(x, y, p.v, least, 1.0f, -__builtin_inff());
  }
  block_stats<true>(x, 0, p.v, s);
  const int64_t blocks = stats_blocks(p.v);
  double sum = total(s.sums, blocks);
  if (!(sum > 0) || sum > 3.4028234663852886e38) return write_kept(x, y, p.v, __builtin_nanf(""), 0.0f, 0.0f);
  const float top_p = p.top_p ? p.top_p[r * p.top_p_stride] : 1.0f;
  float least = 0.0f;
  if (top_p <= 0.0f)
    least = top_of(s.tops, blocks);
  else if (top_p < 1.0f)
    least = mass_value(x, p.v, s, static_cast<double>(top_p), values, positions);
  else if (k < p.v)
    least = kth_value(x, p.v, s, k, values, positions);
  if (least > 0.0f)
    sum = kept_mass(x, p.v, least, s.tops);
  else
    least = 1.40129846e-45f;  // the smallest positive float: no other element has mass
  write_kept(x, y, p.v, least, static_cast<float>(1.0 / sum), 0.0f);
}

template <SamplingConfig C>
void filter(const FilterParams& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  const int64_t begin = task * p.rows_per_task;
  const int64_t end = begin + p.rows_per_task < p.rows ? begin + p.rows_per_task : p.rows;
  for (int64_t r = begin; r < end; ++r) {
    if (p.top_p)
      filter_row<T, float>(p, r);
    else
      filter_row<T, T>(p, r);
  }
}

}  // namespace flashinfer::cpu
