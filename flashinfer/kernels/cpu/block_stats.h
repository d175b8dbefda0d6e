// SPDX-License-Identifier: Apache-2.0
// Block statistics of a row of values, computed in one pass, let later passes skip most of it. Each block of 1024
// elements gets the sum of its positive elements and its maximum; each span of 4096 elements gets 64 maxima (of every
// 64th element), whose k-th largest is a bound that at least k elements reach. Results depend on the row alone: its
// chunks may be processed by any threads.
//
// Measured (Zen 4, 131072 f32): this pass runs at memory speed; a pass over the cached row that only compares takes a
// fifth of that, and skips blocks below its threshold.
#pragma once
#include "flashinfer/kernels/common/select_types.h"
#include "flashinfer/kernels/cpu/lanes.h"

namespace flashinfer::cpu {

/// One bit for each lane.
FI_VEC_INLINE uint32_t lane_bits(Mask m) {
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
  return m.r;
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
  return static_cast<uint32_t>(_mm256_movemask_ps(m.r));
#else
  return static_cast<uint32_t>((m.r[0] & 1) | (m.r[1] & 2) | (m.r[2] & 4) | (m.r[3] & 8));
#endif
}

/// Statistics of elements [begin, end) of a row; begin is a multiple of kStatsSpan.
template <bool kSums, class T>
FI_VEC_INLINE void block_stats(const T* x, int64_t begin, int64_t end, const BlockStats& s) {
  static_assert(kRowLanes == 64);
  const Vec low = splat(-__builtin_inff());
  for (int64_t span = begin; span < end; span += kStatsSpan) {
    Vec maxima[kRowVecs];
    for (int j = 0; j < kRowVecs; ++j) maxima[j] = low;
    for (int64_t b = span; b < end && b < span + kStatsSpan; b += kStatsBlock) {
      const int64_t n = end - b < kStatsBlock ? end - b : kStatsBlock;
      const T* p = x + b;
      Vec sum[kRowVecs], top[kRowVecs];
      for (int j = 0; j < kRowVecs; ++j) sum[j] = zero(), top[j] = low;
      // max(zero, v) keeps a NaN, max(v, top) drops it.
      int64_t i = 0;
      for (; i + kRowLanes <= n; i += kRowLanes) {
#pragma GCC unroll 16
        for (int j = 0; j < kRowVecs; ++j) {
          const Vec v = load(p + i + j * Vec::kLanes);
          top[j] = max(v, top[j]);
          if constexpr (kSums) sum[j] += max(zero(), v);
        }
      }
#pragma GCC unroll 16
      for (int j = 0; j < kRowVecs; ++j, i += Vec::kLanes) {
        if (i >= n) break;
        const int64_t left = n - i < Vec::kLanes ? n - i : Vec::kLanes;
        const Vec v = load_n(p + i, left);
        top[j] = max(select(first_n(left), v, low), top[j]);
        if constexpr (kSums) sum[j] += max(zero(), v);
      }
#pragma GCC unroll 16
      for (int j = 0; j < kRowVecs; ++j) maxima[j] = max(top[j], maxima[j]);
      for (int w = kRowVecs / 2; w > 0; w /= 2)
        for (int j = 0; j < w; ++j) {
          top[j] = max(top[j], top[j + w]);
          if constexpr (kSums) sum[j] = sum[j] + sum[j + w];
        }
      s.tops[b / kStatsBlock] = reduce_max(top[0]);
      if constexpr (kSums) s.sums[b / kStatsBlock] = reduce_add(sum[0]);
    }
    for (int j = 0; j < kRowVecs; ++j) store(s.maxima + span / kStatsSpan * kRowLanes + j * Vec::kLanes, maxima[j]);
  }
}

/// The sum of block sums, in double, in order.
inline double total(const float* sums, int64_t blocks) {
  double t = 0;
  for (int64_t b = 0; b < blocks; ++b) t += static_cast<double>(sums[b]);
  return t;
}
inline float top_of(const float* tops, int64_t blocks) {
  float t = -__builtin_inff();
  for (int64_t b = 0; b < blocks; ++b) t = tops[b] > t ? tops[b] : t;
  return t;
}

FI_VEC_INLINE int64_t count_reaching(const float* x, int64_t n, float bound) {  // n is a multiple of 64
  const Vec low = splat(bound);
  int64_t count = 0;
  for (int64_t i = 0; i < n; i += Vec::kLanes) count += __builtin_popcount(lane_bits(low <= load(x + i)));
  return count;
}

/// A value that at least k elements reach, because k of the maxima do. Few more than k elements reach it while k is
/// small against the number of groups; with k equal to it, a ninth of the row. -inf when k is larger.
FI_VEC_INLINE float reached_by(const float* maxima, int64_t groups, int64_t k) {
  if (k > groups) return -__builtin_inff();
  Vec least = load(maxima), most = least;
  for (int64_t i = Vec::kLanes; i < groups; i += Vec::kLanes) {
    least = min(load(maxima + i), least);
    most = max(load(maxima + i), most);
  }
  uint32_t low = value_key(reduce_min(least)), high = value_key(reduce_max(most)) + 1;
  while (high - low > 1) {  // count_reaching(low) >= k > count_reaching(high)
    const uint32_t mid = low + (high - low) / 2;
    const int64_t c = count_reaching(maxima, groups, key_value(mid));
    if (c < k) {
      high = mid;
      continue;
    }
    low = mid;
    if (c <= k + k / 8) break;
  }
  return key_value(low);
}

/// Appends the lanes of `m` and their positions (first + lane). Writes whole vectors.
FI_VEC_INLINE int64_t append(Mask m, Vec v, uint32_t first, float* values, uint32_t* positions, int64_t found) {
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i at = _mm512_add_epi32(lane, _mm512_set1_epi32(static_cast<int>(first)));
  // Compress into a register and store all of it: the form with a memory operand takes 130 cycles on Zen 4.
  _mm512_storeu_ps(values + found, _mm512_maskz_compress_ps(m.r, v.r));
  if (positions) _mm512_storeu_si512(positions + found, _mm512_maskz_compress_epi32(m.r, at));
  return found + __builtin_popcount(m.r);
#else
  float lane[Vec::kLanes];
  store(lane, v);
  for (uint32_t bits = lane_bits(m); bits; bits &= bits - 1) {
    const int j = __builtin_ctz(bits);
    values[found] = lane[j];
    if (positions) positions[found] = first + static_cast<uint32_t>(j);
    ++found;
  }
  return found;
#endif
}

/// The elements that are at least `bound` and their positions, in order; `tops` may be null.
template <class T>
FI_VEC_INLINE int64_t collect(const T* x, int64_t n, float bound, const float* tops, float* values,
                              uint32_t* positions) {
  const Vec low = splat(bound);
  int64_t found = 0;
  constexpr int64_t L = Vec::kLanes;
  for (int64_t b = 0; b < n; b += kStatsBlock) {
    if (tops && tops[b / kStatsBlock] < bound) continue;
    const int64_t end = n - b < kStatsBlock ? n : b + kStatsBlock;
    int64_t i = b;
    for (; i + 4 * L <= end; i += 4 * L) {
      const Vec v0 = load(x + i), v1 = load(x + i + L), v2 = load(x + i + 2 * L), v3 = load(x + i + 3 * L);
      const Mask m0 = low <= v0, m1 = low <= v1, m2 = low <= v2, m3 = low <= v3;
      if (!any((m0 | m1) | (m2 | m3))) continue;
      const uint32_t at = static_cast<uint32_t>(i);
      found = append(m0, v0, at, values, positions, found);
      found = append(m1, v1, at + L, values, positions, found);
      found = append(m2, v2, at + 2 * L, values, positions, found);
      found = append(m3, v3, at + 3 * L, values, positions, found);
    }
    for (; i < end; i += L) {
      const int64_t left = end - i < L ? end - i : L;
      const Vec v = load_n(x + i, left);
      found = append(first_n(left) & (low <= v), v, static_cast<uint32_t>(i), values, positions, found);
    }
  }
  return found;
}

/// The elements above `value`; `sums` receives their sum for each block. Blocks whose maximum (`tops`) is not above are
/// not read.
template <class T>
FI_VEC_INLINE Above above(const T* x, int64_t n, float value, const float* tops, float* sums) {
  const Vec low = splat(value);
  Above r;
  for (int64_t b = 0; b < n; b += kStatsBlock) {
    float& out = sums[b / kStatsBlock];
    out = 0.0f;
    if (!(tops[b / kStatsBlock] > value)) continue;
    const T* p = x + b;
    const int64_t len = n - b < kStatsBlock ? n - b : kStatsBlock;
    int64_t count = 0;
    out = sum_row(
        len,
        [&](Vec a, int64_t i) {
          const Vec v = load(p + i);
          const Mask m = low < v;
          count += __builtin_popcount(lane_bits(m));
          return a + select(m, max(v, zero()), zero());
        },
        [&](Vec a, int64_t i, int64_t left) {
          const Vec v = load_n(p + i, left);
          const Mask m = first_n(left) & (low < v);
          count += __builtin_popcount(lane_bits(m));
          return a + select(m, max(v, zero()), zero());
        });
    r.count += count;
    r.sum += static_cast<double>(out);
  }
  return r;
}

}  // namespace flashinfer::cpu
