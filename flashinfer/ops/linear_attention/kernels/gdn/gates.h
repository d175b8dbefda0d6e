// SPDX-License-Identifier: Apache-2.0
// A product with few columns, which the gates of a decode step are: its weight is read as it is. Every element is four
// chains over the depth, added in pairs at the end.
#pragma once
#include "flashinfer/kernels/cpu/vec.h"
#include "flashinfer/ops/linear_attention/kernels/gdn/gates_params.h"

namespace flashinfer::cpu {

/// A task is up to 32 columns of a row.
template <GdnGatesConfig C>
void gdn_gates(const GdnGatesParams& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  constexpr int64_t L = Vec::kLanes, kChains = 4;
  const int64_t row = task % p.rows, first = task / p.rows * kGdnGateColumns;
  const T* x = static_cast<const T*>(p.x) + row * p.x_row;
  T* out = static_cast<T*>(p.out) + row * p.out_row;
  const int64_t end = first + kGdnGateColumns < p.columns ? first + kGdnGateColumns : p.columns;
  for (int64_t c = first; c < end; c += L) {
    const int64_t n = end - c < L ? end - c : L;
    const T* w = static_cast<const T*>(p.w) + c;
    const auto column = [&](int64_t d) { return n == L ? load(w + d * p.w_row) : load_n(w + d * p.w_row, n); };
    Vec sum[kChains];
    for (int j = 0; j < kChains; ++j) sum[j] = zero();
    int64_t d = 0;
    for (; d + kChains <= p.depth; d += kChains)
#pragma GCC unroll 4
      for (int j = 0; j < kChains; ++j) sum[j] = fma(splat(to_f32(x[d + j])), column(d + j), sum[j]);
    for (; d < p.depth; ++d) sum[0] = fma(splat(to_f32(x[d])), column(d), sum[0]);
    store_n(out + c, (sum[0] + sum[1]) + (sum[2] + sum[3]), n);
  }
}

}  // namespace flashinfer::cpu
