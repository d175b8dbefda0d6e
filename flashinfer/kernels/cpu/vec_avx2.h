// SPDX-License-Identifier: Apache-2.0
// Vec for AVX2 + FMA + F16C (x86-64-v3). Included by vec.h only.
#pragma once
#include <immintrin.h>

namespace flashinfer::cpu {
inline namespace avx2 {

struct Vec {
  static constexpr int kLanes = 8;
  __m256 r;
};
struct Mask {
  __m256 r;
};

namespace detail {
FI_VEC_INLINE __m256i mask_i32(int64_t n) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lane);
}
// There is no masked load below 32 bits: copy to the stack, so that memory past the end is never read.
template <class T>
FI_VEC_INLINE __m128i load_bytes_n(const T* p, int64_t n) {
  alignas(16) char buf[16] = {};
  memcpy(buf, p, static_cast<size_t>(n) * sizeof(T));
  return _mm_load_si128(reinterpret_cast<const __m128i*>(buf));
}
template <class T>
FI_VEC_INLINE void store_bytes_n(T* p, __m128i v, int64_t n) {
  alignas(16) char buf[16];
  _mm_store_si128(reinterpret_cast<__m128i*>(buf), v);
  memcpy(static_cast<void*>(p), buf, static_cast<size_t>(n) * sizeof(T));
}
}  // namespace detail

FI_VEC_INLINE Mask first_n(int64_t n) { return {_mm256_castsi256_ps(detail::mask_i32(n))}; }
FI_VEC_INLINE Vec zero() { return {_mm256_setzero_ps()}; }
FI_VEC_INLINE Vec splat(float x) { return {_mm256_set1_ps(x)}; }

FI_VEC_INLINE Vec operator+(Vec a, Vec b) { return {_mm256_add_ps(a.r, b.r)}; }
FI_VEC_INLINE Vec operator-(Vec a, Vec b) { return {_mm256_sub_ps(a.r, b.r)}; }
FI_VEC_INLINE Vec operator*(Vec a, Vec b) { return {_mm256_mul_ps(a.r, b.r)}; }
FI_VEC_INLINE Vec operator/(Vec a, Vec b) { return {_mm256_div_ps(a.r, b.r)}; }
FI_VEC_INLINE Vec operator-(Vec a) { return {_mm256_xor_ps(a.r, _mm256_set1_ps(-0.0f))}; }
FI_VEC_INLINE Vec fma(Vec a, Vec b, Vec c) { return {_mm256_fmadd_ps(a.r, b.r, c.r)}; }
FI_VEC_INLINE Vec fnma(Vec a, Vec b, Vec c) { return {_mm256_fnmadd_ps(a.r, b.r, c.r)}; }
FI_VEC_INLINE Vec min(Vec a, Vec b) { return {_mm256_min_ps(a.r, b.r)}; }
FI_VEC_INLINE Vec max(Vec a, Vec b) { return {_mm256_max_ps(a.r, b.r)}; }
FI_VEC_INLINE Vec sqrt(Vec a) { return {_mm256_sqrt_ps(a.r)}; }
FI_VEC_INLINE Vec abs(Vec a) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.r)}; }
FI_VEC_INLINE Vec round(Vec a) { return {_mm256_round_ps(a.r, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }

namespace detail {
FI_VEC_INLINE __m256 power_of_two(__m256i n) {  // n in [-126, 127]
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}
}  // namespace detail
// Two factors of half the exponent each: both are normal for |n| <= 252, and only the second product can round when
// x| is near 1.
FI_VEC_INLINE Vec ldexp(Vec x, Vec n) {
  const __m256i i = _mm256_cvtps_epi32(n.r), a = _mm256_srai_epi32(i, 1), b = _mm256_sub_epi32(i, a);
  return {_mm256_mul_ps(_mm256_mul_ps(x.r, detail::power_of_two(a)), detail::power_of_two(b))};
}

FI_VEC_INLINE Mask operator<(Vec a, Vec b) { return {_mm256_cmp_ps(a.r, b.r, _CMP_LT_OQ)}; }
FI_VEC_INLINE Mask operator<=(Vec a, Vec b) { return {_mm256_cmp_ps(a.r, b.r, _CMP_LE_OQ)}; }
FI_VEC_INLINE Mask operator==(Vec a, Vec b) { return {_mm256_cmp_ps(a.r, b.r, _CMP_EQ_OQ)}; }
FI_VEC_INLINE Mask is_nan(Vec a) { return {_mm256_cmp_ps(a.r, a.r, _CMP_UNORD_Q)}; }
FI_VEC_INLINE Mask operator&(Mask a, Mask b) { return {_mm256_and_ps(a.r, b.r)}; }
FI_VEC_INLINE Mask operator|(Mask a, Mask b) { return {_mm256_or_ps(a.r, b.r)}; }
FI_VEC_INLINE Mask operator!(Mask a) { return {_mm256_xor_ps(a.r, _mm256_castsi256_ps(_mm256_set1_epi32(-1)))}; }
FI_VEC_INLINE bool any(Mask a) { return _mm256_movemask_ps(a.r) != 0; }
FI_VEC_INLINE Vec select(Mask m, Vec a, Vec b) { return {_mm256_blendv_ps(b.r, a.r, m.r)}; }

namespace detail {
FI_VEC_INLINE Vec widen_bf16(__m128i h) {
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16))};
}
FI_VEC_INLINE Vec widen_f16(__m128i h) { return {_mm256_cvtph_ps(h)}; }
// e4m3 bits shifted into an f16 are 2^-8 times the value, subnormals included; only NaN (all ones) is a special case.
FI_VEC_INLINE Vec widen_e4m3(__m128i b) {
  const __m128i h = _mm_cvtepu8_epi16(b);
  const __m128i sign = _mm_slli_epi16(_mm_and_si128(h, _mm_set1_epi16(0x80)), 8);
  const __m128i mag = _mm_and_si128(h, _mm_set1_epi16(0x7f));
  const __m256 v = _mm256_cvtph_ps(_mm_or_si128(sign, _mm_slli_epi16(mag, 7)));
  const __m256i nan = _mm256_cvtepi16_epi32(_mm_cmpeq_epi16(mag, _mm_set1_epi16(0x7f)));
  return {_mm256_or_ps(_mm256_mul_ps(v, _mm256_set1_ps(256.0f)),
                       _mm256_castsi256_ps(_mm256_and_si256(nan, _mm256_set1_epi32(0x7fc00000))))};
}
FI_VEC_INLINE Vec widen_e5m2(__m128i b) { return {_mm256_cvtph_ps(_mm_slli_epi16(_mm_cvtepu8_epi16(b), 8))}; }
FI_VEC_INLINE __m128i narrow_bf16(Vec v) {
  const __m256i u = _mm256_castps_si256(v.r);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
  const __m256i up = _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd);
  const __m256i quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
  const __m256i q = _mm256_srli_epi32(_mm256_blendv_epi8(up, quiet, _mm256_castps_si256(is_nan(v).r)), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(q), _mm256_extracti128_si256(q, 1));
}
FI_VEC_INLINE __m128i narrow_f16(Vec v) { return _mm256_cvtps_ph(v.r, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
template <class T>
FI_VEC_INLINE __m128i load_16(const T* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
template <class T>
FI_VEC_INLINE __m128i load_8(const T* p) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
}
}  // namespace detail

FI_VEC_INLINE Vec load(const float* p) { return {_mm256_loadu_ps(p)}; }
FI_VEC_INLINE Vec load_n(const float* p, int64_t n) { return {_mm256_maskload_ps(p, detail::mask_i32(n))}; }
FI_VEC_INLINE Vec load(const bf16_t* p) { return detail::widen_bf16(detail::load_16(p)); }
FI_VEC_INLINE Vec load_n(const bf16_t* p, int64_t n) { return detail::widen_bf16(detail::load_bytes_n(p, n)); }
FI_VEC_INLINE Vec load(const f16_t* p) { return detail::widen_f16(detail::load_16(p)); }
FI_VEC_INLINE Vec load_n(const f16_t* p, int64_t n) { return detail::widen_f16(detail::load_bytes_n(p, n)); }
FI_VEC_INLINE Vec load(const e4m3_t* p) { return detail::widen_e4m3(detail::load_8(p)); }
FI_VEC_INLINE Vec load_n(const e4m3_t* p, int64_t n) { return detail::widen_e4m3(detail::load_bytes_n(p, n)); }
FI_VEC_INLINE Vec load(const e5m2_t* p) { return detail::widen_e5m2(detail::load_8(p)); }
FI_VEC_INLINE Vec load_n(const e5m2_t* p, int64_t n) { return detail::widen_e5m2(detail::load_bytes_n(p, n)); }

FI_VEC_INLINE void store(float* p, Vec v) { _mm256_storeu_ps(p, v.r); }
FI_VEC_INLINE void store_n(float* p, Vec v, int64_t n) { _mm256_maskstore_ps(p, detail::mask_i32(n), v.r); }
FI_VEC_INLINE void store(bf16_t* p, Vec v) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), detail::narrow_bf16(v)); }
FI_VEC_INLINE void store_n(bf16_t* p, Vec v, int64_t n) { detail::store_bytes_n(p, detail::narrow_bf16(v), n); }
FI_VEC_INLINE void store(f16_t* p, Vec v) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), detail::narrow_f16(v)); }
FI_VEC_INLINE void store_n(f16_t* p, Vec v, int64_t n) { detail::store_bytes_n(p, detail::narrow_f16(v), n); }

namespace detail {
template <class F>
FI_VEC_INLINE float reduce(Vec v, F f) {
  v = f(v, Vec{_mm256_permute2f128_ps(v.r, v.r, 1)});  // lane i meets i + 4
  v = f(v, Vec{_mm256_permute_ps(v.r, 0x4e)});         // i + 2
  v = f(v, Vec{_mm256_permute_ps(v.r, 0xb1)});         // i + 1
  return _mm256_cvtss_f32(v.r);
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
  __m256i r;
};
FI_VEC_INLINE Pairs load_pairs(const bf16_t* p) { return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))}; }
FI_VEC_INLINE Pairs load_pairs_n(const bf16_t* p, int64_t n) {
  alignas(32) char buf[32] = {};
  memcpy(buf, p, static_cast<size_t>(n) * sizeof(bf16_t));
  return {_mm256_load_si256(reinterpret_cast<const __m256i*>(buf))};
}
FI_VEC_INLINE Pairs splat_pair(const bf16_t* p) {
  int32_t u;
  memcpy(&u, p, sizeof u);
  return {_mm256_set1_epi32(u)};
}
FI_VEC_INLINE Vec dot_pairs(Vec acc, Pairs a, Pairs b) {
  const __m256i high = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
  const Vec a1{_mm256_castsi256_ps(_mm256_and_si256(a.r, high))}, b1{_mm256_castsi256_ps(_mm256_and_si256(b.r, high))};
  const Vec a0{_mm256_castsi256_ps(_mm256_slli_epi32(a.r, 16))}, b0{_mm256_castsi256_ps(_mm256_slli_epi32(b.r, 16))};
  return fma(a0, b0, fma(a1, b1, acc));
}

}  // namespace avx2
}  // namespace flashinfer::cpu
