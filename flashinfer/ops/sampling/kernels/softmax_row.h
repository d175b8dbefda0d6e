// SPDX-License-Identifier: Apache-2.0
// Softmax of a row in two passes. The first computes, for each block of 1024 elements, exp(x - the block's maximum),
// its maximum and its sum: one read from memory, which overlaps the exponentials. The second scales by exp(the block's
// maximum - the row's) / the row's sum, from the cache. Blocks start at fixed places, so a row may be split anywhere
// between them.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/common/select_scratch.h"
#include "flashinfer/kernels/cpu/exp.h"
#include "flashinfer/kernels/cpu/lanes.h"

namespace flashinfer::cpu {

struct SoftmaxBlocks {
  float* tops;
  float* sums;
};
inline SoftmaxBlocks softmax_blocks(float* words, int64_t v) { return {words, words + stats_blocks(v)}; }

/// top(p, n) is the maximum of a block, scaled(top) is stored in s.tops: the maximum of x / T; power(x, shift) is exp(x
/// / T - shift / T) for vectors, shift the maximum.
template <class T, class Top, class Scaled, class Power>
FI_VEC_INLINE void softmax_first_by(const T* x, float* y, int64_t begin, int64_t end, const SoftmaxBlocks& s,
                                    Top top_of, Scaled scaled, Power power) {
  for (int64_t b = begin; b < end; b += kStatsBlock) {
    const int64_t n = end - b < kStatsBlock ? end - b : kStatsBlock;
    const T* p = x + b;
    float* q = y + b;
    const float top = top_of(p, n);
    const Vec shift = splat(top > -__builtin_inff() ? top : 0.0f);  // a block of -inf: zeros
    s.tops[b / kStatsBlock] = scaled(top);
    s.sums[b / kStatsBlock] = sum_row(
        n,
        [&](Vec a, int64_t i) {
          __builtin_prefetch(p + i + kStatsBlock);  // the next block, while this one is computed
          const Vec e = power(load(p + i), shift);
          store(q + i, e);
          return a + e;
        },
        [&](Vec a, int64_t i, int64_t m) {
          const Vec e = power(load_n(p + i, m), shift);
          store_n(q + i, e, m);
          return a + select(first_n(m), e, zero());
        });
  }
}
/// Elements [begin, end), begin at a block's, by exp() alone: for samplers, whose arithmetic a GPU repeats operation by
/// operation.
template <class T>
FI_VEC_INLINE void softmax_first(const T* x, float* y, int64_t begin, int64_t end, const SoftmaxBlocks& s) {
  softmax_first_by(
      x, y, begin, end, s, [](const T* p, int64_t n) { return max_row(p, n); }, [](float top) { return top; },
      [](Vec v, Vec shift) { return exp(v - shift); });
}
/// The same of x / T, with fewer operations; last bits differ.
template <class T>
FI_VEC_INLINE void softmax_first(const T* x, float* y, int64_t begin, int64_t end, float inverse_temperature,
                                 const SoftmaxBlocks& s) {
  const float power_of_2 = inverse_temperature * 1.44269504f;
  if (power_of_2 > 0.0f && power_of_2 < __builtin_inff()) {
    const Vec by = splat(power_of_2);
    return softmax_first_by(
        x, y, begin, end, s, [](const T* p, int64_t n) { return max_row(p, n); },
        [&](float top) { return top * inverse_temperature; },
        [&](Vec v, Vec shift) { return exp2_falling((v - shift) * by); });
  }
  // x / T: a negative T reverses the order, others make all logits equal or infinite. A masked token stays masked at T
  // = 0, where 0 * -inf would be NaN.
  const Vec low = splat(-__builtin_inff()), inverse = splat(inverse_temperature);
  const auto scaled = [&](Vec v) { return select(v == low, low, v * inverse); };
  const auto top_of = [&](const T* p, int64_t n) {
    return reduce_max(fold_row(
        n, low, [&](Vec a, int64_t i) { return max(scaled(load(p + i)), a); },
        [&](Vec a, int64_t i, int64_t m) { return max(select(first_n(m), scaled(load_n(p + i, m)), low), a); },
        [](Vec a, Vec c) { return max(a, c); }));
  };
  softmax_first_by(
      x, y, begin, end, s, top_of, [](float top) { return top; },
      [&](Vec v, Vec shift) { return exp(scaled(v) - shift); });
}

/// Factors of the blocks, once all are known. Computed as vectors: one by one these exponentials took a tenth of a row
/// of 131072 on two threads.
struct SoftmaxScale {
  float top, inverse_sum;
  Vec of(Vec block_tops) const {
    const Vec low = splat(-__builtin_inff());
    return exp(select(low < block_tops, block_tops - splat(top), low)) * splat(inverse_sum);  // all masked: 0, not NaN
  }
};
/// `n` <= Vec::kLanes values of x.
FI_VEC_INLINE Vec load_some(const float* x, int64_t n) { return n >= Vec::kLanes ? load(x) : load_n(x, n); }
FI_VEC_INLINE SoftmaxScale softmax_scale(const SoftmaxBlocks& s, int64_t v) {
  const int64_t n = stats_blocks(v);
  SoftmaxScale r{max_row(s.tops, n), 1.0f};
  double sum = 0;
  for (int64_t b = 0; b < n; b += Vec::kLanes) {
    float down[Vec::kLanes];
    store(down, r.of(load_some(s.tops + b, n - b)));
    for (int64_t i = 0; i < Vec::kLanes && b + i < n; ++i)  // a block of -inf and NaN has a sum of NaN
      if (s.sums[b + i] != 0.0f) sum += static_cast<double>(s.sums[b + i]) * static_cast<double>(down[i]);
  }
  r.inverse_sum = sum == 0 ? 0.0f : static_cast<float>(1.0 / sum);
  return r;
}
/// `begin` is at a block's start.
FI_VEC_INLINE void softmax_second(float* y, int64_t begin, int64_t end, const SoftmaxBlocks& s,
                                  const SoftmaxScale& scale) {
  const int64_t first = begin / kStatsBlock, last = ceil_div(end, kStatsBlock);
  float by[Vec::kLanes];
  for (int64_t b = first; b < last; ++b) {
    const int64_t lane = (b - first) % Vec::kLanes;
    if (lane == 0) store(by, scale.of(load_some(s.tops + b, last - b)));
    if (by[lane] == 1.0f) continue;
    const Vec f = splat(by[lane]);
    float* q = y + b * kStatsBlock;
    const int64_t n = end - b * kStatsBlock < kStatsBlock ? end - b * kStatsBlock : kStatsBlock;
    write_row(
        q, n, [&](int64_t i) { return load(q + i) * f; }, [&](int64_t i, int64_t m) { return load_n(q + i, m) * f; });
  }
}

}  // namespace flashinfer::cpu
