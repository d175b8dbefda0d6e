// SPDX-License-Identifier: Apache-2.0
// Converts rows of e4m3 or e5m2 to bf16, which is exact (a NaN gives a quiet NaN).
#pragma once
#include "flashinfer/kernels/cpu/vec.h"

namespace flashinfer::cpu {

namespace detail {
/// The two bytes of the bf16 value of every magnitude.
struct Fp8Bytes {
  alignas(64) uint8_t low[128], high[128];
};
template <int Mantissa, int Bias, bool Infinity>
constexpr Fp8Bytes fp8_bytes() {
  Fp8Bytes t{};
  for (int code = 0; code < 128; ++code) {
    const int first = 1 << Mantissa;
    int e = code >> Mantissa, m = code & (first - 1), bits;
    if (code >= 128 - (Infinity ? first : 1)) {
      bits = Infinity && m == 0 ? 0x7f80 : 0x7fc0;
    } else if (code == 0) {
      bits = 0;
    } else {
      if (e == 0)  // subnormal: bf16's exponent range covers it
        for (e = 1; m < first; --e) m *= 2;
      bits = (e - Bias + 127) << 7 | (m & (first - 1)) << (7 - Mantissa);
    }
    t.low[code] = static_cast<uint8_t>(bits & 0xff), t.high[code] = static_cast<uint8_t>(bits >> 8);
  }
  return t;
}
inline constexpr Fp8Bytes kE4m3Bytes = fp8_bytes<3, 7, false>(), kE5m2Bytes = fp8_bytes<2, 15, true>();
inline const Fp8Bytes& bytes_of(const e4m3_t*) { return kE4m3Bytes; }
inline const Fp8Bytes& bytes_of(const e5m2_t*) { return kE5m2Bytes; }
}  // namespace detail

/// to[0..n) = from[0..n). With VBMI 9 instructions for 64 elements: two look-ups in 128 bytes. Through f32 it takes 30
/// for 16.
template <class S>
inline void widen_row(const S* from, int64_t n, bf16_t* to) {
#if defined(__AVX512VBMI__) && defined(__AVX512BW__)
  const detail::Fp8Bytes& t = detail::bytes_of(from);
  const __m512i low0 = _mm512_load_si512(t.low), low1 = _mm512_load_si512(t.low + 64);
  const __m512i high0 = _mm512_load_si512(t.high), high1 = _mm512_load_si512(t.high + 64),
                sign = _mm512_set1_epi8(-128);
  const __m512i order =
      _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);  // so that unpacking within 128 bits gives neighbours
  for (int64_t i = 0; i < n; i += 64) {
    const int64_t left = n - i;
    const __m512i raw =
        left >= 64 ? _mm512_loadu_si512(from + i) : _mm512_maskz_loadu_epi8(~0ull >> (64 - left), from + i);
    const __m512i x = _mm512_permutexvar_epi64(order, raw);
    const __m512i low = _mm512_permutex2var_epi8(low0, x, low1);
    const __m512i high =
        _mm512_ternarylogic_epi32(_mm512_permutex2var_epi8(high0, x, high1), x, sign, 0xf8);  // a | (b & c)
    const __m512i a = _mm512_unpacklo_epi8(low, high), b = _mm512_unpackhi_epi8(low, high);
    if (left >= 64) {
      _mm512_storeu_si512(to + i, a);
      _mm512_storeu_si512(to + i + 32, b);
    } else {
      _mm512_mask_storeu_epi16(to + i, left >= 32 ? ~0u : ~0u >> (32 - left), a);
      if (left > 32) _mm512_mask_storeu_epi16(to + i + 32, ~0u >> (64 - left), b);
    }
  }
#else
  int64_t i = 0;
  for (; i + Vec::kLanes <= n; i += Vec::kLanes) store(to + i, load(from + i));
  if (i < n) store_n(to + i, load_n(from + i, n - i), n - i);
#endif
}

#if defined(__AVX512VBMI__) && defined(__AVX512BW__)
/// 32 elements of each of 16 lines (line i at `at(i)`) as bf16 pairs, to[16 pairs][16 lines][2]. Bytes are transposed
/// before they are widened, four k of a line as one word: half the exchanges of a bf16 transposition.
template <class S, class At>
FI_VEC_INLINE void widen_lines(At at, bf16_t* to) {
  const detail::Fp8Bytes& t = detail::bytes_of(static_cast<const S*>(nullptr));
  const __m512i low0 = _mm512_load_si512(t.low), low1 = _mm512_load_si512(t.low + 64);
  const __m512i high0 = _mm512_load_si512(t.high), high1 = _mm512_load_si512(t.high + 64),
                sign = _mm512_set1_epi8(-128);
  __m512i x[8], y[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i)  // line i beside line i + 8
    x[i] = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at(i)))),
                              _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at(i + 8))), 1);
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2)
    y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]), y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    x[i] = _mm512_unpacklo_epi64(y[i], y[i + 2]), x[i + 1] = _mm512_unpackhi_epi64(y[i], y[i + 2]);
    x[i + 2] = _mm512_unpacklo_epi64(y[i + 1], y[i + 3]), x[i + 3] = _mm512_unpackhi_epi64(y[i + 1], y[i + 3]);
  }
  // x[4 g + j] holds, in its quarters, words j and 4 + j of lines 4 g .. 4 g + 3, then of lines 8 + 4 g .. 11 + 4 g.
  const __m512i even = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13), odd = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
  // Pairs of four lines, all first pairs before all second ones, so that unpacking within a quarter yields pairs.
  const __m512i order = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
#pragma GCC unroll 8
  for (int word = 0; word < 8; ++word) {
    const __m512i bytes = _mm512_permutex2var_epi64(x[word % 4], word < 4 ? even : odd, x[4 + word % 4]);
    const __m512i code = _mm512_shuffle_epi8(bytes, order);
    const __m512i low = _mm512_permutex2var_epi8(low0, code, low1);
    const __m512i high =
        _mm512_ternarylogic_epi32(_mm512_permutex2var_epi8(high0, code, high1), code, sign, 0xf8);  // a | (b & c)
    _mm512_storeu_si512(to + word * 64, _mm512_unpacklo_epi8(low, high));
    _mm512_storeu_si512(to + word * 64 + 32, _mm512_unpackhi_epi8(low, high));
  }
}
#define FI_WIDEN_LINES 1
#endif

}  // namespace flashinfer::cpu
