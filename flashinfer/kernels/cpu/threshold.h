// SPDX-License-Identifier: Apache-2.0
// The least value that passes a filter, without sorting the row: a value passes when fewer than `count` elements lie
// above it and their positive ones sum to less than `sum`. This is top-k (sum infinite), top-p (count infinite) and
// both at once; equal values pass or fail together.
//
// 256 elements at fixed distances tell where the answer lies, give or take two standard deviations; one pass counts and
// sums what is above that bracket and keeps what is inside (an eighth of the row at worst, expected). What is kept is
// narrowed in the same way until 256 are left, which are sorted. When the sample misleads, the side that holds the
// answer is kept instead; when all is inside the bracket, the range of values is halved.
#pragma once
#include "flashinfer/kernels/cpu/survey.h"

namespace flashinfer::cpu {

struct Filter {
  int64_t count;
  double sum;
  bool allows(const Above& a) const { return a.count < count && a.sum < sum; }
};

namespace detail {

inline constexpr int kSample = 256;

/// Of numbers without NaN.
inline void sort_descending(const float* in, float* out, int n) {
  for (int i = 0; i < n; ++i) {
    int rank = 0;
    for (int j = 0; j < n; ++j) rank += (in[j] > in[i]) | ((in[j] == in[i]) & (j < i));
    out[rank] = in[i];
  }
}

inline float positive(float v) { return v > 0.0f ? v : 0.0f; }

/// The answer among few candidates, of which the largest passes.
inline float last_allowed(const float* sorted, int n, Above above, const Filter& f) {
  float answer = sorted[0];
  for (int i = 0; i < n && f.allows(above); ++i) {
    answer = sorted[i];
    for (; i + 1 < n && sorted[i + 1] == answer; ++i) above.sum += static_cast<double>(positive(answer)), ++above.count;
    above.sum += static_cast<double>(positive(answer));
    ++above.count;
  }
  return answer;
}

struct Bracket {
  float low, high;
};
/// Where the answer lies by a sample, of which each element stands for n / 256; everywhere when there are few.
template <class T>
inline Bracket bracket(const T* c, int64_t n, const Filter& f, const Above& above) {
  if (n <= kSample) return {-__builtin_inff(), __builtin_inff()};
  float sample[kSample], sorted[kSample];
  for (int i = 0; i < kSample; ++i) {
    const float v = to_f32(c[n * (2 * i + 1) / (2 * kSample)]);
    sample[i] = v == v ? v : -__builtin_inff();
  }
  sort_descending(sample, sorted, kSample);
  const double each = static_cast<double>(n) / kSample;
  double count = static_cast<double>(above.count), sum = above.sum;
  int i = 0;
  for (; i < kSample && count < static_cast<double>(f.count) && sum < f.sum; ++i) {
    count += each;
    sum += each * static_cast<double>(positive(sorted[i]));
  }
  const int first = i - 18, last = i + 16;  // 16: two standard deviations of 128 among 256
  return {last < kSample ? sorted[last] : -__builtin_inff(), first >= 0 ? sorted[first] : __builtin_inff()};
}

struct Side {
  Above above;    // what is above the bracket
  Above inside;   // what is in it
  int64_t below;  // how many are below it (NaN is not)
};
/// Counts and sums c[0..n) by the bracket and keeps what is inside; `out` may be `c` itself.
template <class T>
FI_VEC_INLINE Side split(const T* c, int64_t n, Bracket b, float* out) {
  const Vec low = splat(b.low), high = splat(b.high);
  Side s{{}, {}, 0};
  for (int64_t block = 0; block < n; block += kSurveyBlock) {
    const int64_t end = n - block < kSurveyBlock ? n : block + kSurveyBlock;
    Vec over = zero(), in = zero();
    for (int64_t i = block; i < end; i += Vec::kLanes) {
      const int64_t left = end - i < Vec::kLanes ? end - i : Vec::kLanes;
      const Vec v = left == Vec::kLanes ? load(c + i) : load_n(c + i, left);
      const Mask valid = first_n(left), up = valid & (high < v), mid = valid & (low <= v) & (v <= high);
      const Vec p = max(v, zero());
      over += select(up, p, zero());
      in += select(mid, p, zero());
      s.above.count += __builtin_popcount(lane_bits(up));
      s.below += __builtin_popcount(lane_bits(valid & (v < low)));
      s.inside.count = append(mid, v, 0, out, nullptr, s.inside.count);
    }
    s.above.sum += static_cast<double>(reduce_add(over));
    s.inside.sum += static_cast<double>(reduce_add(in));
  }
  return s;
}
/// Keeps what is above `v`, or below it.
template <bool kUp, class T>
FI_VEC_INLINE int64_t keep_side(const T* c, int64_t n, float bound, float* out) {
  const Vec b = splat(bound);
  int64_t kept = 0;
  for (int64_t i = 0; i < n; i += Vec::kLanes) {
    const int64_t left = n - i < Vec::kLanes ? n - i : Vec::kLanes;
    const Vec v = left == Vec::kLanes ? load(c + i) : load_n(c + i, left);
    kept = append(first_n(left) & (kUp ? b < v : v < b), v, 0, out, nullptr, kept);
  }
  return kept;
}

/// One step: the candidates among c[0..n), in `out`; their number. `above` becomes what is above them.
template <class T>
FI_VEC_INLINE int64_t narrow(const T* c, int64_t n, Bracket b, const Filter& f, Above& above, float* out) {
  const Side s = split(c, n, b, out);
  const Above upper{above.count + s.above.count, above.sum + s.above.sum};
  if (!f.allows(upper)) return keep_side<true>(c, n, b.high, out);
  const Above all{upper.count + s.inside.count, upper.sum + s.inside.sum};
  if (s.below > 0 && f.allows(all)) {
    above = all;
    return keep_side<false>(c, n, b.low, out);
  }
  above = upper;
  return s.inside.count;
}

}  // namespace detail

/// The least element of x[0..n) that passes, -inf when all are NaN. f.count >= 1, f.sum > 0. `c` and `next` have n + 64
/// words each; `next` may be x itself.
template <class T>
inline float threshold(const T* x, int64_t n, const Filter& f, float* c, float* next) {
  Above above;
  int64_t m = detail::narrow(x, n, detail::bracket(x, n, f, above), f, above, c);
  bool stuck = m == n;
  while (m > detail::kSample) {
    detail::Bracket b = detail::bracket(c, m, f, above);
    if (stuck) {  // halve the range of keys instead
      float low = c[0], high = c[0];
      for (int64_t i = 1; i < m; ++i) low = c[i] < low ? c[i] : low, high = c[i] > high ? c[i] : high;
      if (low == high) return high;
      const uint32_t k = value_key(low);
      b = {-__builtin_inff(), key_value(k + (value_key(high) - k) / 2)};
    }
    const int64_t kept = detail::narrow(c, m, b, f, above, next);
    stuck = kept == m;
    m = kept;
    float* swap = c;
    c = next;
    next = swap;
  }
  if (m == 0) return -__builtin_inff();
  detail::sort_descending(c, next, static_cast<int>(m));
  return detail::last_allowed(next, static_cast<int>(m), above, f);
}

/// The k-th largest element of a surveyed row; `values` and `positions` as in collect().
template <class T>
inline float kth_value(const T* x, int64_t n, const Survey& s, int64_t k, float* values, uint32_t* positions) {
  float* other = reinterpret_cast<float*>(positions);
  const float bound = reached_by(s.maxima, survey_groups(n), k);
  if (!(bound > -__builtin_inff())) return threshold(x, n, {k, __builtin_inf()}, values, other);
  const int64_t m = collect(x, n, bound, s.tops, values, positions);
  return threshold(values, m, {k, __builtin_inf()}, other, values);
}

}  // namespace flashinfer::cpu
