// SPDX-License-Identifier: Apache-2.0
// Sampling on the CPU. Sums over a row: blocks of 1024 elements over 64 lanes in f32, blocks added in order in double;
// inside the block where a draw lands, elements are added one by one in double. The order depends on the row alone.
#pragma once
#include "flashinfer/kernels/cpu/philox.h"
#include "flashinfer/kernels/cpu/select.h"
#include "flashinfer/ops/sampling/params.h"

namespace flashinfer::cpu {

inline constexpr int64_t kSumBlock = 1024;

/// What is above a value: how many and how much.
struct Above {
  int64_t count;
  double sum;
};

template <class T>
FI_VEC_INLINE float block_sum_above(const T* x, int64_t n, Vec low) {
  return sum_row(
      n,
      [&](Vec a, int64_t i) {
        const Vec v = load(x + i);
        return a + select(low < v, v, zero());
      },
      [&](Vec a, int64_t i, int64_t m) {
        const Vec v = load_n(x + i, m);
        return a + select(first_n(m) & (low < v), v, zero());
      });
}
template <class T>
inline Above above(const T* x, int64_t n, float value) {
  const Vec low = splat(value), one = splat(1.0f);
  Above r{0, 0};
  for (int64_t b = 0; b < n; b += kSumBlock) {
    const T* block = x + b;
    const int64_t len = n - b < kSumBlock ? n - b : kSumBlock;
    r.sum += static_cast<double>(block_sum_above(block, len, low));
    r.count += static_cast<int64_t>(sum_row(
        len, [&](Vec a, int64_t i) { return a + select(low < load(block + i), one, zero()); },
        [&](Vec a, int64_t i, int64_t m) {
          return a + select(first_n(m) & (low < load_n(block + i, m)), one, zero());
        }));
  }
  return r;
}

/// The first element above `low` (>= 0) whose inclusive running sum over such elements exceeds `target`; the last one
/// above `low` when rounding leaves none; -1 when nothing is above it.
template <class T>
inline int64_t draw(const T* x, int64_t n, float low, double target) {
  const Vec vlow = splat(low);
  double before = 0;
  int64_t last_block = -1;
  bool reached = false;
  for (int64_t b = 0; b < n; b += kSumBlock) {
    const double sum = static_cast<double>(block_sum_above(x + b, n - b < kSumBlock ? n - b : kSumBlock, vlow));
    if (!(sum > 0)) continue;
    last_block = b;
    reached = before + sum > target;
    if (reached) break;
    before += sum;
  }
  if (last_block < 0) return -1;
  const int64_t end = n - last_block < kSumBlock ? n : last_block + kSumBlock;
  int64_t last = -1;
  for (int64_t i = last_block; i < end; ++i) {
    const float v = to_f32(x[i]);
    if (!(v > low)) continue;
    last = i;
    before += static_cast<double>(v);
    if (reached && before > target) break;
  }
  return last;
}

/// True when some element is positive and none is NaN or infinite.
template <class T>
FI_VEC_INLINE bool usable(const T* x, int64_t n) {
  Mask bad = is_nan(zero());
  const Vec inf = splat(__builtin_inff());
  const float top = reduce_max(fold_row(
      n, zero(),
      [&](Vec a, int64_t i) {
        const Vec v = load(x + i);
        bad = bad | is_nan(v);
        return max(v, a);
      },
      [&](Vec a, int64_t i, int64_t m) {
        const Vec v = load_n(x + i, m);
        bad = bad | is_nan(v);
        return max(v, a);
      },
      [](Vec a, Vec b) { return max(a, b); }));
  return !any(bad) && top > 0.0f && !any(splat(top) == inf);
}

/// Rejection: draw above `low`; accept when both conditions hold for what is above the drawn value; else raise `low` by
/// bisection between the value and 1. The interval halves each round, so it ends. Draw number i of the row is number
/// offset + i.
template <class T>
inline int64_t draw_filtered(const T* x, int64_t n, int64_t k, double top_p, uint64_t seed, uint64_t subsequence,
                             uint64_t offset) {
  float low = 0.0f, high = 1.0f;
  const float top = max_row(x, n);
  if (top > high) high = top;  // not a distribution: still ends
  double mass = 1.0;
  int64_t token = -1;
  while (low < high) {
    const double u = static_cast<double>(philox_uniform(seed, subsequence, offset++));
    const int64_t t = draw(x, n, low, u * mass);
    if (t < 0) return token;
    token = t;
    const float a = to_f32(x[t]), b = (a + high) * 0.5f;
    const Above over_a = above(x, n, a);
    if (over_a.count < k && over_a.sum < top_p) return t;
    const Above over_b = above(x, n, b);
    if (over_b.count < k && over_b.sum < top_p) {
      low = a;
      high = b;
      mass = over_a.sum;
    } else {
      low = b;
      mass = over_b.sum;
    }
  }
  return token;
}

/// Keeps the elements that are at least the k-th largest (ties included), divided by their sum, in order of position.
template <class T>
inline int64_t keep_top(const T* x, int64_t n, int64_t k, uint64_t* scratch, float* kept, int32_t* position) {
  float least = 0.0f;
  if (k < n) {
    top_keys(x, n, k, false, scratch);
    uint64_t lowest = scratch[0];
    for (int64_t i = 1; i < k; ++i)
      if (scratch[i] < lowest) lowest = scratch[i];
    least = key_value(static_cast<uint32_t>(lowest >> 32));
  }
  int64_t m = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float v = to_f32(x[i]);
    if (!(v > 0.0f) || v < least) continue;
    kept[m] = v;
    position[m++] = static_cast<int32_t>(i);
  }
  const float sum = static_cast<float>(above(kept, m, 0.0f).sum);
  for (int64_t i = 0; i < m; ++i) kept[i] = kept[i] / sum;
  return m;
}

template <SamplingConfig C>
FI_VEC_INLINE int64_t sample_row(const SamplingParams& p, int64_t row, int64_t mapped, uint64_t* scratch) {
  using T = scalar_of_t<C.dtype>;
  const T* x = static_cast<const T*>(p.probs) + mapped * p.probs_stride;
  if (!usable(x, p.v)) return -1;
  const uint64_t seed = p.seed[row * p.seed_stride], offset = p.offset[row * p.offset_stride];
  const uint64_t subsequence = p.own_seed ? 0 : static_cast<uint64_t>(row);
  if (!p.top_k) return draw(x, p.v, 0.0f, static_cast<double>(philox_uniform(seed, subsequence, offset)));
  int64_t k = p.top_k[mapped * p.top_k_stride];
  if (k <= 0 || k > p.v) k = p.v;
  float top_p = p.top_p[mapped * p.top_p_stride];
  if (top_p <= 0.0f) return arg_max(x, p.v, false);
  if (top_p >= 1.0f) top_p = __builtin_inff();
  if (p.joint) return draw_filtered(x, p.v, k, static_cast<double>(top_p), seed, subsequence, offset);
  float* kept = reinterpret_cast<float*>(scratch + select_scratch(p.v));
  int32_t* position = reinterpret_cast<int32_t*>(kept + p.v);
  const int64_t m = keep_top(x, p.v, k, scratch, kept, position);
  const int64_t t = draw_filtered(kept, m, m + 1, static_cast<double>(top_p), seed, subsequence, offset);
  return t < 0 ? t : position[t];
}

template <SamplingConfig C>
void sample(const SamplingParams& p, int64_t task) {
  const int64_t begin = task * p.rows_per_task;
  const int64_t end = begin + p.rows_per_task < p.rows ? begin + p.rows_per_task : p.rows;
  for (int64_t r = begin; r < end; ++r) {
    int64_t mapped = r;
    if (p.indices)
      mapped = p.indices_wide ? static_cast<const int64_t*>(p.indices)[r] : static_cast<const int32_t*>(p.indices)[r];
    const int64_t t = sample_row<C>(p, r, mapped, p.scratch + task * p.scratch_words);
    const int64_t id = t < 0 ? 0 : t;
    if (p.samples_wide)
      static_cast<int64_t*>(p.samples)[r] = id;
    else
      static_cast<int32_t*>(p.samples)[r] = static_cast<int32_t>(id);
    if (p.valid) p.valid[r] = t >= 0;
  }
}

}  // namespace flashinfer::cpu
