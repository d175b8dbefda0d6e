// SPDX-License-Identifier: Apache-2.0
// Products of the decode kernel directly with NVFP4 codes (AVX-512 BF16 and VBMI, dims that are multiples of 128).
// Codes become bf16 in registers, 32 with one bit-field copy (vpmultishiftqb) and one lookup (vpermw), without scratch.
// Block scales are applied to vectors whose lanes belong to known blocks: 16 codes of K are the 8 bytes of one 64-bit
// lane, so that a key's sum of products is multiplied once, in f32; scales of V are multiplied with the probability,
// once a key and block, and rounded with it. Instructions for a key at D 128: K 9 + 8 a row, V 14 + 8 a row, where rows
// of bf16 in scratch took about 100 + 7 a row.
#pragma once
#include "flashinfer/ops/attention/kernels/cpu/decode/convert.h"
#if defined(__AVX512BF16__) && defined(__AVX512VBMI__)
#include "flashinfer/ops/attention/kernels/cpu/decode/pairs.h"

namespace flashinfer::cpu::attention::codes {

/// e2m1 in bf16, twice: the lookup takes 5 bits, of which the highest belongs to another code.
struct Grid {
  alignas(64) uint16_t of[32];
  constexpr Grid() : of() {
    for (int i = 0; i < 32; ++i) of[i] = kGrids.of[0x38][i % 16];  // under the scale 1
  }
};
inline constexpr Grid kGrid;

/// Bit offsets in 64-bit lanes, of 4 codes a lane for each of 4 steps: adjacent codes of one key, or two codes of two
/// keys alternately.
struct Fields {
  alignas(64) uint8_t of[4][64];
  constexpr explicit Fields(bool two_keys) : of() {
    for (int step = 0; step < 4; ++step)
      for (int i = 0; i < 64; ++i) {
        const int code = i % 8 / 2;
        of[step][i] = static_cast<uint8_t>(16 * step + (two_keys ? code % 2 * 8 + code / 2 * 4 : 4 * code));
      }
  }
};
inline constexpr Fields kOneKey(false), kTwoKeys(true);
/// The dim of lane `l` of V's vector `step` of `half`: 128-bit lane l / 4 holds a block of that parity.
constexpr int64_t dim_of(int half, int step, int l) {
  return 16 * (2 * (l / 4) + half) + 2 * (4 * (l % 4 / 2) + step) + l % 2;
}

FI_VEC_INLINE __m512i widen(__m512i fields, __m512i x, __m512i grid) {
  return _mm512_permutexvar_epi16(_mm512_multishift_epi64_epi8(fields, x), grid);
}

/// q rows in the order of widened codes, zeros past `count`.
inline void pack_q(const bf16_t* const* rows, int count, int width, int64_t dim, uint32_t* out) {
  bf16_t* to = reinterpret_cast<bf16_t*>(out);
  for (int h = 0; h < width; ++h)
    for (int64_t part = 0; part < dim; part += 128)
      for (int step = 0; step < 4; ++step)
        for (int i = 0; i < 32; ++i) *to++ = h < count ? rows[h][part + i / 4 * 16 + step * 4 + i % 4] : bf16_t(0.0f);
}
/// A row of outputs in natural order.
inline void in_order(const float* o, int64_t dim, float* out) {
  for (int64_t part = 0; part < dim; part += 128)
    for (int at = 0; at < 128; ++at) out[part + dim_of(at / 64, at / 16 % 4, at % 16)] = o[part + at];
}

/// Block scales of keys [begin, end) of a block to bf16 [keys][blocks], zeros outside [lo, hi). `blocks` is a multiple
/// of 8, keys of 16.
inline void widen_scales(const uint8_t* const* rows, int64_t offset, int64_t blocks, int64_t begin, int64_t end,
                         int64_t lo, int64_t hi, bf16_t* out) {
  alignas(64) uint8_t raw[kDecodeKeys * 8] = {};
  alignas(64) bf16_t wide[kDecodeKeys * 8];
  for (int64_t part = 0; part < blocks; part += 8) {
    for (int64_t j = lo; j < hi; ++j) memcpy(raw + j * 8, rows[j] + offset + part, 8);
    widen_row(reinterpret_cast<const e4m3_t*>(raw + begin * 8), (end - begin) * 8,
              (blocks == 8 ? out : wide) + begin * 8);
    if (blocks != 8)
      for (int64_t j = begin; j < end; ++j) memcpy(out + j * blocks + part, wide + j * 8, 16);
  }
}

/// Lane i: the sum of r[i].
FI_VEC_INLINE __m512 sums(__m512 (&r)[16]) {
  using pairs::meet;
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) r[i] = meet<1>(r[2 * i], r[2 * i + 1]);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) r[i] = meet<2>(r[2 * i], r[2 * i + 1]);
  r[0] = meet<4>(r[0], r[1]), r[1] = meet<4>(r[2], r[3]);
  return _mm512_add_ps(_mm512_shuffle_f32x4(r[0], r[1], 0x44), _mm512_shuffle_f32x4(r[0], r[1], 0xee));
}

/// Logits s[W][kDecodeKeys] of keys [begin, end), rounded outwards to 16 / W. `scale`: bf16 [keys][dim / 16].
template <int W>
__attribute__((noinline)) void scores(const uint8_t* const* k, const bf16_t* scale, int64_t begin, int64_t end,
                                      const uint32_t* q, int64_t dim, float* s, Lines& ahead) {
  constexpr int kKeys = 16 / W;
  const __m512i grid = _mm512_load_si512(kGrid.of);
  alignas(64) static constexpr uint16_t kBlock[32] = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3,
                                                      4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7};
  const __m512i block = _mm512_load_si512(kBlock);
  __m512i fields[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) fields[i] = _mm512_load_si512(kOneKey.of[i]);
  const int64_t parts = dim / 128;
#pragma GCC unroll 1
  for (int64_t j = begin / kKeys * kKeys; j < end; j += kKeys) {
    ahead.issue_prefetch<8 / W>();
    __m512 r[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) r[i] = _mm512_setzero_ps();
#pragma GCC unroll 16
    for (int i = 0; i < kKeys; ++i) {
      int64_t part = 0;
      do {
        const __m512i x = _mm512_loadu_si512(k[j + i] + part * 64);
        const __m512i a = widen(fields[0], x, grid), b = widen(fields[1], x, grid), c = widen(fields[2], x, grid),
                      d = widen(fields[3], x, grid);
        const __m128i eight = _mm_loadu_si128(reinterpret_cast<const __m128i*>(scale + ((j + i) * parts + part) * 8));
        const __m512 factor =
            _mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(0xaaaaaaaa, block, _mm512_castsi128_si512(eight)));
#pragma GCC unroll 4
        for (int h = 0; h < W; ++h) {
          const uint32_t* at = q + (h * parts + part) * 64;
          __m512 sum = pairs::dot(_mm512_setzero_ps(), a, _mm512_loadu_si512(at));
          sum = pairs::dot(sum, b, _mm512_loadu_si512(at + 16));
          sum = pairs::dot(sum, c, _mm512_loadu_si512(at + 32));
          sum = pairs::dot(sum, d, _mm512_loadu_si512(at + 48));
          r[h * kKeys + i] = _mm512_fmadd_ps(sum, factor, r[h * kKeys + i]);
        }
      } while (++part < parts);
    }
    alignas(64) float all[16];
    _mm512_store_ps(all, sums(r));
#pragma GCC unroll 4
    for (int h = 0; h < W; ++h) memcpy(s + h * kDecodeKeys + j, all + h * kKeys, kKeys * 4);
  }
}

/// Half the dims of 128: those of blocks of one parity.
template <int W, int Half>
FI_VEC_INLINE void values_half(const uint8_t* const* v, const bf16_t* scale, int64_t begin, int64_t end, const float* p,
                               int64_t blocks, float* o, int64_t width, Lines& ahead) {
  alignas(32) static constexpr uint16_t kScale[16] = {0, Half,     0, 8 + Half,  0, 2 + Half, 0, 10 + Half,
                                                      0, 4 + Half, 0, 12 + Half, 0, 6 + Half, 0, 14 + Half};
  alignas(64) static constexpr uint32_t kBlock[16] = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
  const __m512i grid = _mm512_load_si512(kGrid.of), block = _mm512_load_si512(kBlock);
  const __m256i mine = _mm256_load_si256(reinterpret_cast<const __m256i*>(kScale));
  __m512i fields[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) fields[i] = _mm512_load_si512(kTwoKeys.of[i]);
  __m512 acc[W][4];
#pragma GCC unroll 4
  for (int h = 0; h < W; ++h)
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) acc[h][i] = _mm512_loadu_ps(o + h * width + i * 16);
#pragma GCC unroll 1
  for (int64_t pair = begin / 2; pair < (end + 1) / 2; ++pair) {
    ahead.issue_prefetch<1>();
    const __m512i a = _mm512_loadu_si512(v[2 * pair]), b = _mm512_loadu_si512(v[2 * pair + 1]);
    const __m512i x = Half ? _mm512_unpackhi_epi8(a, b) : _mm512_unpacklo_epi8(a, b);
    const bf16_t* at = scale + 2 * pair * blocks;
    const __m256i both =
        _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at))),
                                _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + blocks)), 1);
    const __m256 factor = _mm256_castsi256_ps(_mm256_maskz_permutexvar_epi16(0xaaaa, mine, both));
    __m512i y[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) y[i] = widen(fields[i], x, grid);
#pragma GCC unroll 4
    for (int h = 0; h < W; ++h) {
      int64_t two;
      memcpy(&two, p + h * kDecodeKeys + 2 * pair, 8);
      const __m256 weight = _mm256_mul_ps(factor, _mm256_castsi256_ps(_mm256_set1_epi64x(two)));
      const __m128i cells = reinterpret_cast<__m128i>(_mm256_cvtneps_pbh(weight));
      const __m512i w = _mm512_permutexvar_epi32(block, _mm512_castsi128_si512(cells));
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) acc[h][i] = pairs::dot(acc[h][i], w, y[i]);
    }
  }
#pragma GCC unroll 4
  for (int h = 0; h < W; ++h)
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) _mm512_storeu_ps(o + h * width + i * 16, acc[h][i]);
}

/// o[W][width] += P V over keys [begin, end), rounded outwards to 2; dims in the order of dim_of.
template <int W>
__attribute__((noinline)) void values(const uint8_t* const* v, const bf16_t* scale, int64_t begin, int64_t end,
                                      const float* p, int64_t dim, float* o, int64_t width, Lines& ahead) {
  const uint8_t* at[kDecodeKeys];
  for (int64_t part = 0; part < dim; part += 128) {
    for (int64_t j = begin / 2 * 2; j < end + end % 2; ++j) at[j] = v[j] + part / 2;
    values_half<W, 0>(at, scale + part / 16, begin, end, p, dim / 16, o + part, width, ahead);
    values_half<W, 1>(at, scale + part / 16, begin, end, p, dim / 16, o + part + 64, width, ahead);
  }
}

}  // namespace flashinfer::cpu::attention::codes
#endif
