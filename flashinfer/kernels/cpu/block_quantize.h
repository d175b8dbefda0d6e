// SPDX-License-Identifier: Apache-2.0
// Blocks of 16 or 32 elements of a row that share a scale byte. Every step is in f32, rounded once to nearest even:
//   e4m3 scales (NVFP4): scale = e4m3(amax * a), code = e2m1(x * min(1 / (scale * b), FLT_MAX)). A block whose
//     scale is 0 (all zero, or too small for e4m3) gets codes 0; a NaN gives its block the scale NaN (0x7f), codes 0.
//   ue8m0 scales (MX): scale = smallest power of two >= amax / 6 * a (8-bit codes: amax / 448 * a), code =
//     x * (a / scale). Scale byte 0 multiplies by 0; a NaN amax gives byte 255, and finite elements codes of 0. An
//     infinite amax gives e2m1 byte 255 too, and e4m3 byte 254, the largest, as GPUs convert: infinities become 448.
// All conversions saturate. Fused ops call quantize_blocks on rows that they have just computed.
#pragma once
#include "flashinfer/kernels/common/scale_layout.h"
#include "flashinfer/kernels/cpu/e4m3_rows.h"
#include "flashinfer/kernels/cpu/fp4_steps.h"
#include "flashinfer/kernels/cpu/lanes.h"
#include "flashinfer/kernels/cpu/narrow.h"

namespace flashinfer {

struct BlockFormat {
  unsigned char block = 16;  // or 32
  unsigned char ue8m0 = 0;   // scales are powers of two, else e4m3
  unsigned char fp8 = 0;     // codes are e4m3, else e2m1, two a byte
  friend constexpr bool operator==(const BlockFormat&, const BlockFormat&) = default;
};

namespace cpu {

/// Blocks processed together: their scales are computed as vectors.
constexpr int64_t kBlockChunk = 128;
constexpr float kFltMax = __FLT_MAX__;

/// The largest magnitude of n (a multiple of 16) elements. NaN beats all numbers, as its bit pattern is larger.
template <class T>
FI_VEC_INLINE T block_magnitude(const T* x, int64_t n) {
  T r;
#if defined(__AVX2__)
  __m256i least = _mm256_set1_epi16(0x7fff);
  for (int64_t i = 0; i < n; i += 16)
    least = _mm256_min_epu16(least, _mm256_andnot_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i)),
                                                        _mm256_set1_epi16(0x7fff)));
  const __m128i one =
      _mm_minpos_epu16(_mm_min_epu16(_mm256_castsi256_si128(least), _mm256_extracti128_si256(least, 1)));
  r.bits = static_cast<uint16_t>(0x7fff - (_mm_cvtsi128_si32(one) & 0xffff));
#else
  uint16_t most = 0;
  for (int64_t i = 0; i < n; ++i) {
    const uint16_t magnitude = x[i].bits & 0x7fff;
    most = magnitude > most ? magnitude : most;
  }
  r.bits = most;
#endif
  return r;
}
FI_VEC_INLINE float block_magnitude(const float* x, int64_t n) {
  uint32_t most = 0;
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t magnitude = scalar_detail::bits(x[i]) & 0x7fffffffu;
    most = magnitude > most ? magnitude : most;
  }
  return scalar_detail::from_bits(most);
}

#if defined(FI_NARROW_AVX512)
/// The largest magnitudes of 16 runs of 16 elements of 16 bits. Pairs of vectors are folded into one: three operations
/// a run instead of six.
template <class T>
FI_VEC_INLINE __m256i sixteen_magnitudes(const T* x) {
  const __m512i bits = _mm512_set1_epi16(0x7fff);
  const auto run = [&](int i) { return _mm512_and_si512(_mm512_loadu_si512(x + 32 * i), bits); };
  const auto fold = [&](int i) {  // vectors i, i + 1: in each 128 bits, four words of the first and four of the second
    const __m512i a = run(i), b = run(i + 1);
    return _mm512_max_epu16(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
  };
  const auto fold4 = [&](int i) {  // four vectors: two words of each
    const __m512 a = _mm512_castsi512_ps(fold(i)), b = _mm512_castsi512_ps(fold(i + 2));
    return _mm512_max_epu16(_mm512_castps_si512(_mm512_shuffle_ps(a, b, 0x88)),
                            _mm512_castps_si512(_mm512_shuffle_ps(a, b, 0xdd)));
  };
  const __m512i p = fold4(0), q = fold4(4);
  const __m512i r = _mm512_max_epu16(_mm512_mask_blend_epi16(0xaaaaaaaau, p, _mm512_slli_epi32(q, 16)),
                                     _mm512_mask_blend_epi16(0xaaaaaaaau, _mm512_srli_epi32(p, 16), q));
  const __m512i all = _mm512_max_epu16(r, _mm512_shuffle_i32x4(r, r, 0xb1));  // words of vectors 0, 4, 1, 5, 2, 6, 3, 7
  const __m512i order =
      _mm512_castsi256_si512(_mm256_setr_epi16(0, 16, 2, 18, 4, 20, 6, 22, 1, 17, 3, 19, 5, 21, 7, 23));
  return _mm512_castsi512_si256(_mm512_permutexvar_epi16(order, all));
}
/// The same for f32, as the bits of the magnitudes.
FI_VEC_INLINE __m512i sixteen_magnitudes(const float* x) {
  const auto run = [&](int i) {
    return _mm512_and_si512(_mm512_loadu_si512(x + 16 * i), _mm512_set1_epi32(0x7fffffff));
  };
  const auto fold4 = [&](int i) {  // in each 128 bits the maxima of four numbers of four runs
    const auto fold = [&](int j) {
      const __m512i a = run(j), b = run(j + 1);
      return _mm512_max_epu32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    };
    const __m512i a = fold(i), b = fold(i + 2);
    return _mm512_max_epu32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
  };
  const auto fold8 = [&](int i) {
    const __m512i a = fold4(i), b = fold4(i + 4);
    return _mm512_max_epu32(_mm512_shuffle_i32x4(a, b, 0x44), _mm512_shuffle_i32x4(a, b, 0xee));
  };
  const __m512i a = fold8(0), b = fold8(8);
  return _mm512_max_epu32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd));
}
#endif
/// amax[i] of n blocks.
template <int kBlock, class T>
FI_VEC_INLINE void block_magnitudes(const T* x, T* amax, int64_t n) {
  int64_t i = 0;
#if defined(FI_NARROW_AVX512)
  if constexpr (sizeof(T) == 2) {
    constexpr int64_t kStep = 256 / kBlock;
    for (; i + kStep <= n; i += kStep) {
      __m256i most = sixteen_magnitudes(x + i * kBlock);
      if constexpr (kBlock == 16) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(amax + i), most);
      } else {
        most = _mm256_max_epu16(most, _mm256_srli_epi32(most, 16));  // in the low words
        _mm_storeu_si128(reinterpret_cast<__m128i*>(amax + i), _mm256_cvtepi32_epi16(most));
      }
    }
  } else {
    constexpr int64_t kStep = 256 / kBlock;
    for (; i + kStep <= n; i += kStep) {
      const __m512i most = sixteen_magnitudes(x + i * kBlock);
      if constexpr (kBlock == 16)
        _mm512_storeu_si512(amax + i, most);
      else  // of neighbours, in the low halves of 64 bits
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(amax + i),
                            _mm512_cvtepi64_epi32(_mm512_max_epu32(most, _mm512_srli_epi64(most, 32))));
    }
  }
#endif
  for (; i < n; ++i) amax[i] = block_magnitude(x + i * kBlock, kBlock);
}

FI_VEC_INLINE float capped_reciprocal(float x) {
  const float r = 1.0f / x;
  return r < kFltMax ? r : kFltMax;
}

/// 1 / scale of a ue8m0 byte, 0 for 0 and 255.
FI_VEC_INLINE float e8m0_reciprocal(uint8_t byte) {
  return byte == 0 || byte == 255 ? 0.0f : e8m0_to_f32(static_cast<uint8_t>(254 - byte));
}

/// Constants of all blocks of a tensor (a and b as above), computed once.
template <BlockFormat F, class T>
struct BlockRule {
  float a, b;
#if defined(FI_FP4_STEPS)
  Fp4Steps steps;
  static constexpr bool kSteps = !F.fp8 && sizeof(T) == 2;
#endif
};
template <BlockFormat F, class T>
FI_VEC_INLINE void make_block_rule(BlockRule<F, T>& rule, float a, float b) {
  rule.a = a, rule.b = b;
#if defined(FI_FP4_STEPS)
  if constexpr (BlockRule<F, T>::kSteps) {
    const __m256 scale =
        _mm256_mul_ps(_mm256_setr_ps(1, 1.125f, 1.25f, 1.375f, 1.5f, 1.625f, 1.75f, 1.875f), _mm256_set1_ps(b));
    make_fp4_steps<T>(rule.steps, F.ue8m0 ? _mm256_set1_ps(a) : _mm256_div_ps(_mm256_set1_ps(1.0f), scale));
  }
#endif
}

/// scale[i] = e8m0_round_up(s[i]), factor[i] = e8m0_reciprocal(scale[i]) * a; arrays hold kBlockChunk, s[i] >= 0 or
/// NaN.
FI_VEC_INLINE void e8m0_scales(const float* s, uint8_t* scale, int64_t n) {
#if defined(FI_NARROW_AVX512)
  for (int64_t i = 0; i < n; i += 16) {
    const __m512i u = _mm512_loadu_si512(s + i), exponent = _mm512_srli_epi32(u, 23),
                  mantissa = _mm512_and_si512(u, _mm512_set1_epi32(0x7fffff));
    const __m512i least =
        _mm512_maskz_mov_epi32(_mm512_testn_epi32_mask(exponent, exponent), _mm512_set1_epi32(0x400000));
    const __mmask16 up =
        _mm512_cmpgt_epu32_mask(mantissa, least) & _mm512_cmplt_epu32_mask(exponent, _mm512_set1_epi32(254));
    const __m512i byte = _mm512_mask_add_epi32(exponent, up, exponent, _mm512_set1_epi32(1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(scale + i), _mm512_cvtepi32_epi8(byte));
  }
#else
  for (int64_t i = 0; i < n; ++i) scale[i] = e8m0_round_up(s[i]);
#endif
}
FI_VEC_INLINE void e8m0_factors(const uint8_t* scale, float* factor, int64_t n, float a) {
#if defined(FI_NARROW_AVX512)
  for (int64_t i = 0; i < n; i += 16) {
    const __m512i byte = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(scale + i))),
                  top = _mm512_set1_epi32(254);
    const __m512i bits = _mm512_slli_epi32(_mm512_sub_epi32(top, byte), 23);
    const __m512i all =
        _mm512_mask_mov_epi32(bits, _mm512_cmpeq_epi32_mask(byte, top), _mm512_set1_epi32(0x400000));  // 2^-127
    const __mmask16 real = _mm512_test_epi32_mask(byte, byte) & _mm512_cmple_epu32_mask(byte, top);
    store(factor + i, Vec{_mm512_castsi512_ps(_mm512_maskz_mov_epi32(real, all))} * splat(a));
  }
#else
  for (int64_t i = 0; i < n; ++i) factor[i] = e8m0_reciprocal(scale[i]) * a;
#endif
}

/// Scale bytes of n blocks with largest magnitudes amax[]; arrays hold kBlockChunk elements.
template <BlockFormat F, class T>
FI_VEC_INLINE void block_scales(const T* amax, int64_t n, float a, uint8_t* scale) {
  constexpr int64_t L = Vec::kLanes;
  if constexpr (F.ue8m0) {
    float s[kBlockChunk];
    for (int64_t i = 0; i < n; i += L) {
      const Vec x = load(amax + i) / splat(F.fp8 ? 448.0f : 6.0f) * splat(a);
      store(s + i, F.fp8 ? min(splat(kFltMax), x) : x);  // min() keeps the NaN of its second operand
    }
    e8m0_scales(s, scale, n);
  } else {
    e4m3_t* code = reinterpret_cast<e4m3_t*>(scale);
    for (int64_t i = 0; i < n; i += L) store_saturated(code + i, load(amax + i) * splat(a));
  }
}
/// Factors of the elements; scale[] also holds kBlockChunk bytes.
template <BlockFormat F>
FI_VEC_INLINE void block_factors(const uint8_t* scale, int64_t n, float a, float b, float* factor) {
  if constexpr (F.ue8m0) {
    e8m0_factors(scale, factor, n, a);
  } else {
    const e4m3_t* code = reinterpret_cast<const e4m3_t*>(scale);
    for (int64_t i = 0; i < n; i += Vec::kLanes)
      store(factor + i, min(splat(1.0f) / (load(code + i) * splat(b)), splat(kFltMax)));
  }
}

template <BlockFormat F>
FI_VEC_INLINE bool has_no_codes(uint8_t scale) {
  return F.ue8m0 ? scale == 255 : scale == 0 || scale == 0x7f;
}
/// e2m1 codes of n blocks, by multiplication.
template <BlockFormat F, class T>
FI_VEC_INLINE void store_fp4_blocks(const T* x, uint8_t* codes, const float* factor, int64_t n) {
  constexpr int64_t kBytes = F.block / 2;
  int64_t i = 0;
#if defined(FI_NARROW_AVX512)
  const __m512i halves = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
  for (; i + 32 / F.block <= n; i += 32 / F.block) {
    const Split v = load_split(x + i * F.block);
    const Vec f = F.block == 32
                      ? splat(factor[i])
                      : Vec{_mm512_permutexvar_ps(halves, _mm512_castps256_ps512(_mm256_castpd_ps(_mm256_broadcast_sd(
                                                              reinterpret_cast<const double*>(factor + i)))))};
    store_e2m1_32(codes + i * kBytes, v.even * f, v.odd * f);
  }
#endif
  for (; i < n; ++i)
    for (int64_t j = 0; j < F.block; j += 16)
      store_e2m1_16(codes + i * kBytes + j / 2,
                    [&](int64_t k) { return load(x + i * F.block + j + k) * splat(factor[i]); });
}
template <BlockFormat F, class T>
FI_VEC_INLINE void store_codes(const BlockRule<F, T>& rule, const T* x, uint8_t* codes, const uint8_t* scale,
                               int64_t n) {
  constexpr int64_t kBytes = F.fp8 ? F.block : F.block / 2;
  int64_t i = 0;
#if defined(FI_FP4_STEPS)
  if constexpr (BlockRule<F, T>::kSteps) {
    uint32_t base[kBlockChunk], set[kBlockChunk];
    if (rule.steps.usable && fp4_places < T, F.ue8m0 != 0 > (rule.steps, scale, n, base, set)) [[likely]] {
      const int64_t quads = n * F.block / 64;
      store_fp4_steps<T, F.block / 16>(rule.steps, x, codes, base, set, quads);
      i = quads * 64 / F.block;
    }
  }
#endif
  if (i == n) return;
  float factor[kBlockChunk];
  block_factors<F>(scale, n, rule.a, rule.b, factor);
  if constexpr (!F.fp8) return store_fp4_blocks<F>(x + i * F.block, codes + i * kBytes, factor + i, n - i);
  e4m3_t* to = reinterpret_cast<e4m3_t*>(codes);
#if defined(FI_NARROW_AVX512)
  if constexpr (F.fp8 && F.block == 32 && sizeof(T) == 2) {
    // Prefetch the next blocks: the magnitudes of these are computed, so nothing else reads memory.
    const T* const next = x + n * F.block;
    for (; i + 2 <= n; i += 2) {  // until a block with infinities or NaN, or one with an infinite factor
      const Vec unit[2] = {splat(factor[i] * kE4m3Unit), splat(factor[i + 1] * kE4m3Unit)};
      __builtin_prefetch(next + i * 32, 0, 2);
      __builtin_prefetch(next + i * 32 + 32, 0, 2);
      if (!store_e4m3_scaled(to + i * 32, x + i * 32, [&](int h, Vec m) { return m * unit[h]; })) [[unlikely]]
        break;
    }
  }
#endif
  for (; i < n; ++i)
    for (int64_t j = i * F.block; j < (i + 1) * F.block; j += Vec::kLanes)
      store_saturated(to + j, load(x + j) * splat(factor[i]));
}

/// n <= kBlockChunk blocks of x to their codes and scale bytes; scale[] holds kBlockChunk bytes.
template <BlockFormat F, class T>
FI_VEC_INLINE void quantize_blocks(const BlockRule<F, T>& rule, const T* x, uint8_t* codes, uint8_t* scale, int64_t n) {
  T amax[kBlockChunk];
  block_magnitudes<F.block>(x, amax, n);
  for (int64_t i = n; i % Vec::kLanes; ++i) memset(amax + i, 0, sizeof(T));
  block_scales<F>(amax, n, rule.a, scale);
  for (int64_t i = n; i % Vec::kLanes; ++i) scale[i] = 0;
  store_codes<F>(rule, x, codes, scale, n);
  if constexpr (F.fp8) return;
  uint8_t none = 0;
  for (int64_t k = 0; k < n; ++k) none |= has_no_codes<F>(scale[k]);
  if (!none) [[likely]]
    return;
  constexpr int64_t kBytes = F.block / 2;
  for (int64_t k = 0; k < n; ++k)
    if (has_no_codes<F>(scale[k])) memset(codes + k * kBytes, 0, kBytes);
}

/// scale[0, n) to columns [first, first + n) of a row of scales that begins at `row`; first is a multiple of 4, and so
/// is n unless the row ends there. The padding up to the next multiple of 4 is written as 0.
FI_VEC_INLINE void store_scales(SfLayout layout, uint8_t* row, int64_t first, const uint8_t* scale, int64_t n) {
  if (layout == SfLayout::kLinear) {
    memcpy(row + first, scale, static_cast<size_t>(n));
    return;
  }
  const int64_t tile = sf_column_offset(layout, 4);
  uint8_t* to = row + sf_column_offset(layout, first);
  int64_t i = 0;
  for (; i + 4 <= n; i += 4, to += tile) memcpy(to, scale + i, 4);
  if (i == n) return;
  uint8_t last[4] = {};
  memcpy(last, scale + i, static_cast<size_t>(n - i));
  memcpy(to, last, 4);
}
/// 0 to all columns from `first`, a multiple of 4, to `padded`.
FI_VEC_INLINE void clear_scales(SfLayout layout, uint8_t* row, int64_t first, int64_t padded) {
  if (layout == SfLayout::kLinear) {
    memset(row + first, 0, static_cast<size_t>(padded - first));
    return;
  }
  for (int64_t c = first; c < padded; c += 4) memset(row + sf_column_offset(layout, c), 0, 4);
}

}  // namespace cpu
}  // namespace flashinfer
