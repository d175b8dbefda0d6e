// SPDX-License-Identifier: Apache-2.0
// Vec for AVX-512 (F, BW, DQ, VL: x86-64-v4), with the BF16 dot product where the target has it. Included by vec.h
// only.
#pragma once
#include <immintrin.h>

namespace flashinfer::cpu {
#if defined(__AVX512BF16__)
inline namespace avx512bf16 {
#else
inline namespace avx512 {
#endif

struct Vec {
  static constexpr int kLanes = 16;
  __m512 r;
};
struct Mask {
  __mmask16 r;
};

FI_VEC_INLINE Mask first_n(int64_t n) { return {static_cast<__mmask16>(_bzhi_u32(0xffffu, static_cast<uint32_t>(n)))}; }
FI_VEC_INLINE Vec zero() { return {_mm512_setzero_ps()}; }
FI_VEC_INLINE Vec splat(float x) { return {_mm512_set1_ps(x)}; }

FI_VEC_INLINE Vec operator+(Vec a, Vec b) { return {_mm512_add_ps(a.r, b.r)}; }
FI_VEC_INLINE Vec operator-(Vec a, Vec b) { return {_mm512_sub_ps(a.r, b.r)}; }
FI_VEC_INLINE Vec operator*(Vec a, Vec b) { return {_mm512_mul_ps(a.r, b.r)}; }
FI_VEC_INLINE Vec operator/(Vec a, Vec b) { return {_mm512_div_ps(a.r, b.r)}; }
FI_VEC_INLINE Vec operator-(Vec a) { return {_mm512_xor_ps(a.r, _mm512_set1_ps(-0.0f))}; }
FI_VEC_INLINE Vec fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.r, b.r, c.r)}; }
FI_VEC_INLINE Vec fnma(Vec a, Vec b, Vec c) { return {_mm512_fnmadd_ps(a.r, b.r, c.r)}; }
FI_VEC_INLINE Vec min(Vec a, Vec b) { return {_mm512_min_ps(a.r, b.r)}; }
FI_VEC_INLINE Vec max(Vec a, Vec b) { return {_mm512_max_ps(a.r, b.r)}; }
FI_VEC_INLINE Vec sqrt(Vec a) { return {_mm512_sqrt_ps(a.r)}; }
FI_VEC_INLINE Vec abs(Vec a) { return {_mm512_andnot_ps(_mm512_set1_ps(-0.0f), a.r)}; }
FI_VEC_INLINE Vec round(Vec a) { return {_mm512_roundscale_ps(a.r, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
FI_VEC_INLINE Vec ldexp(Vec x, Vec n) { return {_mm512_scalef_ps(x.r, n.r)}; }

FI_VEC_INLINE Mask operator<(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.r, b.r, _CMP_LT_OQ)}; }
FI_VEC_INLINE Mask operator<=(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.r, b.r, _CMP_LE_OQ)}; }
FI_VEC_INLINE Mask operator==(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.r, b.r, _CMP_EQ_OQ)}; }
FI_VEC_INLINE Mask is_nan(Vec a) { return {_mm512_cmp_ps_mask(a.r, a.r, _CMP_UNORD_Q)}; }
FI_VEC_INLINE Mask operator&(Mask a, Mask b) { return {static_cast<__mmask16>(a.r & b.r)}; }
FI_VEC_INLINE Mask operator|(Mask a, Mask b) { return {static_cast<__mmask16>(a.r | b.r)}; }
FI_VEC_INLINE Mask operator!(Mask a) { return {static_cast<__mmask16>(~a.r)}; }
FI_VEC_INLINE bool any(Mask a) { return a.r != 0; }
FI_VEC_INLINE Vec select(Mask m, Vec a, Vec b) { return {_mm512_mask_blend_ps(m.r, b.r, a.r)}; }

namespace detail {
FI_VEC_INLINE Vec widen_bf16(__m256i h) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16))};
}
FI_VEC_INLINE Vec widen_f16(__m256i h) { return {_mm512_cvtph_ps(h)}; }
// e4m3 bits shifted into an f16 are 2^-8 times the value, subnormals included; only NaN (all ones) is a special case.
FI_VEC_INLINE Vec widen_e4m3(__m128i b) {
  const __m256i h = _mm256_cvtepu8_epi16(b);
  const __m256i sign = _mm256_slli_epi16(_mm256_and_si256(h, _mm256_set1_epi16(0x80)), 8);
  const __m256i mag = _mm256_and_si256(h, _mm256_set1_epi16(0x7f));
  const __m512 v = _mm512_cvtph_ps(_mm256_or_si256(sign, _mm256_slli_epi16(mag, 7)));
  const __mmask16 nan = _mm256_cmpeq_epi16_mask(mag, _mm256_set1_epi16(0x7f));
  return {_mm512_mask_blend_ps(nan, _mm512_mul_ps(v, _mm512_set1_ps(256.0f)), _mm512_set1_ps(__builtin_nanf("")))};
}
FI_VEC_INLINE Vec widen_e5m2(__m128i b) { return {_mm512_cvtph_ps(_mm256_slli_epi16(_mm256_cvtepu8_epi16(b), 8))}; }
FI_VEC_INLINE __m256i narrow_bf16(Vec v) {
  const __m512i u = _mm512_castps_si512(v.r);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  const __m512i up = _mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd);
  const __m512i q = _mm512_mask_or_epi32(up, is_nan(v).r, u, _mm512_set1_epi32(0x400000));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(q, 16));
}
FI_VEC_INLINE __m256i narrow_f16(Vec v) { return _mm512_cvtps_ph(v.r, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
}  // namespace detail

FI_VEC_INLINE Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }
FI_VEC_INLINE Vec load_n(const float* p, int64_t n) { return {_mm512_maskz_loadu_ps(first_n(n).r, p)}; }
FI_VEC_INLINE Vec load(const bf16_t* p) {
  return detail::widen_bf16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
FI_VEC_INLINE Vec load_n(const bf16_t* p, int64_t n) {
  return detail::widen_bf16(_mm256_maskz_loadu_epi16(first_n(n).r, p));
}
FI_VEC_INLINE Vec load(const f16_t* p) {
  return detail::widen_f16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
FI_VEC_INLINE Vec load_n(const f16_t* p, int64_t n) {
  return detail::widen_f16(_mm256_maskz_loadu_epi16(first_n(n).r, p));
}
FI_VEC_INLINE Vec load(const e4m3_t* p) {
  return detail::widen_e4m3(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
FI_VEC_INLINE Vec load_n(const e4m3_t* p, int64_t n) {
  return detail::widen_e4m3(_mm_maskz_loadu_epi8(first_n(n).r, p));
}
FI_VEC_INLINE Vec load(const e5m2_t* p) {
  return detail::widen_e5m2(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
FI_VEC_INLINE Vec load_n(const e5m2_t* p, int64_t n) {
  return detail::widen_e5m2(_mm_maskz_loadu_epi8(first_n(n).r, p));
}

FI_VEC_INLINE void store(float* p, Vec v) { _mm512_storeu_ps(p, v.r); }
FI_VEC_INLINE void store_n(float* p, Vec v, int64_t n) { _mm512_mask_storeu_ps(p, first_n(n).r, v.r); }
FI_VEC_INLINE void store(bf16_t* p, Vec v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), detail::narrow_bf16(v));
}
FI_VEC_INLINE void store_n(bf16_t* p, Vec v, int64_t n) {
  _mm256_mask_storeu_epi16(p, first_n(n).r, detail::narrow_bf16(v));
}
FI_VEC_INLINE void store(f16_t* p, Vec v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), detail::narrow_f16(v)); }
FI_VEC_INLINE void store_n(f16_t* p, Vec v, int64_t n) {
  _mm256_mask_storeu_epi16(p, first_n(n).r, detail::narrow_f16(v));
}

namespace detail {
FI_VEC_INLINE __m512 swap_halves(__m512 v) { return _mm512_shuffle_f32x4(v, v, 0x4e); }    // lane i <-> i + 8
FI_VEC_INLINE __m512 swap_quarters(__m512 v) { return _mm512_shuffle_f32x4(v, v, 0xb1); }  // i <-> i + 4
FI_VEC_INLINE __m512 swap_pairs(__m512 v) { return _mm512_permute_ps(v, 0x4e); }           // i <-> i + 2
FI_VEC_INLINE __m512 swap_lanes(__m512 v) { return _mm512_permute_ps(v, 0xb1); }           // i <-> i + 1
template <class F>
FI_VEC_INLINE float reduce(Vec v, F f) {
  v = f(v, Vec{swap_halves(v.r)});
  v = f(v, Vec{swap_quarters(v.r)});
  v = f(v, Vec{swap_pairs(v.r)});
  v = f(v, Vec{swap_lanes(v.r)});
  return _mm512_cvtss_f32(v.r);
}
}  // namespace detail
FI_VEC_INLINE float reduce_add(Vec v) {
  return detail::reduce(v, [](Vec a, Vec b) { return a + b; });
}
FI_VEC_INLINE float reduce_max(Vec v) {
  return detail::reduce(v, [](Vec a, Vec b) { return max(a, b); });
}
FI_VEC_INLINE float reduce_min(Vec v) {
  return detail::reduce(v, [](Vec a, Vec b) { return min(a, b); });
}

struct Pairs {
  __m512i r;
};
FI_VEC_INLINE Pairs load_pairs(const bf16_t* p) { return {_mm512_loadu_si512(p)}; }
FI_VEC_INLINE Pairs load_pairs_n(const bf16_t* p, int64_t n) {
  return {_mm512_maskz_loadu_epi16(_bzhi_u32(0xffffffffu, static_cast<uint32_t>(n)), p)};
}
FI_VEC_INLINE Pairs splat_pair(const bf16_t* p) {
  int32_t u;
  memcpy(&u, p, sizeof u);
  return {_mm512_set1_epi32(u)};
}
FI_VEC_INLINE Vec dot_pairs(Vec acc, Pairs a, Pairs b) {
#if defined(__AVX512BF16__)
  return {_mm512_dpbf16_ps(acc.r, reinterpret_cast<__m512bh>(a.r), reinterpret_cast<__m512bh>(b.r))};
#else
  const __m512i high = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  const Vec a1{_mm512_castsi512_ps(_mm512_and_si512(a.r, high))}, b1{_mm512_castsi512_ps(_mm512_and_si512(b.r, high))};
  const Vec a0{_mm512_castsi512_ps(_mm512_slli_epi32(a.r, 16))}, b0{_mm512_castsi512_ps(_mm512_slli_epi32(b.r, 16))};
  return fma(a0, b0, fma(a1, b1, acc));
#endif
}

}  // inline namespace
}  // namespace flashinfer::cpu
