// SPDX-License-Identifier: Apache-2.0
// out[t] = the sum of token t's rows times their scales, then `add[t]`: each product and each sum is rounded to T.
#pragma once
#include "flashinfer/kernels/cpu/vec.h"
#include "flashinfer/ops/comm/kernels/moe_reduce_params.h"

namespace flashinfer::cpu {

/// As it is in T.
template <class T>
FI_VEC_INLINE Vec in_type(Vec v) {
  if constexpr (sizeof(T) == 4) return v;
  T word[Vec::kLanes];
  store(word, v);
  return load(word);
}

template <MoeReduceConfig C>
void moe_reduce(const MoeReduceParams& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  const T* x = static_cast<const T*>(p.x);
  const auto* scales = static_cast<const scalar_of_t<C.scale>*>(p.scales);
  const int64_t begin = task * p.rows_per_task,
                end = begin + p.rows_per_task < p.rows ? begin + p.rows_per_task : p.rows;
  for (int64_t t = begin; t < end; ++t) {
    T* out = static_cast<T*>(p.out) + t * p.d;
    const auto columns = [&](auto get, auto put) {
      Vec sum = zero();
      for (int64_t e = 0; e < p.experts; ++e) {
        const int64_t at = C.permuted ? t * p.experts + e : e * p.rows + t;
        const int64_t row = C.permuted ? p.index[at] : at;
        if (row < 0) continue;
        Vec v = get(x + row * p.d);
        if constexpr (C.scaled != 0) v = in_type<T>(v * splat(to_f32(scales[at])));
        sum = in_type<T>(sum + v);
      }
      if constexpr (C.adds != 0) sum = sum + get(static_cast<const T*>(p.add) + t * p.d);
      put(sum);
    };
    int64_t i = 0;
    for (; i + Vec::kLanes <= p.d; i += Vec::kLanes)
      columns([&](const T* r) { return load(r + i); }, [&](Vec v) { store(out + i, v); });
    if (i < p.d)
      columns([&](const T* r) { return load_n(r + i, p.d - i); }, [&](Vec v) { store_n(out + i, v, p.d - i); });
  }
}

}  // namespace flashinfer::cpu
