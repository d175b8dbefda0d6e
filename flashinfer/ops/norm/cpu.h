// SPDX-License-Identifier: Apache-2.0
// Norms on the CPU. A row is read two or three times; at 4096 bf16 it stays in L1 between the passes, so memory sees
// one read and one write. Sums are taken in the order of kernels/cpu/lanes.h, whatever the rows around it.
#pragma once
#include "flashinfer/kernels/cpu/lanes.h"
#include "flashinfer/ops/norm/params.h"

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

/// out = x * (1 / sqrt(mean(x^2) + eps)) * (weight + gemma). With fused_add, x is input + residual in f32, never
/// rounded; residual becomes x rounded. The second pass adds again instead of keeping x: input and residual of a row
/// are in L1 by then.
template <NormConfig C>
void rmsnorm(const NormParams& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  using W = scalar_of_t<C.weight>;
  const W* w = static_cast<const W*>(p.weight);
  const Vec one = splat(1.0f);
  for_rows(p, task, [&](int64_t input_at, int64_t residual_at, int64_t out_at) {
    const T* x = static_cast<const T*>(p.input) + input_at;
    T* s = C.fused_add ? static_cast<T*>(p.residual) + residual_at : nullptr;
    const auto value = [&](int64_t i) { return C.fused_add ? load(x + i) + load(s + i) : load(x + i); };
    const auto value_n = [&](int64_t i, int64_t n) {
      return C.fused_add ? load_n(x + i, n) + load_n(s + i, n) : load_n(x + i, n);
    };
    const float sum = sum_row(
        p.d,
        [&](Vec a, int64_t i) {
          const Vec v = value(i);
          return fma(v, v, a);
        },
        [&](Vec a, int64_t i, int64_t n) {
          const Vec v = value_n(i, n);
          return fma(v, v, a);
        });
    const Vec scale = splat(1.0f / __builtin_sqrtf(sum / static_cast<float>(p.d) + static_cast<float>(p.eps)));
    write_row(
        static_cast<T*>(p.out) + out_at, p.d,
        [&](int64_t i) {
          const Vec v = value(i), g = C.gemma ? load(w + i) + one : load(w + i);
          if constexpr (C.fused_add) store(s + i, v);
          return v * scale * g;
        },
        [&](int64_t i, int64_t n) {
          const Vec v = value_n(i, n), g = C.gemma ? load_n(w + i, n) + one : load_n(w + i, n);
          if constexpr (C.fused_add) store_n(s + i, v, n);
          return v * scale * g;
        });
  });
}

/// out = (x - mean) * (1 / sqrt(var + eps)) * weight + beta, population variance about the mean (two passes: no
/// cancellation).
template <LayerNormConfig C>
void layernorm(const NormParams& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  const float *w = static_cast<const float*>(p.weight), *b = static_cast<const float*>(p.beta);
  for_rows(p, task, [&](int64_t input_at, int64_t, int64_t out_at) {
    const T* x = static_cast<const T*>(p.input) + input_at;
    const float n_inv = 1.0f / static_cast<float>(p.d);
    const Vec mean = splat(n_inv * sum_row(
                                       p.d, [&](Vec a, int64_t i) { return a + load(x + i); },
                                       [&](Vec a, int64_t i, int64_t n) { return a + load_n(x + i, n); }));
    const float var = n_inv * sum_row(
                                  p.d,
                                  [&](Vec a, int64_t i) {
                                    const Vec v = load(x + i) - mean;
                                    return fma(v, v, a);
                                  },
                                  [&](Vec a, int64_t i, int64_t n) {
                                    const Vec v = select(first_n(n), load_n(x + i, n) - mean, zero());
                                    return fma(v, v, a);
                                  });
    const Vec scale = splat(1.0f / __builtin_sqrtf(var + static_cast<float>(p.eps)));
    write_row(
        static_cast<T*>(p.out) + out_at, p.d,
        [&](int64_t i) { return fma((load(x + i) - mean) * scale, load(w + i), load(b + i)); },
        [&](int64_t i, int64_t n) {
          return fma((load_n(x + i, n) - mean) * scale, load_n(w + i, n), load_n(b + i, n));
        });
  });
}

}  // namespace flashinfer::cpu
