// SPDX-License-Identifier: Apache-2.0
// Norms on the CPU. A row is read two or three times; at 4096 bf16 it stays in L1 between the passes, so memory traffic
// is one read and one write. Sums use the order of kernels/cpu/lanes.h, independent of other rows.
#pragma once
#include "flashinfer/kernels/cpu/lanes.h"
#include "flashinfer/kernels/cpu/narrow.h"
#include "flashinfer/ops/norm/kernels/params.h"

namespace flashinfer::cpu {

template <class F>
FI_VEC_INLINE void for_rows(const NormParams& p, int64_t task, F f) {
  const int64_t begin = task * p.rows_per_task;
  const int64_t end = begin + p.rows_per_task < p.rows ? begin + p.rows_per_task : p.rows;
  for (int64_t r = begin; r < end; ++r) {
    const int64_t a = p.inner == 1 ? r : r / p.inner, b = r - a * p.inner;
    f(a * p.input_stride[0] + b * p.input_stride[1], a * p.residual_stride[0] + b * p.residual_stride[1],
      a * p.out_stride[0] + b * p.out_stride[1]);
  }
}

/// Elements of a row; with kAdd those of input + residual in f32, unrounded.
template <class T, bool kAdd>
struct NormRow {
  const T* x;
  T* residual;
  FI_VEC_INLINE Vec at(int64_t i) const { return kAdd ? load(x + i) + load(residual + i) : load(x + i); }
  FI_VEC_INLINE Vec at(int64_t i, int64_t n) const {
    return kAdd ? load_n(x + i, n) + load_n(residual + i, n) : load_n(x + i, n);
  }
#if defined(FI_NARROW_AVX512)
  FI_VEC_INLINE Split split(int64_t i) const {
    const Split v = load_split(x + i);
    if constexpr (!kAdd) return v;
    const Split r = load_split(residual + i);
    return {v.even + r.even, v.odd + r.odd};
  }
#endif
  FI_VEC_INLINE void keep(int64_t i, Vec v) const {
    if constexpr (kAdd) store(residual + i, v);
  }
  FI_VEC_INLINE void keep(int64_t i, Vec v, int64_t n) const {
    if constexpr (kAdd) store_n(residual + i, v, n);
  }
};

template <class Row>
FI_VEC_INLINE float sum_of_squares(const Row& row, int64_t d) {
  return sum_row(
      d,
      [&](Vec a, int64_t i) {
        const Vec v = row.at(i);
        return fma(v, v, a);
      },
      [&](Vec a, int64_t i, int64_t n) {
        const Vec v = row.at(i, n);
        return fma(v, v, a);
      });
}
#if defined(FI_NARROW_AVX512)
/// The same sum in the same order to the bit, with even and odd elements in separate vectors: two operations for 16
/// elements instead of three.
template <bool kAdd>
FI_VEC_INLINE float sum_of_squares(const NormRow<bf16_t, kAdd>& row, int64_t d) {
  Split a{zero(), zero()}, b = a;  // elements 0 to 31 and 32 to 63 of each 64
  const auto add = [&](const NormRow<bf16_t, kAdd>& from, int64_t i) {
    const Split v = from.split(i), w = from.split(i + 32);
    a = {fma(v.even, v.even, a.even), fma(v.odd, v.odd, a.odd)};
    b = {fma(w.even, w.even, b.even), fma(w.odd, w.odd, b.odd)};
  };
  int64_t i = 0;
  for (; i + 64 <= d; i += 64) add(row, i);
  if (i < d) {  // zeros do not change a sum of squares
    bf16_t rest[kAdd ? 2 : 1][64] = {};
    memcpy(rest[0], row.x + i, static_cast<size_t>(d - i) * sizeof(bf16_t));
    if constexpr (kAdd) memcpy(rest[1], row.residual + i, static_cast<size_t>(d - i) * sizeof(bf16_t));
    add({rest[0], kAdd ? rest[kAdd] : nullptr}, 0);
  }
  return reduce_add(a.even + b.even) + reduce_add(a.odd + b.odd);
}
#endif
/// 1 / sqrt(mean(x^2) + eps).
template <class Row>
FI_VEC_INLINE Vec rms_factor(const Row& row, int64_t d, double eps) {
  return splat(1.0f / __builtin_sqrtf(sum_of_squares(row, d) / static_cast<float>(d) + static_cast<float>(eps)));
}

/// out = x * (1 / sqrt(mean(x^2) + eps)) * (weight + gemma); with fused_add residual becomes x rounded. The second pass
/// adds again instead of storing x: input and residual of the row are in L1 by then.
template <NormConfig C>
void rmsnorm(const NormParams& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  using W = scalar_of_t<C.weight>;
  const W* w = static_cast<const W*>(p.weight);
  const Vec one = splat(1.0f);
  for_rows(p, task, [&](int64_t input_at, int64_t residual_at, int64_t out_at) {
    const NormRow<T, C.fused_add> row{static_cast<const T*>(p.input) + input_at,
                                      C.fused_add ? static_cast<T*>(p.residual) + residual_at : nullptr};
    const Vec scale = rms_factor(row, p.d, p.eps);
    write_row(
        static_cast<T*>(p.out) + out_at, p.d,
        [&](int64_t i) {
          const Vec v = row.at(i), g = C.gemma ? load(w + i) + one : load(w + i);
          row.keep(i, v);
          return v * scale * g;
        },
        [&](int64_t i, int64_t n) {
          const Vec v = row.at(i, n), g = C.gemma ? load_n(w + i, n) + one : load_n(w + i, n);
          row.keep(i, v, n);
          return v * scale * g;
        });
  });
}

/// Mean and 1 / sqrt(var + eps) of a row, population variance about the mean (two passes: no cancellation).
template <class T>
struct LayerNormRow {
  const T* x;
  Vec mean, scale;
  FI_VEC_INLINE Vec at(int64_t i, Vec w, Vec b) const { return fma((load(x + i) - mean) * scale, w, b); }
  FI_VEC_INLINE Vec at(int64_t i, int64_t n, Vec w, Vec b) const {
    return fma((load_n(x + i, n) - mean) * scale, w, b);
  }
};
template <class T>
FI_VEC_INLINE LayerNormRow<T> layernorm_row(const T* x, int64_t d, double eps) {
  const float n_inv = 1.0f / static_cast<float>(d);
  const Vec mean = splat(n_inv * sum_row(
                                     d, [&](Vec a, int64_t i) { return a + load(x + i); },
                                     [&](Vec a, int64_t i, int64_t n) { return a + load_n(x + i, n); }));
  const float var = n_inv * sum_row(
                                d,
                                [&](Vec a, int64_t i) {
                                  const Vec v = load(x + i) - mean;
                                  return fma(v, v, a);
                                },
                                [&](Vec a, int64_t i, int64_t n) {
                                  const Vec v = select(first_n(n), load_n(x + i, n) - mean, zero());
                                  return fma(v, v, a);
                                });
  return {x, mean, splat(1.0f / __builtin_sqrtf(var + static_cast<float>(eps)))};
}

/// out = (x - mean) * (1 / sqrt(var + eps)) * weight + beta.
template <LayerNormConfig C>
void layernorm(const NormParams& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  const float *w = static_cast<const float*>(p.weight), *b = static_cast<const float*>(p.beta);
  for_rows(p, task, [&](int64_t input_at, int64_t, int64_t out_at) {
    const LayerNormRow<T> row = layernorm_row(static_cast<const T*>(p.input) + input_at, p.d, p.eps);
    write_row(
        static_cast<T*>(p.out) + out_at, p.d, [&](int64_t i) { return row.at(i, load(w + i), load(b + i)); },
        [&](int64_t i, int64_t n) { return row.at(i, n, load_n(w + i, n), load_n(b + i, n)); });
  });
}

}  // namespace flashinfer::cpu
