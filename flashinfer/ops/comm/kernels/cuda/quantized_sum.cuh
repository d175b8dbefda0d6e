// SPDX-License-Identifier: Apache-2.0
// The sum of the ranks' codes, quantised once more: the arithmetic of kernels/cpu/quantized_sum.h, bit for bit. A slot
// has the codes of a launch's groups, then their scales.
#pragma once
#include "flashinfer/kernels/cuda/block_quantize.h"
#include "flashinfer/kernels/cuda/rows.h"
#include "flashinfer/ops/comm/kernels/cuda/meet.cuh"
#include "flashinfer/ops/comm/kernels/quantized_sum_params.h"

namespace flashinfer::cu {

template <QuantizedSumCudaConfig C>
struct QuantizedSum {
  using T = bf16_t;
  static constexpr int N = 8, kStep = 32 * N;
  static constexpr bool kAligned = C.aligned != 0;
  const QuantizedSumCudaParams& p;
  int64_t slot;

  FI_GLOBAL_FN uint8_t* codes_of(int r) const {
    if constexpr (C.way != QuantizedSumWay::kPeers) return p.own + r * p.slot;
    return static_cast<uint8_t*>(const_cast<void*>(p.source[r])) + kAllReduceFlagBytes + slot * p.slot;
  }
  FI_GLOBAL_FN float* scales_of(int r) const { return reinterpret_cast<float*>(codes_of(r) + p.groups * p.group); }
  /// Of all lanes' largest magnitudes; NaN when an element is, or infinite.
  FI_GLOBAL_FN static float scale_of(float most) {
#pragma unroll
    for (uint32_t apart = 16; apart > 0; apart /= 2) most = max_magnitude(most, shuffle_xor(most, apart));
    if (most > kFltMax) most = __builtin_bit_cast(float, 0x7fc00000u);
    return (most < 1e-12f ? 1e-12f : most) / 448.0f;
  }
  /// f(group, its first element, elements) for this warp's groups: the same on all ranks.
  template <class F>
  FI_GLOBAL_FN void each_group(F f) const {
    constexpr uint32_t kWarps = C.threads / 32;
    for (int64_t g = int64_t{block_x()} * kWarps + warp(); g < p.groups; g += int64_t{blocks_x()} * kWarps) {
      const int64_t begin = g * p.group, left = p.n - begin;
      f(g, begin, left < p.group ? left : p.group);
    }
  }
  FI_GLOBAL_FN static void encode(const float (&v)[N], float scale, uint32_t (&words)[N / 4]) {
    float y[N];
#pragma unroll
    for (int i = 0; i < N; ++i) y[i] = v[i] / scale;
    narrow<e4m3_t>(y, words);
  }
  FI_GLOBAL_FN void quantize(int rank) const {
    const T* const x = static_cast<const T*>(p.x);
    uint8_t* const codes = codes_of(rank);
    float* const scales = scales_of(rank);
    each_group([&](int64_t g, int64_t begin, int64_t n) {
      float most = 0.0f;
      for (int64_t at = lane() * N; at < n; at += kStep) {
        float v[N];
        load_piece<kAligned, N>(x + begin, at, n, v);
#pragma unroll
        for (int i = 0; i < N; ++i) most = max_magnitude(most, v[i]);
      }
      const float scale = scale_of(most);
      if (lane() == 0) scales[g] = scale;
      for (int64_t at = lane() * N; at < n; at += kStep) {
        float v[N];
        load_piece<kAligned, N>(x + begin, at, n, v);
        uint32_t words[N / 4];
        encode(v, scale, words);
        store_codes<true, N>(codes + begin + at, words);
      }
    });
  }
  FI_GLOBAL_FN void sum(int64_t g, int64_t at, float (&v)[N]) const {
#pragma unroll
    for (float& y : v) y = 0.0f;
#pragma unroll 4
    for (int r = 0; r < p.ranks; ++r) {
      const Pack<e4m3_t, N> x = load<N, Hint::kOnce>(reinterpret_cast<const e4m3_t*>(codes_of(r)) + at);
      const float scale = scales_of(r)[g];
      float y[N];
      widen(x.v, y);
#pragma unroll
      for (int i = 0; i < N; ++i) v[i] = fmaf(y[i], scale, v[i]);
    }
  }
  FI_GLOBAL_FN void finish(bool ok) const {
    T* const out = static_cast<T*>(p.out);
    each_group([&](int64_t g, int64_t begin, int64_t n) {
      float most = ok ? 0.0f : __builtin_bit_cast(float, 0x7fc00000u);
      for (int64_t at = lane() * N; at < n && ok; at += kStep) {
        float v[N];
        sum(g, begin + at, v);
#pragma unroll
        for (int i = 0; i < N; ++i) most = max_magnitude(most, v[i]);
      }
      const float scale = scale_of(most);
      for (int64_t at = lane() * N; at < n; at += kStep) {
        float v[N] = {};
        if (ok) sum(g, begin + at, v);
        uint32_t words[N / 4];
        encode(v, scale, words);
#pragma unroll
        for (int i = 0; i < N; ++i) v[i] = mul_rn(e4m3_value(words[i / 4] >> (8 * (i % 4)) & 0xffu), scale);
        store_piece<kAligned, N>(out + begin, at, n, v);
      }
    });
  }
};

template <QuantizedSumCudaConfig C>
FI_GLOBAL_FN void quantized_sum(const QuantizedSumCudaParams& p) {
  if constexpr (C.way == QuantizedSumWay::kPeers) {
    Meeting<kAllReduceRanks> ranks(p.source, p.meet);
    const QuantizedSum<C> sum{p, ranks.slot()};
    if (ranks.ok()) sum.quantize(p.meet.rank);
    ranks.meet(1);
    sum.finish(ranks.ok());
    ranks.end(C.threads);
  } else if constexpr (C.way == QuantizedSumWay::kQuantize) {
    QuantizedSum<C>{p, 0}.quantize(0);
  } else {
    QuantizedSum<C>{p, 0}.finish(true);
  }
}

}  // namespace flashinfer::cu
