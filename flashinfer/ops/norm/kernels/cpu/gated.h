// SPDX-License-Identifier: Apache-2.0
// Norms with gates on the CPU: each row is read from memory once; later passes read it from L1.
#pragma once
#include "flashinfer/kernels/cpu/exp.h"
#include "flashinfer/kernels/cpu/lanes.h"
#include "flashinfer/ops/norm/kernels/gated_params.h"

namespace flashinfer::cpu {

/// 1 / sqrt(mean + eps) from the sum of squares.
FI_VEC_INLINE Vec root_factor(float sum, int64_t d, float eps) {
  return splat(1.0f / __builtin_sqrtf(sum / static_cast<float>(d) + eps));
}
template <class T>
FI_VEC_INLINE Vec load_some(const T* p, int64_t n) {
  return n >= Vec::kLanes ? load(p) : load_n(p, n);
}
/// Elements of a row of the branch, times weight + center where there is a weight.
template <class T>
struct Branch {
  const T *x, *weight;
  Vec center;
  FI_VEC_INLINE Vec at(int64_t i, int64_t n) const {
    const Vec v = load_some(x + i, n);
    return weight ? v * (load_some(weight + i, n) + center) : v;
  }
  FI_VEC_INLINE float squares(int64_t d) const {
    return sum_row(
        d,
        [&](Vec a, int64_t i) {
          const Vec v = at(i, Vec::kLanes);
          return fma(v, v, a);
        },
        [&](Vec a, int64_t i, int64_t n) {
          const Vec v = select(first_n(n), at(i, n), zero());
          return fma(v, v, a);
        });
  }
};

template <GatedNormConfig C>
void gated_norm(const GatedNormParams& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  constexpr int64_t L = Vec::kLanes;
  const int64_t begin = task * p.rows_per_task,
                end = begin + p.rows_per_task < p.rows ? begin + p.rows_per_task : p.rows;
  for (int64_t r = begin; r < end; ++r) {
    const int64_t a = r / p.inner, b = r - a * p.inner;
    const auto at = [&](const int64_t* stride) { return a * stride[0] + b * stride[1]; };
    const Branch<T> row{static_cast<const T*>(p.x) + at(p.x_stride),
                        C.residual ? static_cast<const T*>(p.weight) : nullptr, splat(p.center)};
    const Vec scale = root_factor(row.squares(p.d), p.d, p.eps);
    T* const y = p.y ? static_cast<T*>(p.y) + at(p.y_stride) : nullptr;
    if constexpr (!C.residual) {
      const T* const gate = static_cast<const T*>(p.gate) + at(p.gate_stride);
      write_row(
          y, p.d, [&](int64_t i) { return row.at(i, L) * scale * sigmoid(load(gate + i)); },
          [&](int64_t i, int64_t n) { return row.at(i, n) * scale * sigmoid(load_n(gate + i, n)); });
    } else {
      const float* const from = p.residual + r * p.residual_stride;
      float* const to = p.residual_out + r * p.residual_out_stride;
      const Vec alpha = splat(p.alpha_value);
      const auto mixed = [&](int64_t i, int64_t n) {
        const Vec kept = load_some(from + i, n) * (p.alpha ? load_some(p.alpha + i, n) : alpha);
        return fma(row.at(i, n) * scale, load_some(p.beta + i, n), kept);
      };
      const float sum = sum_row(
          p.d,
          [&](Vec s, int64_t i) {
            const Vec v = mixed(i, L);
            store(to + i, v);
            return fma(v, v, s);
          },
          [&](Vec s, int64_t i, int64_t n) {
            const Vec v = select(first_n(n), mixed(i, n), zero());
            store_n(to + i, v, n);
            return fma(v, v, s);
          });
      if (!y) continue;
      const T* const w = static_cast<const T*>(p.next_weight);
      const Vec next = root_factor(sum, p.d, p.next_eps), center = splat(p.next_center);
      write_row(
          y, p.d, [&](int64_t i) { return load(to + i) * next * (load(w + i) + center); },
          [&](int64_t i, int64_t n) { return load_n(to + i, n) * next * (load_n(w + i, n) + center); });
    }
  }
}

}  // namespace flashinfer::cpu
