// SPDX-License-Identifier: Apache-2.0
// See peak_params.h. Twelve accumulators: two FMA ports times four cycles of latency need eight, and the compiler must
// be able to keep them in registers (an array of accumulators reached a third of the peak). They begin with different
// values: of equal chains the compiler computes one.
#pragma once
#include "flashinfer/bench/kernels/peak_params.h"
#include "flashinfer/kernels/cpu/vec.h"

namespace flashinfer::cpu {

template <PeakConfig C>
void peak(const PeakParams& p, int64_t task) {
  Vec a0 = splat(0.0f), a1 = splat(0.1f), a2 = splat(0.2f), a3 = splat(0.3f), a4 = splat(0.4f), a5 = splat(0.5f),
      a6 = splat(0.6f), a7 = splat(0.7f), a8 = splat(0.8f), a9 = splat(0.9f), a10 = splat(1.1f), a11 = splat(1.2f);
  if constexpr (C.kind == PeakConfig::kRead) {
    const float* x = reinterpret_cast<const float*>(p.data + task * p.bytes_per_task);
    constexpr int L = Vec::kLanes;
    for (int64_t i = 0; i < p.bytes_per_task / 4; i += 8 * L) {
      a0 += load(x + i);
      a1 += load(x + i + L);
      a2 += load(x + i + 2 * L);
      a3 += load(x + i + 3 * L);
      a4 += load(x + i + 4 * L);
      a5 += load(x + i + 5 * L);
      a6 += load(x + i + 6 * L);
      a7 += load(x + i + 7 * L);
    }
  } else if constexpr (C.kind == PeakConfig::kFma) {
    Vec m = splat(0.999f), c = splat(1e-6f);
    for (int64_t i = 0; i < p.iterations; ++i) {
      a0 = fma(a0, m, c);
      a1 = fma(a1, m, c);
      a2 = fma(a2, m, c);
      a3 = fma(a3, m, c);
      a4 = fma(a4, m, c);
      a5 = fma(a5, m, c);
      a6 = fma(a6, m, c);
      a7 = fma(a7, m, c);
      a8 = fma(a8, m, c);
      a9 = fma(a9, m, c);
      a10 = fma(a10, m, c);
      a11 = fma(a11, m, c);
    }
  } else {
    const bf16_t one[2] = {bf16_t(1e-3f), bf16_t(1e-3f)};
    const Pairs b = splat_pair(one);
    for (int64_t i = 0; i < p.iterations; ++i) {
      a0 = dot_pairs(a0, b, b);
      a1 = dot_pairs(a1, b, b);
      a2 = dot_pairs(a2, b, b);
      a3 = dot_pairs(a3, b, b);
      a4 = dot_pairs(a4, b, b);
      a5 = dot_pairs(a5, b, b);
      a6 = dot_pairs(a6, b, b);
      a7 = dot_pairs(a7, b, b);
      a8 = dot_pairs(a8, b, b);
      a9 = dot_pairs(a9, b, b);
      a10 = dot_pairs(a10, b, b);
      a11 = dot_pairs(a11, b, b);
    }
  }
  p.sink[task * 16] = reduce_add(((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7)) + ((a8 + a9) + (a10 + a11)));
}

}  // namespace flashinfer::cpu
