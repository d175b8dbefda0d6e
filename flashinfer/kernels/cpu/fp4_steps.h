// SPDX-License-Identifier: Apache-2.0
// e2m1 codes of 16-bit elements without f32 arithmetic (AVX-512). Within a block the code of |x| is a step function of
// the 15 bits of its magnitude, and blocks whose scales differ by a power of two have the same steps, shifted by whole
// exponents. So a tensor has as many sets of steps as e4m3 has mantissas: eight (ue8m0: one). They are computed once,
// with the specified roundings (rn(x * factor), then e2m1 with ties to even). 16 elements then take ten operations on
// 16-bit lanes, where multiplying in f32 takes ten of twice the width (and a division a block).
//
// With M bits of mantissa let W = 2^(M-1), half an octave. Steps T_1 < ... < T_7 are placed so that T_4 = 6 W; then no
// two fall into one bucket [k W, k W + W) except T_4 at its start (neighbours T_j, T_j+1 from the third on are 0.8 W to
// 1.2 W apart, with period 2 W; the first three farther). The code of d is floor((d + addend[d / W]) / W).
#pragma once
#include "flashinfer/kernels/common/scale_layout.h"
#include "flashinfer/kernels/cpu/vec.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define FI_FP4_STEPS 1
namespace flashinfer::cpu {
#if defined(__AVX512BF16__)
inline namespace avx512bf16 {
#else
inline namespace avx512 {
#endif

template <class T>
struct Fp4Bits;  // mantissa, and what is subtracted from an f32's exponent for T's
template <>
struct Fp4Bits<bf16_t> {
  static constexpr int kMantissa = 7, kBias = 0;
};
template <>
struct Fp4Bits<f16_t> {
  static constexpr int kMantissa = 10, kBias = 127 - 15;
};

struct Fp4Steps {
  alignas(32) uint16_t addend[8][16];  // by mantissa of the scale and bucket
  alignas(32) int32_t origin[8];       // magnitude at which d is 0, for a scale in [1, 2)
  bool usable;                         // no product or quotient below leaves the normal numbers
};

namespace detail {
/// T_1 to T_7 of eight factors, as bits of a magnitude with M bits of mantissa and f32's exponent.
template <int M>
FI_VEC_INLINE void fp4_thresholds(__m256 factor, __m256i (&step)[7]) {
  constexpr float kMiddles[7] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
  const __m256i one = _mm256_set1_epi32(1);
  for (int j = 0; j < 7; ++j) {
    const __m256 t = _mm256_set1_ps(kMiddles[j]);
    __m256i at =
        _mm256_srli_epi32(_mm256_castps_si256(_mm256_div_ps(t, factor)), 23 - M);  // the step, or one or two below it
    for (int i = 0; i < 2; ++i) {
      const __m256 p = _mm256_mul_ps(_mm256_castsi256_ps(_mm256_slli_epi32(at, 23 - M)), factor);
      // A tie goes to the even code: up where j, the code below, is odd.
      const __mmask8 below = j % 2 ? _mm256_cmp_ps_mask(p, t, _CMP_LT_OQ) : _mm256_cmp_ps_mask(p, t, _CMP_LE_OQ);
      at = _mm256_mask_add_epi32(at, below, at, one);
    }
    step[j] = at;
  }
}
}  // namespace detail

/// Steps of blocks whose factor is `factor` (eight lanes) times a power of two.
template <class T>
FI_VEC_INLINE void make_fp4_steps(Fp4Steps& s, __m256 factor) {
  constexpr int M = Fp4Bits<T>::kMantissa, W = 1 << (M - 1);
  const __mmask8 small = _mm256_cmp_ps_mask(factor, _mm256_set1_ps(0x1p-60f), _CMP_NGE_UQ),
                 large = _mm256_cmp_ps_mask(factor, _mm256_set1_ps(0x1p60f), _CMP_NLE_UQ);
  s.usable = !(small | large);
  if (!s.usable) return;
  __m256i step[7];
  detail::fp4_thresholds<M>(factor, step);
  const __m256i origin = _mm256_sub_epi32(step[3], _mm256_set1_epi32(6 * W));
  _mm256_store_si256(reinterpret_cast<__m256i*>(s.origin),
                     _mm256_sub_epi32(origin, _mm256_set1_epi32(Fp4Bits<T>::kBias << M)));
  int32_t t[7][8];
  for (int j = 0; j < 7; ++j) _mm256_storeu_si256(reinterpret_cast<__m256i*>(t[j]), _mm256_sub_epi32(step[j], origin));
  const __m256i bucket = _mm256_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m256i begin = _mm256_slli_epi16(bucket, M - 1), width = _mm256_set1_epi16(W),
                end = _mm256_add_epi16(begin, width);
  for (int c = 0; c < 8; ++c) {
    __m256i sum = _mm256_sub_epi16(_mm256_setzero_si256(), begin);
    for (int j = 0; j < 7; ++j)  // a step below the bucket adds W, one inside it the rest of the bucket
      sum = _mm256_add_epi16(
          sum, _mm256_min_epu16(_mm256_subs_epu16(end, _mm256_set1_epi16(static_cast<short>(t[j][c]))), width));
    _mm256_store_si256(reinterpret_cast<__m256i*>(s.addend[c]), sum);
  }
}

/// Origins of the blocks, twice in each lane, and their sets, for n scales; the arrays hold n rounded up to 16. False
/// when the rule does not hold for a scale (subnormal or saturated, or magnitudes in T's subnormal range).
template <class T, bool kUe8m0>
FI_VEC_INLINE bool fp4_places(const Fp4Steps& s, const uint8_t* scale, int64_t n, uint32_t* base, uint32_t* set) {
  constexpr int M = Fp4Bits<T>::kMantissa;
  const __m512i origin = _mm512_castsi256_si512(_mm256_load_si256(reinterpret_cast<const __m256i*>(s.origin)));
  __mmask16 bad = 0;
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 real = first_n(n - i < 16 ? n - i : 16).r;
    const __m512i b = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(real, scale + i));
    const __m512i which = kUe8m0 ? _mm512_setzero_si512() : _mm512_and_si512(b, _mm512_set1_epi32(7));
    const __m512i exponent = kUe8m0 ? _mm512_sub_epi32(b, _mm512_set1_epi32(127))
                                    : _mm512_sub_epi32(_mm512_srli_epi32(b, 3), _mm512_set1_epi32(7));
    __m512i at = _mm512_add_epi32(_mm512_permutexvar_epi32(which, origin), _mm512_slli_epi32(exponent, M));
    const __m512i least = _mm512_set1_epi32(1 << M);
    __mmask16 none,
        odd = _mm512_cmp_epu32_mask(_mm512_sub_epi32(at, least), _mm512_set1_epi32(0x7fff - (1 << M)), _MM_CMPINT_NLE);
    if constexpr (kUe8m0) {
      none = _mm512_testn_epi32_mask(b, b) | _mm512_cmpeq_epi32_mask(b, _mm512_set1_epi32(255));
      odd |= _mm512_cmp_epu32_mask(_mm512_sub_epi32(b, _mm512_set1_epi32(40)), _mm512_set1_epi32(170), _MM_CMPINT_NLE);
    } else {
      none = _mm512_testn_epi32_mask(b, b) | _mm512_cmpeq_epi32_mask(b, _mm512_set1_epi32(0x7f));
      odd |=
          _mm512_cmp_epu32_mask(_mm512_sub_epi32(b, _mm512_set1_epi32(8)), _mm512_set1_epi32(0x7d - 8), _MM_CMPINT_NLE);
    }
    bad |= odd & ~none & real;
    at = _mm512_mask_mov_epi32(at, none, _mm512_set1_epi32(0x7fff));  // codes of 0
    _mm512_storeu_si512(base + i, _mm512_or_si512(at, _mm512_slli_epi32(at, 16)));
    _mm512_storeu_si512(set + i, which);
  }
  return bad == 0;
}

namespace detail {
/// The bytes of 16 elements, one in each lane of 32 bits.
template <int M>
FI_VEC_INLINE __m256i fp4_pairs(const void* x, uint32_t base, const uint16_t* addend) {
  const __m256i v = _mm256_loadu_si256(static_cast<const __m256i*>(x));
  const __m256i d =
      _mm256_subs_epu16(_mm256_and_si256(v, _mm256_set1_epi16(0x7fff)), _mm256_set1_epi32(static_cast<int>(base)));
  const __m256i table = _mm256_load_si256(reinterpret_cast<const __m256i*>(addend));
  const __m256i sum = _mm256_add_epi16(d, _mm256_permutexvar_epi16(_mm256_srli_epi16(d, M - 1), table));
  // Shift by multiplication: the shift units are busy with permutations.
  const __m256i code = _mm256_mulhi_epu16(sum, _mm256_set1_epi16(1 << (17 - M))),
                sign = _mm256_mulhi_epu16(v, _mm256_set1_epi16(16));
  const __m256i nibble = _mm256_ternarylogic_epi32(code, sign, _mm256_set1_epi16(8), 0xf8);  // code | (sign & 8)
  return _mm256_madd_epi16(nibble, _mm256_set1_epi32(0x00100001));                           // even + 16 * odd
}
}  // namespace detail

/// Codes of 4 * n runs of 16 elements; run i belongs to block i / kRuns.
template <class T, int kRuns>
FI_VEC_INLINE void store_fp4_steps(const Fp4Steps& s, const T* x, uint8_t* codes, const uint32_t* base,
                                   const uint32_t* set, int64_t n) {
  constexpr int M = Fp4Bits<T>::kMantissa;
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const auto pairs = [&](int64_t i) {
    return detail::fp4_pairs<M>(x + 16 * i, base[i / kRuns], s.addend[set[i / kRuns]]);
  };
  for (int64_t i = 0; i < 4 * n; i += 4) {
    const __m256i a = _mm256_packus_epi32(pairs(i), pairs(i + 1)), b = _mm256_packus_epi32(pairs(i + 2), pairs(i + 3));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes + 8 * i),
                        _mm256_permutevar8x32_epi32(_mm256_packus_epi16(a, b), order));
  }
}

}  // inline namespace
}  // namespace flashinfer::cpu
#endif
