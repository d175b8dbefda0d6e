// SPDX-License-Identifier: Apache-2.0
// key = (first part of kv, pe for every head), value = the rest of kv, in e4m3: saturated, ties to even, any NaN as
// 0x7f.
#pragma once
#include "flashinfer/kernels/cpu/narrow.h"
#include "flashinfer/ops/mla/kernels/concat_params.h"

namespace flashinfer::cpu {
namespace concat_detail {
template <class T>
inline void cast(const T* from, e4m3_t* to, int64_t n) {
  int64_t i = 0;
  for (; i + Vec::kLanes <= n; i += Vec::kLanes) store_saturated(to + i, load(from + i));
  if (i < n) store_saturated_n(to + i, load_n(from + i, n - i), n - i);
}
}  // namespace concat_detail

template <ConcatQuantConfig C>
void concat_mla_kv_quant(const ConcatQuantParams& p, int64_t task) {
  using namespace concat_detail;
  using Nope = scalar_of_t<C.nope>;
  using Pe = scalar_of_t<C.pe>;
  const int64_t begin = task * p.tokens_per_task,
                end = begin + p.tokens_per_task < p.tokens ? begin + p.tokens_per_task : p.tokens;
  for (int64_t n = begin; n < end; ++n) {
    const Pe* pe = static_cast<const Pe*>(p.pe) + n * p.pe_stride_n;
    for (int64_t h = 0; h < p.heads; ++h) {
      const Nope* kv = static_cast<const Nope*>(p.kv) + n * p.kv_stride_n + h * p.kv_stride_h;
      e4m3_t* key = p.key + n * p.key_stride_n + h * p.key_stride_h;
      cast(kv, key, p.nope);
      cast(pe, key + p.nope, p.rope);
      cast(kv + p.nope, p.value + n * p.value_stride_n + h * p.value_stride_h, p.v);
    }
  }
}

}  // namespace flashinfer::cpu
