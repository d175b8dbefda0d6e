// SPDX-License-Identifier: Apache-2.0
// Softmax on the CPU. Three passes over a row: maximum, exponentials and their sum, scaling; a row of 49152 stays in
// L2.
#pragma once
#include "flashinfer/kernels/cpu/exp.h"
#include "flashinfer/kernels/cpu/lanes.h"
#include "flashinfer/ops/sampling/params.h"

namespace flashinfer::cpu {

template <SamplingConfig C>
void softmax(const SoftmaxParams& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  const Vec low = splat(-__builtin_inff());
  const int64_t begin = task * p.rows_per_task;
  const int64_t end = begin + p.rows_per_task < p.rows ? begin + p.rows_per_task : p.rows;
  for (int64_t r = begin; r < end; ++r) {
    const T* x = static_cast<const T*>(p.logits) + r * p.logits_stride;
    float* y = p.out + r * p.out_stride;
    const Vec inverse = splat(p.inverse_temperature[r * p.inverse_stride]);
    // A masked token stays masked at T = 0 (0 * -inf would be NaN).
    const auto scaled = [&](Vec v) { return select(v == low, low, v * inverse); };
    const float top = reduce_max(fold_row(
        p.v, low, [&](Vec a, int64_t i) { return max(scaled(load(x + i)), a); },
        [&](Vec a, int64_t i, int64_t n) { return max(select(first_n(n), scaled(load_n(x + i, n)), low), a); },
        [](Vec a, Vec b) { return max(a, b); }));
    const Vec shift = splat(top > -__builtin_inff() ? top : 0.0f);  // a row of -inf: exp gives zeros
    const float sum = sum_row(
        p.v,
        [&](Vec a, int64_t i) {
          const Vec e = exp(scaled(load(x + i)) - shift);
          store(y + i, e);
          return a + e;
        },
        [&](Vec a, int64_t i, int64_t n) {
          const Vec e = exp(scaled(load_n(x + i, n)) - shift);
          store_n(y + i, e, n);
          return a + select(first_n(n), e, zero());
        });
    const Vec scale = splat(sum == 0.0f ? 0.0f : 1.0f / sum);
    write_row(
        y, p.v, [&](int64_t i) { return load(y + i) * scale; },
        [&](int64_t i, int64_t n) { return load_n(y + i, n) * scale; });
  }
}

}  // namespace flashinfer::cpu
