// SPDX-License-Identifier: Apache-2.0
// Vector conversions from f32 to e4m3, e5m2 and e2m1 (FP4) and from e2m1, for quantisers and readers of NVFP4 caches.
// Stores round to nearest, ties to the even code, and saturate: +-448, +-57344, +-6 (infinities too). NaN becomes 0x7f
// in the 8-bit types; e2m1 has no NaN and gives +-6, so callers check the block's scale (quantize_nvfp4_row does).
//
//   store_saturated(p, v)  store_saturated_n(p, v, n)   p = e4m3_t*, e5m2_t*, int8_t*: Vec::kLanes or n elements
//   store_e2m1_16(p, f)    f(i) is the Vec of elements [i, i + kLanes) of 16; 8 bytes, the even element low
//   store_e2m1_32(p, even, odd), load_split(p)           AVX-512 only: 32 elements at a time
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
#define FI_NARROW_AVX512 1  // store_e2m1_32 and load_split exist
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

/// Codes of magnitudes (sign bits cleared) that are at most the largest value of a float with E exponent and M mantissa
/// bits, bias 2^(E-1) - 1. The FP adder rounds to nearest even: when a number 2^(23-M) times the magnitude's power of
/// two (at least the smallest normal one) is added, the last place of the sum is that of the code.
template <int E, int M>
FI_VEC_INLINE Lanes encode_magnitude(Vec a) {
  constexpr uint32_t kFirst = 128 - ((1u << (E - 1)) - 1);  // biased exponent, in f32, of the smallest normal number
  const Vec power{reinterpret_cast<decltype(Vec::r)>(bits_of(a) & 0x7f800000u)};
  const Lanes e = bits_of(max(power, splat(__builtin_bit_cast(float, kFirst << 23)))), beside = e + ((23u - M) << 23);
  const Lanes sum = bits_of(a + Vec{reinterpret_cast<decltype(Vec::r)>(beside)});
  return (sum - beside) + ((e >> (23 - M)) - (kFirst << M));
}
template <int E, int M>
FI_VEC_INLINE Lanes encode_saturated(Vec v, float largest) {
#if FI_NARROW_AVX512
  // The same in eleven operations: the sum's low bits hold the number of steps, including 2^M for the implicit bit, its
  // high bits the exponent. Bits above the code's byte are unspecified.
  constexpr uint32_t kSmallest = 128 - ((1u << (E - 1)) - 1);
  const __m512i a = _mm512_castps_si512(_mm512_min_ps(_mm512_abs_ps(v.r), _mm512_set1_ps(largest)));
  const __m512i least = _mm512_max_epu32(a, _mm512_set1_epi32(static_cast<int>(kSmallest << 23)));
  const __m512 power = _mm512_castsi512_ps(_mm512_and_si512(least, _mm512_set1_epi32(0x7f800000)));
  const __m512i sum = _mm512_castps_si512(
      _mm512_fmadd_ps(power, _mm512_set1_ps(static_cast<float>(1u << (23 - M))), _mm512_castsi512_ps(a)));
  const __m512i exponent =
      _mm512_add_epi32(_mm512_srli_epi32(sum, 23 - M), _mm512_set1_epi32(-static_cast<int>((kSmallest + 23 - M) << M)));
  const __m512i sign = _mm512_srli_epi32(_mm512_castps_si512(v.r), 24);
  const __m512i code = _mm512_ternarylogic_epi32(_mm512_add_epi32(sum, exponent), sign, _mm512_set1_epi32(0x80),
                                                 0xf8);  // code | (sign & 0x80)
  return reinterpret_cast<Lanes>(_mm512_mask_mov_epi32(code, is_nan(v).r, _mm512_set1_epi32(0x7f)));
#else
  const Lanes code = encode_magnitude<E, M>(min(abs(v), splat(largest))) | ((bits_of(v) >> 24) & 0x80);
  const Vec picked = select(is_nan(v), Vec{reinterpret_cast<decltype(Vec::r)>(Lanes{} + 0x7f)},
                            Vec{reinterpret_cast<decltype(Vec::r)>(code)});
  return bits_of(picked);
#endif
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
/// Adding 1.5 * 2^23 leaves the integer in the low bits; NaN gives 0.
FI_VEC_INLINE Lanes encode(Vec v, const int8_t*) {
  return bits_of(min(splat(127.0f), max(splat(-128.0f), v)) + splat(12582912.0f)) & 0xff;
}

/// Codes of e2m1 with the sign in bit 3. Codes are multiples of 0.5, 1 and 2 in three ranges, and in each range its own
/// step gives the smallest code; adding 2^22 makes the adder round to steps of 0.5, and so on. Seven operations where a
/// table of the seven thresholds takes fourteen.
FI_VEC_INLINE Lanes encode_e2m1(Vec v) {
  constexpr uint32_t kHalves = 0x4a800000u, kOnes = 0x4b000000u, kTwos = 0x4b800000u;  // 2^22, 2^23, 2^24
  const Vec a = min(abs(v), splat(6.0f));
  const Lanes halves = bits_of(a + splat(4194304.0f)), ones = bits_of(a + splat(8388608.0f)) - (kOnes - kHalves - 2),
              twos = bits_of(a + splat(16777216.0f)) - (kTwos - kHalves - 4);
#if FI_NARROW_AVX512
  const __m512i least =
      _mm512_min_epu32(reinterpret_cast<__m512i>(halves),
                       _mm512_min_epu32(reinterpret_cast<__m512i>(ones), reinterpret_cast<__m512i>(twos)));
  const Lanes code = reinterpret_cast<Lanes>(least);
#elif FI_NARROW_AVX2
  const __m256i least =
      _mm256_min_epu32(reinterpret_cast<__m256i>(halves),
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
  const __m512i both =
      _mm512_or_si512(code, _mm512_srli_epi64(code, 28));  // the odd lane's nibble beside the even one's
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm512_cvtepi64_epi8(both));
#elif FI_NARROW_AVX2
  const __m256i a = reinterpret_cast<__m256i>(detail::encode_e2m1(f(0))),
                b = reinterpret_cast<__m256i>(detail::encode_e2m1(f(8)));
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

#if FI_NARROW_AVX512
namespace detail {
/// For each bucket of magnitudes in [0.25, 6] with the same exponent and first mantissa bit, indexed by the low four
/// bits of those: the addend to the f32's bits that gives the code in bits 22 to 24. A bucket has at most one place
/// where the code changes, in its middle (ties to the even code: odd buckets include it) or after its first number; the
/// addition carries there.
constexpr uint32_t e2m1_addend(uint32_t top, uint32_t code, uint32_t carry) { return ((code - top) << 22) + carry; }
inline constexpr uint32_t kE2m1Addends[16] = {e2m1_addend(256, 4, 0x1fffff),
                                              e2m1_addend(257, 5, 0x200000),
                                              e2m1_addend(258, 6, 0x1fffff),
                                              e2m1_addend(259, 7, 0),
                                              0,
                                              0,
                                              0,
                                              0,
                                              0,
                                              0,
                                              e2m1_addend(250, 0, 0x3fffff),
                                              e2m1_addend(251, 1, 0),
                                              e2m1_addend(252, 1, 0),
                                              e2m1_addend(253, 2, 0),
                                              e2m1_addend(254, 2, 0x1fffff),
                                              e2m1_addend(255, 3, 0x200000)};
template <bool kClamp>
FI_VEC_INLINE __m512i e2m1_sum(__m512 v) {
  const __m512 most = kClamp ? _mm512_range_ps(v, _mm512_set1_ps(6.0f), 2) : v;
  const __m512 clamped = _mm512_range_ps(most, _mm512_set1_ps(0.25f), 3);  // magnitudes; v's sign
  const __m512i u = _mm512_castps_si512(clamped);
  return _mm512_add_epi32(u, _mm512_permutexvar_epi32(_mm512_srli_epi32(u, 22), _mm512_loadu_si512(kE2m1Addends)));
}
}  // namespace detail
/// 32 elements, those of even index in `even`, to 16 bytes, as store_e2m1_16. 9 operations for 16 elements instead of
/// 17; one less without the clamp, which is not needed when all magnitudes are below 8.
template <bool kClamp = true>
FI_VEC_INLINE void store_e2m1_32(uint8_t* p, Vec even, Vec odd) {
  const __m512i e = _mm512_srli_epi32(detail::e2m1_sum<kClamp>(even.r), 22),
                o = _mm512_srli_epi32(detail::e2m1_sum<kClamp>(odd.r), 18);
  const __m512i both =
      _mm512_ternarylogic_epi32(e, o, _mm512_set1_epi32(0x2070), 0xf8);  // e | (o & mask); signs in bits 9 and 13
  const __m512i bytes = _mm512_ternarylogic_epi32(both, _mm512_srli_epi32(both, 6), _mm512_set1_epi32(0x88), 0xf8);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(bytes));
}
/// 32 elements from memory, those of even and of odd index.
struct Split {
  Vec even, odd;
};
FI_VEC_INLINE Split load_split(const bf16_t* p) {
  const __m512i x = _mm512_loadu_si512(p);
  return {{_mm512_castsi512_ps(_mm512_slli_epi32(x, 16))},
          {_mm512_castsi512_ps(_mm512_and_si512(x, _mm512_set1_epi32(static_cast<int>(0xffff0000u))))}};
}
template <class T>
FI_VEC_INLINE Split load_split(const T* p) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512 a = load(p).r, b = load(p + 16).r;
  return {{_mm512_permutex2var_ps(a, even, b)},
          {_mm512_permutex2var_ps(a, _mm512_add_epi32(even, _mm512_set1_epi32(1)), b)}};
}
#endif

FI_VEC_INLINE Vec load_e2m1(const uint8_t* p) {
#if FI_NARROW_AVX512
  const __m512 values = _mm512_setr_ps(0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6);
  const __m512i q = _mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  return {_mm512_permutexvar_ps(_mm512_or_si512(q, _mm512_slli_epi64(q, 28)), values)};  // uses four bits of a lane
#elif FI_NARROW_AVX2
  int32_t four;
  memcpy(&four, p, sizeof four);
  const __m256i shift = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
  const __m256i code = _mm256_srlv_epi32(_mm256_set1_epi32(four), shift);
  const __m256 mag =
      _mm256_permutevar8x32_ps(_mm256_setr_ps(0, 0.5f, 1, 1.5f, 2, 3, 4, 6), code);  // three bits of a lane
  const __m256i sign = _mm256_slli_epi32(_mm256_and_si256(code, _mm256_set1_epi32(8)), 28);
  return {_mm256_xor_ps(mag, _mm256_castsi256_ps(sign))};
#else
  const float values[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
  return {F32x4{values[p[0] & 15], values[p[0] >> 4], values[p[1] & 15], values[p[1] >> 4]}};
#endif
}

#undef FI_NARROW_AVX2
}  // inline namespace
}  // namespace flashinfer::cpu
