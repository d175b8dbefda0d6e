// SPDX-License-Identifier: Apache-2.0
// The summation order of row kernels, the same on every ISA: element i of a row belongs to lane i % 64; a lane adds its
// elements in order; then lane j is combined with lane j + 32, j + 16, ... j + 1. Four AVX-512 accumulators (eight
// AVX2) hide the latency of the adds.
#pragma once
#include "flashinfer/kernels/cpu/vec.h"

namespace flashinfer::cpu {

inline constexpr int64_t kRowLanes = 64;
inline constexpr int kRowVecs = static_cast<int>(kRowLanes) / Vec::kLanes;

/// acc = full(acc, i) for every vector of elements [i, i + Vec::kLanes), acc = tail(acc, i, n - i) for the rest.
/// `join`, which is associative, combines the lanes of all accumulators (64 in all) in the fixed tree above. Returns
/// the last vector.
template <class Full, class Tail, class Join>
FI_VEC_INLINE Vec fold_row(int64_t n, Vec start, Full full, Tail tail, Join join) {
  Vec acc[kRowVecs];
#pragma GCC unroll 16
  for (int j = 0; j < kRowVecs; ++j) acc[j] = start;
  int64_t i = 0;
  for (; i + kRowLanes <= n; i += kRowLanes) {
#pragma GCC unroll 16
    for (int j = 0; j < kRowVecs; ++j) acc[j] = full(acc[j], i + j * Vec::kLanes);
  }
#pragma GCC unroll 16
  for (int j = 0; j < kRowVecs; ++j) {
    const int64_t left = n - i;
    if (left >= Vec::kLanes) {
      acc[j] = full(acc[j], i);
      i += Vec::kLanes;
    } else if (left > 0) {
      acc[j] = tail(acc[j], i, left);
      i = n;
    }
  }
#pragma GCC unroll 8
  for (int w = kRowVecs / 2; w > 0; w /= 2) {
#pragma GCC unroll 8
    for (int j = 0; j < w; ++j) acc[j] = join(acc[j], acc[j + w]);
  }
  return acc[0];
}
template <class Full, class Tail>
FI_VEC_INLINE float sum_row(int64_t n, Full full, Tail tail) {
  return reduce_add(fold_row(n, zero(), full, tail, [](Vec a, Vec b) { return a + b; }));
}
/// NaN elements are ignored; -inf when there is nothing else.
template <class T>
FI_VEC_INLINE float max_row(const T* x, int64_t n) {
  const Vec low = splat(-__builtin_inff());
  return reduce_max(fold_row(
      n, low, [&](Vec a, int64_t i) { return max(load(x + i), a); },
      [&](Vec a, int64_t i, int64_t left) { return max(select(first_n(left), load_n(x + i, left), low), a); },
      [](Vec a, Vec b) { return max(a, b); }));
}

/// Swaps lanes 2i and 2i + 1.
FI_VEC_INLINE Vec swap_neighbours(Vec v) {
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
  return {_mm512_permute_ps(v.r, 0xb1)};
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
  return {_mm256_permute_ps(v.r, 0xb1)};
#else
  return {F32x4{v.r[1], v.r[0], v.r[3], v.r[2]}};
#endif
}

/// Stores two vectors to consecutive memory. With AVX-512 BF16 one instruction rounds both to bf16, where the integer
/// rounding of store() takes a dozen. It flushes subnormals (below 2^-126) to 0, so write_tail does too: a result must
/// not depend on the element's position in the row.
template <class T>
FI_VEC_INLINE void write_pair(T* p, Vec a, Vec b) {
#if defined(__AVX512BF16__) && defined(__AVX512BW__)
  if constexpr (__is_same(T, bf16_t)) {
    _mm512_storeu_si512(p, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b.r, a.r)));
    return;
  }
#endif
  store(p, a);
  store(p + Vec::kLanes, b);
}
/// The same around the caches with AVX-512, for results that they would not hold; p is the begin of a line of 64 bytes.
/// 2048 tokens of a convolution of 8192 channels take 0.9 of the time (Zen 5): memory is not read before it is written.
template <class T>
FI_VEC_INLINE void write_pair_past_caches(T* p, Vec a, Vec b) {
#if defined(__AVX512BF16__) && defined(__AVX512BW__)
  if constexpr (__is_same(T, bf16_t)) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(p), reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b.r, a.r)));
    return;
  }
#endif
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    _mm512_stream_ps(p, a.r);
    _mm512_stream_ps(p + Vec::kLanes, b.r);
    return;
  }
#endif
  write_pair(p, a, b);
}
/// Behind the last of them, before others read the results.
inline void end_past_caches() {
#if defined(__AVX512F__)
  _mm_sfence();
#endif
}
template <class T>
FI_VEC_INLINE void write_tail(T* p, Vec v, int64_t n) {
#if defined(__AVX512BF16__) && defined(__AVX512BW__)
  if constexpr (__is_same(T, bf16_t)) {
    _mm256_mask_storeu_epi16(p, first_n(n).r, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(v.r)));
    return;
  }
#endif
  store_n(p, v, n);
}

/// y[i] = full(i) for every vector of [0, n), two at a time; tail(i, left) computes the rest. A pair is computed before
/// it is stored, so y may alias the input of `full`. Non-temporal stores (movnt) reached 0.65-0.7 of memcpy where these
/// reach 0.95-1.0 (Zen 4, 256 MB).
template <class T, class Full, class Tail>
FI_VEC_INLINE void write_row(T* y, int64_t n, Full full, Tail tail) {
  constexpr int64_t L = Vec::kLanes;
  int64_t i = 0;
  for (; i + 2 * L <= n; i += 2 * L) {
    const Vec a = full(i), b = full(i + L);
    write_pair(y + i, a, b);
  }
  if (i + L <= n) {
    write_tail(y + i, full(i), L);
    i += L;
  }
  if (i < n) write_tail(y + i, tail(i, n - i), n - i);
}

}  // namespace flashinfer::cpu
