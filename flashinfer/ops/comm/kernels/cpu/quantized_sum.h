// SPDX-License-Identifier: Apache-2.0
// Quantisation of groups to e4m3, and the sum of the ranks' codes, quantised once more: what each rank reads is what
// every other one reads, so all compute the same bits.
#pragma once
#include "flashinfer/kernels/cpu/block_quantize.h"
#include "flashinfer/kernels/cpu/lanes.h"
#include "flashinfer/kernels/cpu/narrow.h"
#include "flashinfer/ops/comm/kernels/quantized_sum_params.h"

namespace flashinfer::cpu {

inline constexpr int64_t kQuantizedPart = 1024;  // elements of a sum that stay in L1

FI_VEC_INLINE float e4m3_group_scale(float amax) {
  return (amax < 1e-12f ? 1e-12f : amax) / 448.0f;  // NaN stays
}
/// The largest magnitude of n floats; NaN when one is, or infinite.
FI_VEC_INLINE float finite_magnitude(float most, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const float v = __builtin_fabsf(x[i]);
    most = v > most || v != v ? v : most;
    if (most != most) return most;
  }
  return most > 3.4028234e38f ? __builtin_nanf("") : most;
}
FI_VEC_INLINE void encode_e4m3(const float* x, e4m3_t* y, int64_t n, float scale) {
  const Vec divisor = splat(scale);
  int64_t i = 0;
  for (; i + Vec::kLanes <= n; i += Vec::kLanes) store_saturated(y + i, load(x + i) / divisor);
  if (i < n) store_saturated_n(y + i, load_n(x + i, n - i) / divisor, n - i);
}
template <class T>
FI_VEC_INLINE void widen_part(const T* x, float* y, int64_t n) {
  int64_t i = 0;
  for (; i + Vec::kLanes <= n; i += Vec::kLanes) store(y + i, load(x + i));
  if (i < n) store_n(y + i, load_n(x + i, n - i), n - i);
}
/// y = (add ? y : 0) + codes * scale
FI_VEC_INLINE void add_codes(const e4m3_t* codes, float scale, float* y, int64_t n, bool add) {
  const Vec s = splat(scale);
  int64_t i = 0;
  for (; i + Vec::kLanes <= n; i += Vec::kLanes) store(y + i, fma(load(codes + i), s, add ? load(y + i) : zero()));
  if (i < n) store_n(y + i, fma(load_n(codes + i, n - i), s, add ? load_n(y + i, n - i) : zero()), n - i);
}
/// y = codes * scale, rounded; NaN where the scale is.
template <class T>
FI_VEC_INLINE void decode_part(const e4m3_t* codes, float scale, T* y, int64_t n) {
  const Vec s = splat(scale);
  int64_t i = 0;
  for (; i + Vec::kLanes <= n; i += Vec::kLanes) store(y + i, load(codes + i) * s);
  if (i < n) store_n(y + i, load_n(codes + i, n - i) * s, n - i);
}

template <class F>
FI_VEC_INLINE void for_groups(const QuantizedSumParams& p, int64_t task, F f) {
  const int64_t first = task * p.groups_per_task;
  for (int64_t g = first; g < first + p.groups_per_task && g * p.group < p.n; ++g) {
    const int64_t begin = g * p.group, left = p.n - begin;
    f(g, begin, left < p.group ? left : p.group);
  }
}
/// f(offset, elements) for parts of a group.
template <class F>
FI_VEC_INLINE void for_group_parts(int64_t n, F f) {
  for (int64_t at = 0; at < n; at += kQuantizedPart) f(at, n - at < kQuantizedPart ? n - at : kQuantizedPart);
}

template <QuantizedSumConfig C>
void quantize_own(const QuantizedSumParams& p, int64_t task) {
  const auto* x = static_cast<const scalar_of_t<C.dtype>*>(p.x);
  auto* codes = reinterpret_cast<e4m3_t*>(p.codes[0]);
  for_groups(p, task, [&](int64_t g, int64_t begin, int64_t n) {
    float part[kQuantizedPart], amax = 0;
    for_group_parts(n, [&](int64_t at, int64_t m) {
      widen_part(x + begin + at, part, m);
      amax = finite_magnitude(amax, part, m);
    });
    const float scale = p.scales[0][g] = e4m3_group_scale(amax);
    for_group_parts(n, [&](int64_t at, int64_t m) {
      widen_part(x + begin + at, part, m);
      encode_e4m3(part, codes + begin + at, m, scale);
    });
  });
}

template <QuantizedSumConfig C>
void sum_quantized(const QuantizedSumParams& p, int64_t task) {
  auto* out = static_cast<scalar_of_t<C.dtype>*>(p.out);
  for_groups(p, task, [&](int64_t g, int64_t begin, int64_t n) {
    float part[kQuantizedPart], amax = 0;
    e4m3_t codes[kQuantizedPart];
    const auto sum = [&](int64_t at, int64_t m) {
      for (int r = 0; r < p.ranks; ++r)
        add_codes(reinterpret_cast<const e4m3_t*>(p.codes[r]) + begin + at, p.scales[r][g], part, m, r > 0);
    };
    for_group_parts(n, [&](int64_t at, int64_t m) {
      sum(at, m);
      amax = finite_magnitude(amax, part, m);
    });
    const float scale = e4m3_group_scale(amax);
    for_group_parts(n, [&](int64_t at, int64_t m) {
      if (n > kQuantizedPart) sum(at, m);
      encode_e4m3(part, codes, m, scale);
      decode_part(codes, scale, out + begin + at, m);
    });
  });
}

}  // namespace flashinfer::cpu
