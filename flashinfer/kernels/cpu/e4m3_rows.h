// SPDX-License-Identifier: Apache-2.0
// Converts 64 elements at a time to e4m3 (AVX-512). A core issues two 512-bit operations a cycle, so a quantiser is
// bound by their number: 12 for 16 elements here, divisions included, against 19 for store_saturated on contiguous
// vectors. Savings: one operation rounds magnitudes, one sets the signs of all 64, even and odd elements are combined
// in one word, and stores write whole cache lines.
#pragma once
#include "flashinfer/kernels/cpu/narrow.h"

#if defined(FI_NARROW_AVX512)
namespace flashinfer::cpu {
#if defined(__AVX512BF16__)
inline namespace avx512bf16 {
#else
inline namespace avx512 {
#endif

/// Unit of the rounding: 8 times the value, so that the exponent of the sum below holds the code's low bits. Up to 464,
/// half a step above the largest code's value, rounding needs no saturation (the largest element of a group may be a
/// little above 448 after division).
constexpr float kE4m3Unit = 8.0f, kE4m3Most = 464.0f * kE4m3Unit;

namespace detail {
/// Codes of the magnitudes m <= 464 given as kE4m3Unit * m: seven bits, with unspecified bits above them. Rounds as
/// encode_saturated of narrow.h.
FI_VEC_INLINE __m512i e4m3_codes(Vec m) {
  const __m512i least =
      _mm512_max_epu32(_mm512_castps_si512(m.r), _mm512_castps_si512(_mm512_set1_ps(0x1p-6f * kE4m3Unit)));
  const __m512 power = _mm512_castsi512_ps(_mm512_and_si512(least, _mm512_set1_epi32(0x7f800000)));
  const __m512i sum = _mm512_castps_si512(_mm512_fmadd_ps(power, _mm512_set1_ps(0x1p20f), m.r));
  return _mm512_add_epi32(sum, _mm512_srli_epi32(sum, 20));
}
FI_VEC_INLINE __m512i even_odd_words(__m512i even, __m512i odd) {
  return _mm512_mask_blend_epi16(0xaaaaaaaau, even, _mm512_slli_epi32(odd, 16));
}
FI_VEC_INLINE __m512i e4m3_words(Vec even, Vec odd, __mmask16& large) {
  large |= _mm512_cmp_ps_mask(even.r, _mm512_set1_ps(kE4m3Most), _CMP_NLE_UQ) |
           _mm512_cmp_ps_mask(odd.r, _mm512_set1_ps(kE4m3Most), _CMP_NLE_UQ);
  return even_odd_words(e4m3_codes(even), e4m3_codes(odd));
}
/// The low (kHigh: the high) bytes of the words of two vectors.
template <bool kHigh>
FI_VEC_INLINE __m512i bytes_of_words(__m512i a, __m512i b) {
#if defined(__AVX512VBMI__)
  const __m512i pairs = _mm512_setr_epi32(
      0x06040200, 0x0e0c0a08, 0x16141210, 0x1e1c1a18, 0x26242220, 0x2e2c2a28, 0x36343230, 0x3e3c3a38,  //
      0x46444240, 0x4e4c4a48, 0x56545250, 0x5e5c5a58, 0x66646260, 0x6e6c6a68, 0x76747270, 0x7e7c7a78);
  return _mm512_permutex2var_epi8(a, kHigh ? _mm512_or_si512(pairs, _mm512_set1_epi8(1)) : pairs, b);
#else
  if (kHigh) a = _mm512_srli_epi16(a, 8), b = _mm512_srli_epi16(b, 8);
  return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi16_epi8(a)), _mm512_cvtepi16_epi8(b), 1);
#endif
}
FI_VEC_INLINE void store_e4m3_codes(e4m3_t* p, const __m512i (&words)[2], const __m512i (&signs)[2]) {
  const __m512i codes = bytes_of_words<false>(words[0], words[1]), sign = bytes_of_words<true>(signs[0], signs[1]);
  _mm512_storeu_si512(p, _mm512_ternarylogic_epi32(codes, sign, _mm512_set1_epi8(0x7f),
                                                   0xe4));  // bits of `codes` where the third has 1
}
}  // namespace detail

/// 64 elements x of 16 bits; f(half, m) returns kE4m3Unit times the values for 16 magnitudes of the first or second 32.
/// Returns false and stores nothing when one is NaN or would saturate.
template <class T, class F>
FI_VEC_INLINE bool store_e4m3_scaled(e4m3_t* p, const T* x, F f) {
  static_assert(sizeof(T) == 2);
  __m512i words[2], signs[2];
  __mmask16 large = 0;
  for (int h = 0; h < 2; ++h) {
    const Split v = load_split(x + 32 * h);
    signs[h] = _mm512_loadu_si512(x + 32 * h);
    words[h] = detail::e4m3_words(f(h, abs(v.even)), f(h, abs(v.odd)), large);
  }
  if (large) [[unlikely]]
    return false;
  detail::store_e4m3_codes(p, words, signs);
  return true;
}
/// The same for values: f(half) is the Split of 32 of them, times kE4m3Unit.
template <class F>
FI_VEC_INLINE bool store_e4m3_split(e4m3_t* p, F f) {
  __m512i words[2], signs[2];
  __mmask16 large = 0;
  for (int h = 0; h < 2; ++h) {
    const Split v = f(h);
    signs[h] = _mm512_mask_blend_epi16(0xaaaaaaaau, _mm512_srli_epi32(_mm512_castps_si512(v.even.r), 16),
                                       _mm512_castps_si512(v.odd.r));
    words[h] = detail::e4m3_words(abs(v.even), abs(v.odd), large);
  }
  if (large) [[unlikely]]
    return false;
  detail::store_e4m3_codes(p, words, signs);
  return true;
}

}  // inline namespace
}  // namespace flashinfer::cpu
#endif
