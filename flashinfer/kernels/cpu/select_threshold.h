// SPDX-License-Identifier: Apache-2.0
// The least value that passes a filter, without sorting the row: a value passes when fewer than `count` elements lie
// above it, or when the positive ones above it sum to less than `sum`. Equal values pass or fail together.
//
// 128 elements at fixed distances give 8 pivots; one pass computes the exact number or sum above each, which brackets
// the answer between two of them (a fifth of the row at most, expected), and a second pass keeps those elements. This
// repeats until 256 are left, which are sorted. When all lie between the same two pivots, the range of values is halved
// instead. Sums of the sample itself would not do: a row's mass may be concentrated in a few tokens.
#pragma once
#include "flashinfer/kernels/cpu/block_stats.h"

namespace flashinfer::cpu {

namespace detail {

inline constexpr int kSample = 128, kPivots = 8, kFew = 256;

/// Of numbers without NaN.
inline void sort_descending(const float* in, float* out, int n) {
  for (int i = 0; i < n; ++i) {
    int rank = 0;
    for (int j = 0; j < n; ++j) rank += (in[j] > in[i]) | ((in[j] == in[i]) & (j < i));
    out[rank] = in[i];
  }
}

inline float positive(float v) { return v > 0.0f ? v : 0.0f; }

/// The answer among a few sorted candidates, of which the largest passes.
inline float last_allowed(const float* sorted, int n, double above, bool counts, double limit) {
  float answer = sorted[0];
  for (int i = 0; i < n && above < limit;) {
    answer = sorted[i];
    for (; i < n && sorted[i] == answer; ++i) above += counts ? 1.0 : static_cast<double>(positive(answer));
  }
  return answer;
}

/// Pivots in descending order; closer together where the boundary of a row's mass or of a small k is likely.
template <class T>
inline void find_pivots(const T* c, int64_t n, float* pivots) {
  constexpr int kRank[kPivots] = {1, 4, 12, 25, 42, 60, 84, 108};
  float sample[kSample], sorted[kSample];
  for (int i = 0; i < kSample; ++i) {
    const float v = to_f32(c[n * (2 * i + 1) / (2 * kSample)]);
    sample[i] = v == v ? v : -__builtin_inff();
  }
  sort_descending(sample, sorted, kSample);
  for (int i = 0; i < kPivots; ++i) pivots[i] = sorted[kRank[i]];
}

/// acc + v in the lanes of m.
FI_VEC_INLINE Vec add_where(Mask m, Vec acc, Vec v) {
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
  return {_mm512_mask_add_ps(acc.r, m.r, acc.r, v.r)};
#else
  return acc + select(m, v, zero());
#endif
}

/// The number or the sum of the elements above each pivot.
template <bool kCounts, class T>
FI_VEC_INLINE void tally(const T* c, int64_t n, const float* pivots, double* out) {
  for (int i = 0; i < kPivots; ++i) out[i] = 0;
  const Vec one = splat(1.0f);
  Vec low[kPivots];
  for (int i = 0; i < kPivots; ++i) low[i] = splat(pivots[i]);
  for (int64_t block = 0; block < n; block += kStatsBlock) {
    const int64_t end = n - block < kStatsBlock ? n : block + kStatsBlock;
    Vec acc[kPivots];
    for (int i = 0; i < kPivots; ++i) acc[i] = zero();
    int64_t i = block;
    for (; i + Vec::kLanes <= end; i += Vec::kLanes) {
      const Vec v = load(c + i), add = kCounts ? one : max(v, zero());
#pragma GCC unroll 8
      for (int j = 0; j < kPivots; ++j) acc[j] = add_where(low[j] < v, acc[j], add);
    }
    if (i < end) {
      const Vec v = load_n(c + i, end - i), add = kCounts ? one : max(v, zero());
      const Mask valid = first_n(end - i);
      for (int j = 0; j < kPivots; ++j) acc[j] = add_where(valid & (low[j] < v), acc[j], add);
    }
    for (int j = 0; j < kPivots; ++j) out[j] += static_cast<double>(reduce_add(acc[j]));
  }
}

/// The elements in (low, high].
template <class T>
FI_VEC_INLINE int64_t keep_between(const T* c, int64_t n, float low, float high, bool lowest, float* out) {
  const Vec l = splat(low), h = splat(high);
  int64_t kept = 0;
  for (int64_t i = 0; i < n; i += Vec::kLanes) {
    const int64_t left = n - i < Vec::kLanes ? n - i : Vec::kLanes;
    const Vec v = left == Vec::kLanes ? load(c + i) : load_n(c + i, left);
    const Mask m = first_n(left) & (lowest ? l <= v : l < v) & (v <= h);
    if (any(m)) kept = append(m, v, 0, out, nullptr, kept);
  }
  return kept;
}

/// The elements that reach `bound` > 0, and their sum.
template <class T>
FI_VEC_INLINE int64_t keep_reaching(const T* x, int64_t n, float bound, const float* tops, float* out, double& sum) {
  const Vec low = splat(bound);
  int64_t kept = 0;
  sum = 0;
  for (int64_t b = 0; b < n; b += kStatsBlock) {
    if (!(tops[b / kStatsBlock] >= bound)) continue;
    const int64_t len = n - b < kStatsBlock ? n - b : kStatsBlock;
    const auto keep = [&](Vec a, Vec v, Mask m) {
      if (!any(m)) return a;
      kept = append(m, v, 0, out, nullptr, kept);
      return add_where(m, a, v);
    };
    sum += static_cast<double>(sum_row(
        len,
        [&](Vec a, int64_t i) {
          const Vec v = load(x + b + i);
          return keep(a, v, low <= v);
        },
        [&](Vec a, int64_t i, int64_t left) {
          const Vec v = load_n(x + b + i, left);
          return keep(a, v, first_n(left) & (low <= v));
        }));
  }
  return kept;
}

/// The sum of the maxima that reach `bound`.
inline double sum_reaching(const float* maxima, int64_t groups, float bound) {
  Vec sum = zero();
  for (int64_t i = 0; i < groups; i += Vec::kLanes) {
    const Vec v = load(maxima + i);
    sum = add_where(splat(bound) <= v, sum, v);
  }
  return static_cast<double>(reduce_add(sum));
}

/// One step: writes the candidates among c[0..n) to `out` and returns their number. `above` becomes what is above them.
template <class T>
FI_VEC_INLINE int64_t narrow(const T* c, int64_t n, const float* pivots, bool counts, double limit, double& above,
                             float* out) {
  double over[kPivots];
  if (counts)
    tally<true>(c, n, pivots, over);
  else
    tally<false>(c, n, pivots, over);
  int passed = -1;
  while (passed + 1 < kPivots && above + over[passed + 1] < limit) ++passed;
  const bool lowest = passed + 1 == kPivots;
  const float low = lowest ? -__builtin_inff() : pivots[passed + 1],
              high = passed < 0 ? __builtin_inff() : pivots[passed];
  if (passed >= 0) above += over[passed];
  return keep_between(c, n, low, high, lowest, out);
}

inline void pivots_between(const float* c, int64_t n, float* pivots, bool& same) {
  float low = c[0], high = c[0];
  for (int64_t i = 1; i < n; ++i) low = c[i] < low ? c[i] : low, high = c[i] > high ? c[i] : high;
  same = low == high;
  const uint32_t a = value_key(low), b = value_key(high);
  for (int i = 0; i < kPivots; ++i)
    pivots[i] =
        key_value(a + static_cast<uint32_t>(uint64_t{b - a} * static_cast<uint64_t>(kPivots - i) / (kPivots + 1)));
}

}  // namespace detail

/// The least element of x[0..n) that passes, -inf when all are NaN. One of f.count >= 1 and f.sum > 0 is off. `c` and
/// `next` have n + 64 words each; `next` may be x itself.
template <class T>
inline float threshold(const T* x, int64_t n, const Filter& f, float* c, float* next) {
  const bool counts = f.count <= n;
  const double limit = counts ? static_cast<double>(f.count) : f.sum;
  double above = 0;
  float pivots[detail::kPivots];
  detail::find_pivots(x, n, pivots);
  int64_t m = detail::narrow(x, n, pivots, counts, limit, above, c);
  bool stuck = m == n;
  while (m > detail::kFew) {
    if (stuck) {  // equal samples
      bool same;
      detail::pivots_between(c, m, pivots, same);
      if (same) return c[0];
    } else {
      detail::find_pivots(c, m, pivots);
    }
    const int64_t kept = detail::narrow(c, m, pivots, counts, limit, above, next);
    stuck = kept == m;
    m = kept;
    float* swap = c;
    c = next;
    next = swap;
  }
  if (m == 0) return -__builtin_inff();
  detail::sort_descending(c, next, static_cast<int>(m));
  return detail::last_allowed(next, static_cast<int>(m), above, counts, limit);
}

/// The k-th largest element of a row with statistics; `values` and `positions` as in collect().
template <class T>
inline float kth_value(const T* x, int64_t n, const BlockStats& s, int64_t k, float* values, uint32_t* positions) {
  float* other = reinterpret_cast<float*>(positions);
  const float bound = reached_by(s.maxima, stats_groups(n), k);
  if (!(bound > -__builtin_inff())) return threshold(x, n, {k, __builtin_inf()}, values, other);
  const int64_t m = collect(x, n, bound, s.tops, values, positions);
  return threshold(values, m, {k, __builtin_inf()}, other, values);
}

/// The least element with less than `mass` above it. A peaked row is decided by the few values above a bound that 512
/// reach, most others by the ninth of the row that reaches the smallest group maximum. The sum of the maxima above a
/// bound tells, without reading the row, whether that bound can suffice: of the 512 values most are maxima, of a ninth
/// of the row an eighth is.
template <class T>
inline float mass_value(const T* x, int64_t n, const BlockStats& s, double mass, float* values, uint32_t* positions) {
  float* other = reinterpret_cast<float*>(positions);
  const int64_t groups = stats_groups(n);
  const int64_t reaching[] = {512, groups};
  const double share[] = {0.5, 0.125};
  for (int i = 0; i < 2; ++i) {
    const float bound = reached_by(s.maxima, groups, reaching[i]);
    if (!(bound > 0.0f) || detail::sum_reaching(s.maxima, groups, bound) < share[i] * mass) continue;
    double sum;
    const int64_t m = detail::keep_reaching(x, n, bound, s.tops, values, sum);
    if (sum >= mass) return threshold(values, m, {m + 1, mass}, other, values);
  }
  return threshold(x, n, {n + 1, mass}, values, other);
}

}  // namespace flashinfer::cpu
