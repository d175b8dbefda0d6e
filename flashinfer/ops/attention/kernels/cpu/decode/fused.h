// SPDX-License-Identifier: Apache-2.0
// Products of the decode kernel with 8-bit and 4-bit rows and 8 or 16 query heads a pass, with the conversion fused in,
// because the dot products leave other units idle (on Zen 4 they use two of four vector pipes; lookups and stores use
// the others). While 8 keys are multiplied, the next 8 rows of K are converted to bf16 in scratch, from which the
// products broadcast them; V is converted to bf16 in registers and never stored. The products, their order and thus the
// bits are those of rows converted beforehand.
#pragma once
#include "flashinfer/ops/attention/kernels/cpu/decode/convert.h"
#if defined(__AVX512BF16__) && defined(__AVX512VBMI__)
#include "flashinfer/ops/attention/kernels/cpu/decode/pairs.h"

namespace flashinfer::cpu::attention::fused {

/// Byte permutations to words (a0, b0, a1, b1, ..) of two keys: of lookups of the low and the high bytes, a's 32 dims
/// before b's; and of 16 dims.
struct Orders {
  alignas(64) uint8_t first[64], second[64], twice[64];
  constexpr Orders() : first(), second(), twice() {
    for (int i = 0; i < 16; ++i)
      for (int key = 0; key < 2; ++key)
        for (int high = 0; high < 2; ++high) {
          const int at = 4 * i + 2 * key + high;
          first[at] = static_cast<uint8_t>(64 * high + 32 * key + i);
          second[at] = static_cast<uint8_t>(first[at] + 16);
          twice[at] = static_cast<uint8_t>(16 * key + i);
        }
  }
};
inline constexpr Orders kOrders;

/// e4m3 or e5m2.
template <class T>
struct Bytes {
  static constexpr int kEvery = 1;  // one prefetch for every so many times 64 codes
  const T* const* rows;
  const Wide<T> wide{};
  const __m512i first = _mm512_load_si512(kOrders.first), second = _mm512_load_si512(kOrders.second),
                twice = _mm512_load_si512(kOrders.twice);
  const __m512i odd_sign = _mm512_set1_epi16(static_cast<int16_t>(0x8000));

  /// 64 dims of a key.
  FI_VEC_INLINE void cells(int64_t j, int64_t d, bf16_t* to) const { wide.store(_mm512_loadu_si512(rows[j] + d), to); }
  /// 32 dims of keys j and j + 1.
  FI_VEC_INLINE void two(int64_t j, int64_t d, __m512i (&y)[2]) const {
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[j] + d));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[j + 1] + d));
    const __m512i x = _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1), low = wide.low(x), high = wide.high(x);
    y[0] = _mm512_permutex2var_epi8(low, first, high), y[1] = _mm512_permutex2var_epi8(low, second, high);
  }
  /// 16 dims: every byte twice, of which the odd ones look up high bytes.
  FI_VEC_INLINE __m512i one(int64_t j, int64_t d) const {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[j] + d)),
                  b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[j + 1] + d));
    const __m512i x = _mm512_permutexvar_epi8(
        twice, _mm512_castsi256_si512(_mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1)));
    const __m512i half = _mm512_mask2_permutex2var_epi8(wide.high0, x, 0xaaaaaaaaaaaaaaaa, wide.high1);
    return _mm512_ternarylogic_epi64(_mm512_mask2_permutex2var_epi8(wide.low0, half, 0x5555555555555555, wide.low1), x,
                                     odd_sign, 0xf8);
  }
};

/// Bit offsets of the codes of a block of 16, dims 2 l and 2 l + 1 in 64-bit lane l: of the first key in bytes 0 and 4,
/// of the second in 2 and 6.
struct Fields {
  alignas(64) uint8_t of[64];
  constexpr Fields() : of() {
    for (int i = 0; i < 64; ++i) of[i] = static_cast<uint8_t>(4 * (2 * (i / 8) + i % 8 / 4));
  }
};
inline constexpr Fields kFields;

/// NVFP4: `scales` are the e4m3 scales of each 16.
struct Nibbles {
  static constexpr int kEvery = 2;
  const uint8_t *const *rows, *const *scales;
  const __m512i fields = _mm512_load_si512(kFields.of), low = _mm512_set1_epi16(15),
                second = _mm512_set1_epi32(16 << 16);
  const __m512i halves = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(16), 1);

  static FI_VEC_INLINE __m512i grids(uint8_t a, uint8_t b) {
    const __m256i first = _mm256_load_si256(reinterpret_cast<const __m256i*>(kGrids.of[a]));
    return _mm512_inserti64x4(_mm512_castsi256_si512(first),
                              _mm256_load_si256(reinterpret_cast<const __m256i*>(kGrids.of[b])), 1);
  }
  FI_VEC_INLINE void cells(int64_t j, int64_t d, bf16_t* to) const {
    const uint8_t *code = rows[j] + d / 2, *sf = scales[j] + d / 16;
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const __m512i b = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(code + 16 * i)));
      const __m512i at =
          _mm512_ternarylogic_epi64(_mm512_or_si512(b, _mm512_slli_epi32(b, 12)), low, halves, 0xea);  // (a & b) | c
      _mm512_storeu_si512(to + 32 * i, _mm512_permutexvar_epi16(at, grids(sf[2 * i], sf[2 * i + 1])));
    }
  }
  FI_VEC_INLINE __m512i one(int64_t j, int64_t d) const {
    int64_t a, b;
    memcpy(&a, rows[j] + d / 2, 8), memcpy(&b, rows[j + 1] + d / 2, 8);
    const __m512i x = _mm512_mask_multishift_epi64_epi8(_mm512_multishift_epi64_epi8(fields, _mm512_set1_epi64(a)),
                                                        0x4444444444444444, fields, _mm512_set1_epi64(b));
    const __m512i at = _mm512_ternarylogic_epi64(x, low, second, 0xea);
    return _mm512_permutexvar_epi16(at, grids(scales[j][d / 16], scales[j + 1][d / 16]));
  }
  FI_VEC_INLINE void two(int64_t j, int64_t d, __m512i (&y)[2]) const { y[0] = one(j, d), y[1] = one(j, d + 16); }
};

/// Scratch for rows of K in bf16: `many` (16 or all, a power of two) rows used cyclically; the products need 16, which
/// leave more of L1 to others.
struct Cells {
  bf16_t* first;
  int64_t ld, many;
  FI_VEC_INLINE bf16_t* row(int64_t j) const { return first + (j & (many - 1)) * ld; }
};

/// Sums of 8 keys; with Next the following 8 keys are converted meanwhile.
template <int W, bool Next, class Codes>
FI_VEC_INLINE void eight_keys(const Codes& codes, int64_t j, const Cells& cells, const uint32_t* q, int64_t dim,
                              __m512 (&acc)[8], Lines& ahead) {
  constexpr int kE = 32 / W;
  const int64_t ld = cells.ld;
  const bf16_t* row = cells.row(j);
  bf16_t* next = cells.row(j + 8);
#pragma GCC unroll 1
  for (int64_t d = 0; d < dim; d += 64) {
#pragma GCC unroll 1
    for (int64_t r = 0; r < 8; ++r) {
      if constexpr (Next) ahead.share<1, Codes::kEvery>(r), codes.cells(j + 8 + r, d, next + r * ld + d);
#pragma GCC unroll 4
      for (int t = 0; t < W / 4; ++t, q += 16) {
        const bf16_t* from = row + d + (r * (W / 4) + t) * kE;
        const __m512i x = _mm512_loadu_si512(q);
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) acc[i] = pairs::dot_spread<W>(acc[i], x, from + i * ld);
      }
    }
  }
}
/// Logits of keys [begin, end), rounded outwards to 8, as pairs::scores. dim is a multiple of 64.
template <int W, class Codes>
__attribute__((noinline)) void scores(const Codes codes, const Cells cells, int64_t begin, int64_t end,
                                      const uint32_t* q, int64_t dim, float* s, Lines& ahead) {
  begin = begin / 8 * 8;
  for (int64_t j = begin; j < begin + 8; ++j)
    for (int64_t d = 0; d < dim; d += 64) ahead.share<1, Codes::kEvery>(j), codes.cells(j, d, cells.row(j) + d);
#pragma GCC unroll 1
  for (int64_t j = begin; j < end; j += 8) {
    __m512 acc[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) acc[i] = _mm512_setzero_ps();
    if (j + 8 < end)
      eight_keys<W, true>(codes, j, cells, q, dim, acc, ahead);
    else
      eight_keys<W, false>(codes, j, cells, q, dim, acc, ahead);
    pairs::add_parts<W>(acc, s + j * W);
  }
}

/// o[W][width] += P V over keys [begin, end), rounded outwards to 2, as pairs::values. dim is a multiple of 32.
template <int W, class Codes>
__attribute__((noinline)) void values(const Codes codes, int64_t begin, int64_t end, const uint32_t* cell, int64_t dim,
                                      float* o, int64_t width, Lines& ahead) {
  constexpr int kVecs = 16 / W;
  for (int64_t d = 0; d < dim; d += 16 * kVecs) {
    __m512 acc[W][kVecs];
#pragma GCC unroll 16
    for (int h = 0; h < W; ++h)
#pragma GCC unroll 2
      for (int i = 0; i < kVecs; ++i) acc[h][i] = _mm512_loadu_ps(o + h * width + d + i * 16);
#pragma GCC unroll 1
    for (int64_t pair = begin / 2; pair < (end + 1) / 2; ++pair) {
      const uint32_t* p = cell + Lanes<W>::cell(pair);
      ahead.share<kVecs, 2 * Codes::kEvery>(pair);
      __m512i y[2];
      if constexpr (kVecs == 2)
        codes.two(2 * pair, d, y);
      else
        y[0] = codes.one(2 * pair, d);
#pragma GCC unroll 16
      for (int h = 0; h < W; ++h)
#pragma GCC unroll 2
        for (int i = 0; i < kVecs; ++i) acc[h][i] = pairs::dot_each(acc[h][i], y[i], p + h * Lanes<W>::kCellStep);
    }
#pragma GCC unroll 16
    for (int h = 0; h < W; ++h)
#pragma GCC unroll 2
      for (int i = 0; i < kVecs; ++i) _mm512_storeu_ps(o + h * width + d + i * 16, acc[h][i]);
  }
}

}  // namespace flashinfer::cpu::attention::fused
#endif
