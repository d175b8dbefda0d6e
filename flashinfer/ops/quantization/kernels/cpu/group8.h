// SPDX-License-Identifier: Apache-2.0
// Groups of a row to 8 bits on the CPU.
#pragma once
#include "flashinfer/kernels/cpu/block_quantize.h"
#include "flashinfer/kernels/cpu/e4m3_rows.h"
#include "flashinfer/ops/quantization/kernels/group8_params.h"

namespace flashinfer::cpu {

/// x / s rounded as a division, for s in [2^-60, 2^60]: with r = 1 / s rounded, one correction of x * r by the exact
/// remainder gives the quotient's rounding (Markstein). Three operations where a division of 16 lanes takes ten cycles.
struct Divisor {
  Vec s, r;
  bool safe;
};
FI_VEC_INLINE Divisor divisor_of(float s) {
#if defined(__FMA__)
  const bool safe = s >= 0x1p-60f && s <= 0x1p60f;
#else
  const bool safe = false;
#endif
  return {splat(s), splat(1.0f / s), safe};
}
/// For x >= 0, x / s below 2^60.
FI_VEC_INLINE Vec divide_magnitude(Vec x, const Divisor& d) {
  const Vec q = x * d.r;
  return fma(fnma(q, d.s, x), d.r, q);
}
/// For any x: keeps -0, and an infinite remainder is not combined with an infinite quotient.
FI_VEC_INLINE Vec divide(Vec x, const Divisor& d) {
  const Vec q = min(splat(0x1p60f), max(splat(-0x1p60f), x * d.r));
  return fnma(fma(q, d.s, -x), d.r, q);
}

template <class T>
FI_VEC_INLINE uint32_t magnitude_order(T x) {
  if constexpr (sizeof(T) == 4)
    return scalar_detail::bits(x) & 0x7fffffffu;
  else
    return x.bits & 0x7fffu;
}
/// The largest magnitude of n elements; NaN beats all numbers.
template <class T>
FI_VEC_INLINE float span_magnitude(const T* x, int64_t n) {
  T most;
  memset(&most, 0, sizeof most);
  const int64_t whole = n / 16 * 16;
  if (whole) most = block_magnitude(x, whole);
  for (int64_t i = whole; i < n; ++i)
    if (magnitude_order(x[i]) > magnitude_order(most)) most = x[i];
  const float f = to_f32(most);
  return f < 0 ? -f : f;
}

template <DType T>
struct Stored {
  using type = scalar_of_t<T>;
};
template <>
struct Stored<DType::kI8> {
  using type = int8_t;
};

template <class T, class Q, class Quotient>
FI_VEC_INLINE void write_group(const T* x, Q* q, int64_t n, Quotient quotient) {
  int64_t i = 0;
  for (; i + Vec::kLanes <= n; i += Vec::kLanes) store_saturated(q + i, quotient(load(x + i)));
  if (i < n) store_saturated_n(q + i, quotient(load_n(x + i, n - i)), n - i);
}

template <class T, class Q>
FI_VEC_INLINE void write_divided(const T* x, Q* q, int64_t n, float s) {
  const Divisor d = divisor_of(s);
  if (d.safe) [[likely]]
    write_group(x, q, n, [&](Vec v) { return divide(v, d); });
  else
    write_group(x, q, n, [&](Vec v) { return v / d.s; });
}
/// n elements divided by s. `ahead`: prefetch distance in elements, when the scales of these groups are already known.
template <class T, class Q>
FI_VEC_INLINE void write_scaled(const T* x, Q* q, int64_t n, float s, int64_t ahead) {
  int64_t i = 0;
#if defined(FI_NARROW_AVX512)
  if constexpr (sizeof(T) == 2 && __is_same(Q, e4m3_t)) {
    const Divisor unit = divisor_of(s / kE4m3Unit);
    for (; unit.safe && i + 64 <= n; i += 64) {
      __builtin_prefetch(x + i + ahead, 0, 2);
      __builtin_prefetch(x + i + 32 + ahead, 0, 2);
      if (!store_e4m3_scaled(q + i, x + i, [&](int, Vec m) { return divide_magnitude(m, unit); })) [[unlikely]]
        write_divided(x + i, q + i, 64, s);
    }
    if (i == n) return;
  }
#endif
  write_divided(x + i, q + i, n - i, s);
}

/// Scales of up to kGroupChunk groups of a row are computed first, so that their latencies overlap.
constexpr int64_t kGroupChunk = 64, kGivenAhead = 1024;
template <class T>
FI_VEC_INLINE void group_scales(const T* x, int64_t group, int64_t groups, float eps, float most, bool power,
                                float* s) {
  constexpr int64_t L = Vec::kLanes;
  for (int64_t g = 0; g < groups; ++g) s[g] = span_magnitude(x + g * group, group);
  for (int64_t g = groups; g % L; ++g) s[g] = 0;
  for (int64_t g = 0; g < groups; g += L) {
    const Vec amax = load(s + g);
    store(s + g, select(amax < splat(eps), splat(eps), amax) / splat(most));
  }
  for (int64_t g = 0; power && g < groups; ++g) s[g] = e8m0_to_f32(e8m0_round_up(s[g]));
}

template <Group8Config C>
void group8(const Group8Params& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  using Q = typename Stored<C.out>::type;
  constexpr float kMost = C.out == DType::kI8 ? 127.0f : C.out == DType::kF8E4M3 ? 448.0f : 57344.0f;
  const int64_t begin = task * p.rows_per_task,
                end = begin + p.rows_per_task < p.rows ? begin + p.rows_per_task : p.rows;
  float most = 0, s[kGroupChunk];
  for (int64_t r = begin; r < end; ++r) {
    const T* x = static_cast<const T*>(p.x) + r * p.x_stride;
    if (p.amax_only) {
      const float amax = span_magnitude(x, p.k);
      most = amax <= most ? most : amax;  // keeps a NaN: no comparison with it holds
      if (amax != amax) break;
      continue;
    }
    Q* q = static_cast<Q*>(p.q) + r * p.q_stride;
    if (p.given) {
      write_scaled(x, q, p.k, *p.given, kGivenAhead);
      continue;
    }
    const int64_t groups = p.k / p.group;
    for (int64_t first = 0; first < groups; first += kGroupChunk) {
      const int64_t n = groups - first < kGroupChunk ? groups - first : kGroupChunk;
      group_scales(x + first * p.group, p.group, n, p.eps, kMost, p.power != 0, s);
      for (int64_t g = 0; g < n; ++g) {
        p.scales[r * p.scale_row_stride + (first + g) * p.scale_group_stride] = s[g];
        write_scaled(x + (first + g) * p.group, q + (first + g) * p.group, p.group, s[g], n * p.group);
      }
    }
  }
  if (p.amax_only) p.scales[task] = most;
}

}  // namespace flashinfer::cpu
