// SPDX-License-Identifier: Apache-2.0
// Products of the decode kernel in f32, on every ISA and for every type that vec.h loads. Lanes are dims; R rows (1, 2
// or 4) are multiplied with kLanes / R keys at once, so that each element of K is converted once for R rows and the
// kLanes sums are added in one tree.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/attention/kernels/cpu/decode/prefetch.h"
#include "flashinfer/ops/attention/kernels/cpu/decode/softmax.h"

namespace flashinfer::cpu::attention::f32 {

/// Lane i of the result: the sum of v[i]'s lanes.
#if defined(__AVX512F__)
template <int S>
FI_VEC_INLINE __m512 combine(__m512 a, __m512 b) {  // combines lanes with bit S clear: a[l] + a[l ^ S]; set: of b
  constexpr __mmask16 kSet = S == 1   ? 0xaaaa
                             : S == 2 ? 0xcccc
                             : S == 4 ? 0xf0f0
                                      : 0xff00,
                      kClear = static_cast<__mmask16>(~kSet);
  constexpr int kSwap = S == 1 ? 0xb1 : S == 2 ? 0x4e : S == 4 ? 0xb1 : 0x4e;
  if constexpr (S >= 4)
    return _mm512_add_ps(_mm512_mask_shuffle_f32x4(a, kSet, b, b, kSwap),
                         _mm512_mask_shuffle_f32x4(b, kClear, a, a, kSwap));
  else
    return _mm512_add_ps(_mm512_mask_permute_ps(a, kSet, b, kSwap), _mm512_mask_permute_ps(b, kClear, a, kSwap));
}
FI_VEC_INLINE Vec sum_lanes(const Vec (&v)[16]) {
  __m512 r[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) r[i] = combine<1>(v[2 * i].r, v[2 * i + 1].r);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) r[i] = combine<2>(r[2 * i], r[2 * i + 1]);
  return {combine<8>(combine<4>(r[0], r[1]), combine<4>(r[2], r[3]))};
}
#elif defined(__AVX2__)
FI_VEC_INLINE Vec sum_lanes(const Vec (&v)[8]) {
  const __m256 a = _mm256_hadd_ps(_mm256_hadd_ps(v[0].r, v[1].r), _mm256_hadd_ps(v[2].r, v[3].r));
  const __m256 b = _mm256_hadd_ps(_mm256_hadd_ps(v[4].r, v[5].r), _mm256_hadd_ps(v[6].r, v[7].r));
  return {_mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31))};
}
#else
FI_VEC_INLINE Vec sum_lanes(const Vec (&v)[Vec::kLanes]) {
  float s[Vec::kLanes];
  for (int i = 0; i < Vec::kLanes; ++i) s[i] = reduce_add(v[i]);
  return load(s);
}
#endif

/// Logits s[R][kDecodeKeys] of keys [begin, end), rounded outwards to kLanes / R; q[R][padded(dim)].
template <int R, class T>
__attribute__((noinline)) void scores(const T* const* k, int64_t begin, int64_t end, const float* q, int64_t dim,
                                      float* s, Lines& ahead) {
  constexpr int kL = Vec::kLanes, kKeys = kL / R;
  static_assert(kKeys >= 1);
  const int64_t ld = padded(dim);
  for (int64_t j = begin / kKeys * kKeys; j < end; j += kKeys) {
    Vec acc[kL];
#pragma GCC unroll 16
    for (int i = 0; i < kL; ++i) acc[i] = zero();
    int64_t d = 0;
#pragma GCC unroll 1
    for (; d + kL <= dim; d += kL) {
      ahead.issue_prefetch<kKeys* static_cast<int>(sizeof(T)) * kL / 64 + 1>();
      Vec y[R];
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) y[r] = load(q + r * ld + d);
#pragma GCC unroll 16
      for (int i = 0; i < kKeys; ++i) {
        const Vec x = load(k[j + i] + d);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) acc[r * kKeys + i] = fma(x, y[r], acc[r * kKeys + i]);
      }
    }
    if (d < dim) {
#pragma GCC unroll 16
      for (int i = 0; i < kKeys; ++i) {
        const Vec x = load_n(k[j + i] + d, dim - d);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) acc[r * kKeys + i] = fma(x, load(q + r * ld + d), acc[r * kKeys + i]);
      }
    }
    float sums[kL];
    store(sums, sum_lanes(acc));
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) memcpy(s + r * kDecodeKeys + j, sums + r * kKeys, kKeys * 4);
  }
}

template <int R, int N, bool Tail, class T>
FI_VEC_INLINE void values_tile(const T* const* v, int64_t begin, int64_t end, int64_t d, int64_t n, const float* p,
                               float* o, int64_t width, Lines& ahead) {
  constexpr int kL = Vec::kLanes;
  Vec acc[R][N];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) acc[r][i] = load(o + r * width + d + i * kL);
#pragma GCC unroll 1
  for (int64_t j = begin; j < end; ++j) {
    const T* at = v[j] + d;
    ahead.issue_prefetch<ceil_div(N * kL * static_cast<int>(sizeof(T)), 64)>();
    Vec w[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) w[r] = splat(p[r * kDecodeKeys + j]);
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) {
      const Vec x = Tail ? load_n(at + i * kL, n) : load(at + i * kL);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) acc[r][i] = fma(x, w[r], acc[r][i]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) store(o + r * width + d + i * kL, acc[r][i]);
}

/// o[R][width] += p[R][kDecodeKeys] V over keys [begin, end).
template <int R, class T>
__attribute__((noinline)) void values(const T* const* v, int64_t begin, int64_t end, const float* p, int64_t dim,
                                      float* o, int64_t width, Lines& ahead) {
  constexpr int kL = Vec::kLanes;
#if defined(__AVX512F__)
  constexpr int kN = R == 4 ? 4 : 8;  // 16 accumulators of 32 registers
#else
  constexpr int kN = R == 4 ? 2 : 4;  // 8 of 16
#endif
  int64_t d = 0;
  for (; d + kN * kL <= dim; d += kN * kL) values_tile<R, kN, false>(v, begin, end, d, 0, p, o, width, ahead);
  if constexpr (kN > 4)
    for (; d + 4 * kL <= dim; d += 4 * kL) values_tile<R, 4, false>(v, begin, end, d, 0, p, o, width, ahead);
  for (; d + kL <= dim; d += kL) values_tile<R, 1, false>(v, begin, end, d, 0, p, o, width, ahead);
  if (d < dim) values_tile<R, 1, true>(v, begin, end, d, dim - d, p, o, width, ahead);
}

/// q rows as f32, zero past `dim`.
template <class T>
inline void pack_q(const T* const* rows, int count, int64_t dim, float* out) {
  const int64_t ld = padded(dim);
  for (int r = 0; r < count; ++r)
    for (int64_t d = 0; d < ld; d += Vec::kLanes) {
      const int64_t n = dim - d;
      store(out + r * ld + d, n >= Vec::kLanes ? load(rows[r] + d) : n > 0 ? load_n(rows[r] + d, n) : zero());
    }
}

}  // namespace flashinfer::cpu::attention::f32
