// SPDX-License-Identifier: Apache-2.0
// Gated activations on the CPU: one pass, each element on its own.
#pragma once
#include "flashinfer/kernels/cpu/exp.h"
#include "flashinfer/kernels/cpu/lanes.h"
#include "flashinfer/ops/activation/params.h"

namespace flashinfer::cpu {

template <Activation K>
FI_VEC_INLINE Vec activate(Vec x) {
  if constexpr (K == Activation::kSilu) return silu(x);
  else if constexpr (K == Activation::kGelu) return gelu_erf(x);
  else return gelu_tanh(x);
}

template <ActConfig C>
void act_and_mul(const ActParams& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  const int64_t begin = task * p.rows_per_task;
  const int64_t end = begin + p.rows_per_task < p.rows ? begin + p.rows_per_task : p.rows;
  for (int64_t r = begin; r < end; ++r) {
    int64_t rest = r, in_at = 0, out_at = 0;
    for (int32_t k = p.outer - 1; k > 0; --k) {
      const int64_t q = rest / p.size[k], i = rest - q * p.size[k];
      in_at += i * p.input_stride[k];
      out_at += i * p.out_stride[k];
      rest = q;
    }
    const T* gate = static_cast<const T*>(p.input) + in_at + rest * p.input_stride[0];
    const T* up = gate + p.d;
    write_row(
        static_cast<T*>(p.out) + out_at + rest * p.out_stride[0], p.d,
        [&](int64_t i) { return activate<C.kind>(load(gate + i)) * load(up + i); },
        [&](int64_t i, int64_t n) { return activate<C.kind>(load_n(gate + i, n)) * load_n(up + i, n); });
  }
}

}  // namespace flashinfer::cpu
