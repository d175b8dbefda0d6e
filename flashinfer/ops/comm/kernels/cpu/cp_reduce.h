// SPDX-License-Identifier: Apache-2.0
// out[r] = the sum over ranks of weight[r, p] * source[p][r], in f32, in the order of the ranks.
#pragma once
#include "flashinfer/kernels/cpu/vec.h"
#include "flashinfer/ops/comm/kernels/cp_reduce_params.h"

namespace flashinfer::cpu {

template <CpReduceConfig C>
void cp_reduce(const CpReduceParams& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  const int64_t begin = task * p.rows_per_task,
                end = begin + p.rows_per_task < p.rows ? begin + p.rows_per_task : p.rows;
  for (int64_t r = begin; r < end; ++r) {
    const float* w = p.weights + r * p.ranks;
    const auto sum = [&](auto get) {
      Vec v = zero();
      for (int64_t s = 0; s < p.ranks; ++s)
        if (w[s] != 0) v = fma(splat(w[s]), get(static_cast<const T*>(p.source[s]) + r * p.d), v);
      return v;
    };
    T* out = static_cast<T*>(p.out) + r * p.d;
    int64_t i = 0;
    for (; i + Vec::kLanes <= p.d; i += Vec::kLanes) store(out + i, sum([&](const T* x) { return load(x + i); }));
    if (i < p.d) store_n(out + i, sum([&](const T* x) { return load_n(x + i, p.d - i); }), p.d - i);
  }
}

}  // namespace flashinfer::cpu
