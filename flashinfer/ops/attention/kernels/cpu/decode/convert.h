// SPDX-License-Identifier: Apache-2.0
// Converts rows of 8-bit and 4-bit caches to the operand type of the decode kernel: bf16 for vdpbf16ps, which holds
// e4m3, e5m2 and e2m1 times an e4m3 scale exactly (at most 6 significant bits, exponents within bf16's), or f32.
#pragma once
#include "flashinfer/ops/attention/kernels/cpu/decode/softmax.h"

namespace flashinfer::cpu::attention {

/// bf16 bits of m * 2^e for 0 < m < 256.
constexpr uint16_t bf16_bits(int m, int e) {
  while (m < 128) m *= 2, --e;
  return static_cast<uint16_t>((e + 7 + 127) << 7 | (m & 127));
}
constexpr uint16_t bf16_of_e4m3(int code) {  // 7 bits
  if (code == 0x7f) return 0x7fc0;
  const int e = code >> 3, f = code & 7;
  return code == 0 ? 0 : e == 0 ? bf16_bits(f, -9) : bf16_bits(8 + f, e - 10);
}
constexpr uint16_t bf16_of_e5m2(int code) {
  const int e = code >> 2, f = code & 3;
  if (e == 31) return f ? 0x7fc0 : 0x7f80;
  return code == 0 ? 0 : e == 0 ? bf16_bits(f, -16) : bf16_bits(4 + f, e - 17);
}

/// Values of a row of packed e2m1 codes (two a byte), with one e4m3 scale for every 16.
inline void widen_row(const uint8_t* in, const uint8_t* sf, int64_t dim, float* out) {
  constexpr float kGrid[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
  for (int64_t d = 0; d < dim; d += 16) {
    const float scale = to_f32(reinterpret_cast<const e4m3_t*>(sf)[d / 16]);
    for (int64_t i = d; i < d + 16 && i < dim; ++i) out[i] = kGrid[in[i / 2] >> (i % 2 * 4) & 15] * scale;
  }
}

#if defined(__AVX512BF16__) && defined(__AVX512VBMI__)
/// Low and high bytes of the bf16 of a format's 128 magnitudes.
struct ByteTables {
  alignas(64) uint8_t low[128], high[128];
  template <class F>
  constexpr explicit ByteTables(F of) : low(), high() {
    for (int i = 0; i < 128; ++i) low[i] = static_cast<uint8_t>(of(i)), high[i] = static_cast<uint8_t>(of(i) >> 8);
  }
};
inline constexpr ByteTables kE4M3Bytes(bf16_of_e4m3), kE5M2Bytes(bf16_of_e5m2);

/// 64 codes at once: two lookups of 128 bytes (vpermi2b) give both bytes of the magnitude, the sign is ORed in.
template <class T>
struct Wide {
  static constexpr const ByteTables& kTables = __is_same(T, e4m3_t) ? kE4M3Bytes : kE5M2Bytes;
  const __m512i low0 = _mm512_load_si512(kTables.low), low1 = _mm512_load_si512(kTables.low + 64);
  const __m512i high0 = _mm512_load_si512(kTables.high), high1 = _mm512_load_si512(kTables.high + 64);
  const __m512i sign = _mm512_set1_epi8(static_cast<char>(0x80));
  const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);  // so that unpacking gives natural order

  FI_VEC_INLINE __m512i low(__m512i x) const { return _mm512_permutex2var_epi8(low0, x, low1); }
  FI_VEC_INLINE __m512i high(__m512i x) const {
    return _mm512_ternarylogic_epi64(_mm512_permutex2var_epi8(high0, x, high1), x, sign, 0xf8);  // a | (b & c)
  }
  FI_VEC_INLINE void store(__m512i x, bf16_t* to, bool both = true) const {
    x = _mm512_permutexvar_epi64(order, x);
    const __m512i a = low(x), b = high(x);
    _mm512_storeu_si512(to, _mm512_unpacklo_epi8(a, b));
    if (both) _mm512_storeu_si512(to + 32, _mm512_unpackhi_epi8(a, b));
  }
};
template <class T>
FI_VEC_INLINE void widen_row(const T* in, int64_t dim, bf16_t* out) {
  const Wide<T> wide;
  for (int64_t d = 0; d < dim; d += 64) {
    const int64_t n = dim - d;
    wide.store(n >= 64 ? _mm512_loadu_si512(in + d)
                       : _mm512_maskz_loadu_epi8(_bzhi_u64(~0ull, static_cast<uint64_t>(n)), in + d),
               out + d, n > 32);
  }
}

/// The 16 values of e2m1 times each e4m3 scale (of either sign): 8 KB.
struct ScaledGrids {
  alignas(64) uint16_t of[256][16];
  constexpr ScaledGrids() : of() {
    constexpr int kTwice[8] = {0, 1, 2, 3, 4, 6, 8, 12};
    for (int s = 0; s < 256; ++s)
      for (int c = 0; c < 16; ++c) {
        const int e = s >> 3 & 15, f = s & 7, m = kTwice[c & 7] * (e ? 8 + f : f);  // value m * 2^(exponent - 11)
        const int value = (s & 127) == 127 ? 0x7fc0 : m ? bf16_bits(m, (e ? e : 1) - 11) : 0;
        of[s][c] = static_cast<uint16_t>(value | ((s >> 7 ^ c >> 3) & 1) << 15);
      }
  }
};
inline constexpr ScaledGrids kGrids;

/// 32 values a step: nibbles move to the low bits of words (d | d << 12 does both of a byte), then one lookup in the
/// grids of the two blocks.
FI_VEC_INLINE void widen_row(const uint8_t* in, const uint8_t* sf, int64_t dim, bf16_t* out) {
  const __m512i low = _mm512_set1_epi16(15),
                second = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(16), 1);
  for (int64_t d = 0; d < dim; d += 32) {
    const bool two = dim - d > 16;
    const __m512i b = _mm512_cvtepu8_epi32(two ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + d / 2))
                                               : _mm_loadl_epi64(reinterpret_cast<const __m128i*>(in + d / 2)));
    const __m512i at =
        _mm512_ternarylogic_epi64(_mm512_or_si512(b, _mm512_slli_epi32(b, 12)), low, second, 0xea);  // (a & b) | c
    const __m256i first = _mm256_load_si256(reinterpret_cast<const __m256i*>(kGrids.of[sf[d / 16]]));
    const __m256i other = _mm256_load_si256(reinterpret_cast<const __m256i*>(kGrids.of[two ? sf[d / 16 + 1] : 0]));
    _mm512_storeu_si512(out + d,
                        _mm512_permutexvar_epi16(at, _mm512_inserti64x4(_mm512_castsi256_si512(first), other, 1)));
  }
}
#endif

}  // namespace flashinfer::cpu::attention
