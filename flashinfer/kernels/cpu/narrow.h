// SPDX-License-Identifier: Apache-2.0
// f32 to e4m3, e5m2 and e2m1 (FP4) and from e2m1, by vectors, for quantising and for reading NVFP4 caches. Stores round to nearest,
// ties to the even code, and saturate: +-448, +-57344, +-6 (infinities too). NaN becomes 0x7f in the 8-bit types; e2m1 has none, there
// it becomes +-6, so that callers look at the block's scale (quantize_nvfp4_row does).
//
//   store_saturated(p, v)  store_saturated_n(p, v, n)       p = e4m3_t*, e5m2_t*: Vec::kLanes or n elements
//   store_e2m1_16(p, f)    f(i) is the Vec of elements [i, i + kLanes) of 16; 8 bytes, the even element in the low nibble
//   load_e2m1(p)           Vec::kLanes elements from kLanes / 2 bytes
#pragma once
#include "flashinfer/kernels/cpu/vec.h"

namespace flashinfer::cpu {
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#if defined(__AVX512BF16__)
inline namespace avx512bf16 {
#else
inline namespace avx512 {
#endif
#define FI_NARROW_AVX512 1
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
inline namespace avx2 {
#define FI_NARROW_AVX2 1
#else
inline namespace portable {
#endif

namespace detail {
typedef uint32_t Lanes __attribute__((vector_size(4 * Vec::kLanes)));
typedef int32_t SignedLanes __attribute__((vector_size(4 * Vec::kLanes)));
typedef uint8_t ByteLanes __attribute__((vector_size(Vec::kLanes)));
FI_VEC_INLINE Lanes bits_of(Vec v) { return reinterpret_cast<Lanes>(v.r); }

/// Codes of magnitudes (sign bits cleared) that are at most the largest value of a float with E exponent and M mantissa bits, bias
/// 2^(E-1) - 1, rounded to nearest even: a code is the f32's top bits with another bias; below the smallest normal, where spacing
/// stays the same, the adder rounds. Exact: each path rounds once.
template <int E, int M>
FI_VEC_INLINE Lanes encode_magnitude(Vec a) {
  constexpr uint32_t kBias = (1u << (E - 1)) - 1, kShift = 23 - M;
  constexpr uint32_t kMagic = (127 + 23 + 1 - kBias - M) << 23;  // its last place is the smallest subnormal
  const Lanes u = bits_of(a);
  const Lanes normal = (u + ((u >> kShift) & 1) + ((1u << (kShift - 1)) - 1 - ((127 - kBias) << 23))) >> kShift;
  const Lanes small = bits_of(a + splat(__builtin_bit_cast(float, kMagic))) - kMagic;
  const SignedLanes is_small = reinterpret_cast<SignedLanes>(u) < static_cast<int32_t>((128 - kBias) << 23);
  return (small & reinterpret_cast<Lanes>(is_small)) | (normal & ~reinterpret_cast<Lanes>(is_small));
}
template <int E, int M>
FI_VEC_INLINE Lanes encode_saturated(Vec v, float largest) {
  const Lanes code = encode_magnitude<E, M>(min(abs(v), splat(largest))) | ((bits_of(v) >> 24) & 0x80);
  const Vec picked = select(is_nan(v), Vec{reinterpret_cast<decltype(Vec::r)>(Lanes{} + 0x7f)}, Vec{reinterpret_cast<decltype(Vec::r)>(code)});
  return bits_of(picked);
}
FI_VEC_INLINE void store_low_bytes(void* p, Lanes u) {
#if FI_NARROW_AVX512
  _mm_storeu_si128(static_cast<__m128i*>(p), _mm512_cvtepi32_epi8(reinterpret_cast<__m512i>(u)));
#elif FI_NARROW_AVX2
  const __m256i v = reinterpret_cast<__m256i>(u);
  const __m128i h = _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  _mm_storel_epi64(static_cast<__m128i*>(p), _mm_packus_epi16(h, h));
#else
  const ByteLanes b = __builtin_convertvector(u, ByteLanes);
  memcpy(p, &b, sizeof b);
#endif
}
FI_VEC_INLINE void store_low_bytes_n(void* p, Lanes u, int64_t n) {
#if FI_NARROW_AVX512
  _mm_mask_storeu_epi8(p, first_n(n).r, _mm512_cvtepi32_epi8(reinterpret_cast<__m512i>(u)));
#else
  uint8_t b[Vec::kLanes];
  store_low_bytes(b, u);
  memcpy(p, b, static_cast<size_t>(n));
#endif
}
FI_VEC_INLINE Lanes encode(Vec v, const e4m3_t*) { return encode_saturated<4, 3>(v, 448.0f); }
FI_VEC_INLINE Lanes encode(Vec v, const e5m2_t*) { return encode_saturated<5, 2>(v, 57344.0f); }

/// Codes of e2m1 with the sign in bit 3. The codes count steps of 0.5, 1 and 2 in three ranges, and in each range its own step gives
/// the smallest count; adding 2^22 makes the adder round to steps of 0.5, and so on. Seven operations where a table of the seven
/// thresholds takes fourteen.
FI_VEC_INLINE Lanes encode_e2m1(Vec v) {
  constexpr uint32_t kHalves = 0x4a800000u, kOnes = 0x4b000000u, kTwos = 0x4b800000u;  // 2^22, 2^23, 2^24
  const Vec a = min(abs(v), splat(6.0f));
  const Lanes halves = bits_of(a + splat(4194304.0f)), ones = bits_of(a + splat(8388608.0f)) - (kOnes - kHalves - 2),
              twos = bits_of(a + splat(16777216.0f)) - (kTwos - kHalves - 4);
#if FI_NARROW_AVX512
  const __m512i least = _mm512_min_epu32(reinterpret_cast<__m512i>(halves),
                                         _mm512_min_epu32(reinterpret_cast<__m512i>(ones), reinterpret_cast<__m512i>(twos)));
  const Lanes code = reinterpret_cast<Lanes>(least);
#elif FI_NARROW_AVX2
  const __m256i least = _mm256_min_epu32(reinterpret_cast<__m256i>(halves),
                                         _mm256_min_epu32(reinterpret_cast<__m256i>(ones), reinterpret_cast<__m256i>(twos)));
  const Lanes code = reinterpret_cast<Lanes>(least);
#else
  const Lanes low = halves < ones ? halves : ones, code = low < twos ? low : twos;
#endif
  return (code & 7) | ((bits_of(v) >> 28) & 8);
}
}  // namespace detail

template <class T>
FI_VEC_INLINE void store_saturated(T* p, Vec v) {
  detail::store_low_bytes(p, detail::encode(v, p));
}
template <class T>
FI_VEC_INLINE void store_saturated_n(T* p, Vec v, int64_t n) {
  detail::store_low_bytes_n(p, detail::encode(v, p), n);
}

template <class F>
FI_VEC_INLINE void store_e2m1_16(uint8_t* p, F f) {
#if FI_NARROW_AVX512
  const __m512i code = reinterpret_cast<__m512i>(detail::encode_e2m1(f(0)));
  const __m512i both = _mm512_or_si512(code, _mm512_srli_epi64(code, 28));  // the odd lane's nibble beside the even one's
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm512_cvtepi64_epi8(both));
#elif FI_NARROW_AVX2
  const __m256i a = reinterpret_cast<__m256i>(detail::encode_e2m1(f(0))), b = reinterpret_cast<__m256i>(detail::encode_e2m1(f(8)));
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xd8);
  const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  const __m128i pairs = _mm_maddubs_epi16(bytes, _mm_set1_epi16(0x1001));  // even + 16 * odd
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packus_epi16(pairs, pairs));
#else
  for (int i = 0; i < 16; i += Vec::kLanes) {
    const detail::Lanes code = detail::encode_e2m1(f(i));
    for (int j = 0; j < Vec::kLanes; j += 2) p[(i + j) / 2] = static_cast<uint8_t>(code[j] | code[j + 1] << 4);
  }
#endif
}

FI_VEC_INLINE Vec load_e2m1(const uint8_t* p) {
#if FI_NARROW_AVX512
  const __m512 values = _mm512_setr_ps(0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6);
  const __m512i q = _mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  return {_mm512_permutexvar_ps(_mm512_or_si512(q, _mm512_slli_epi64(q, 28)), values)};  // it looks at four bits of a lane
#elif FI_NARROW_AVX2
  int32_t four;
  memcpy(&four, p, sizeof four);
  const __m256i shift = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
  const __m256i code = _mm256_srlv_epi32(_mm256_set1_epi32(four), shift);
  const __m256 mag = _mm256_permutevar8x32_ps(_mm256_setr_ps(0, 0.5f, 1, 1.5f, 2, 3, 4, 6), code);  // three bits of a lane
  const __m256i sign = _mm256_slli_epi32(_mm256_and_si256(code, _mm256_set1_epi32(8)), 28);
  return {_mm256_xor_ps(mag, _mm256_castsi256_ps(sign))};
#else
  const float values[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
  return {F32x4{values[p[0] & 15], values[p[0] >> 4], values[p[1] & 15], values[p[1] >> 4]}};
#endif
}

#undef FI_NARROW_AVX512
#undef FI_NARROW_AVX2
}  // inline namespace
}  // namespace flashinfer::cpu
