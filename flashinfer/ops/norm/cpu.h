// SPDX-License-Identifier: Apache-2.0
// RMSNorm on the CPU. A row is read twice; at 4096 bf16 it stays in L1 between the passes, so memory sees one read and one write.
#pragma once
#include "flashinfer/kernels/cpu/vec.h"
#include "flashinfer/ops/norm/params.h"

namespace flashinfer::cpu {

template <NormConfig C>
void rmsnorm(const NormParams& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  constexpr int L = Vec::kLanes;
  const T* weight = static_cast<const T*>(p.weight);
  const int64_t begin = task * p.rows_per_task;
  const int64_t end = begin + p.rows_per_task < p.rows ? begin + p.rows_per_task : p.rows;
  for (int64_t r = begin; r < end; ++r) {
    const int64_t a = r / p.inner, b = r % p.inner;
    const T* x = static_cast<const T*>(p.input) + a * p.input_stride[0] + b * p.input_stride[1];
    T* y = static_cast<T*>(p.out) + a * p.out_stride[0] + b * p.out_stride[1];
    Vec sum = zero();
    int64_t i = 0;
    for (; i + L <= p.d; i += L) {
      const Vec v = load(x + i);
      sum = fma(v, v, sum);
    }
    if (i < p.d) {
      const Vec v = load_n(x + i, static_cast<int>(p.d - i));
      sum = fma(v, v, sum);
    }
    const float mean = reduce_add(sum) / static_cast<float>(p.d);
    const Vec scale = splat(1.0f / __builtin_sqrtf(mean + static_cast<float>(p.eps)));
    const Vec bias = splat(C.gemma ? 1.0f : 0.0f);
    for (i = 0; i + L <= p.d; i += L) store(y + i, load(x + i) * scale * (load(weight + i) + bias));
    if (i < p.d) {
      const int n = static_cast<int>(p.d - i);
      store_n(y + i, load_n(x + i, n) * scale * (load_n(weight + i, n) + bias), n);
    }
  }
}

}  // namespace flashinfer::cpu
