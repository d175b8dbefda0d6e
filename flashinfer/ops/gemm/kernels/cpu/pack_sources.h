// SPDX-License-Identifier: Apache-2.0
// Operands of the matrix product with scale factors of one byte (ScaleFactors): pack_lines packs the scaled elements,
// which are exact in bf16.
#pragma once
#include "flashinfer/kernels/cpu/gemm_pack.h"
#include "flashinfer/kernels/cpu/lanes.h"
#include "flashinfer/kernels/cpu/narrow.h"
#include "flashinfer/ops/gemm/kernels/params.h"

namespace flashinfer::cpu {

template <GemmFormat F>
struct gemm_scalar {
  using type = uint8_t;
};
template <>
struct gemm_scalar<GemmFormat::kBF16> {
  using type = bf16_t;
};
template <>
struct gemm_scalar<GemmFormat::kF16> {
  using type = f16_t;
};
template <>
struct gemm_scalar<GemmFormat::kE4M3> {
  using type = e4m3_t;
};
template <>
struct gemm_scalar<GemmFormat::kE5M2> {
  using type = e5m2_t;
};
/// Elements in a unit of the strides: bytes for FP4, which has two elements in one, and for GGUF.
template <GemmFormat F>
using gemm_scalar_t = typename gemm_scalar<F>::type;

FI_VEC_INLINE float scale_of_byte(uint8_t byte, bool e8m0) {
  if (e8m0) return e8m0_to_f32(byte);
  const uint32_t magnitude = byte & 127u, sign = byte & 128u;
  const uint32_t u = (detail::kE4m3Bytes.high[magnitude] << 8 | detail::kE4m3Bytes.low[magnitude]) << 16 | sign << 24;
  float f;
  memcpy(&f, &u, sizeof f);
  return f;
}

#if defined(__AVX512F__)
/// The same of a byte in each word.
FI_VEC_INLINE Vec scale_values(__m512i byte, bool e8m0) {
  if (e8m0) {
    const __mmask16 zero = _mm512_testn_epi32_mask(byte, byte),
                    nan = _mm512_cmpeq_epi32_mask(byte, _mm512_set1_epi32(255));
    const __m512i power = _mm512_mask_mov_epi32(_mm512_slli_epi32(byte, 23), zero, _mm512_set1_epi32(0x00400000));
    return {_mm512_castsi512_ps(_mm512_mask_mov_epi32(power, nan, _mm512_set1_epi32(0x7fc00000)))};
  }
  // The exponent's bias differs by 120; all ones is NaN.
  const __m512i magnitude = _mm512_and_si512(byte, _mm512_set1_epi32(127)),
                sign = _mm512_and_si512(byte, _mm512_set1_epi32(128));
  const __m512i bits = _mm512_or_si512(_mm512_slli_epi32(magnitude, 20), _mm512_slli_epi32(sign, 24));
  const __m512 value = _mm512_mul_ps(_mm512_castsi512_ps(bits), _mm512_set1_ps(0x1p120f));
  return {_mm512_mask_mov_ps(value, _mm512_cmpeq_epi32_mask(magnitude, _mm512_set1_epi32(127)),
                             _mm512_set1_ps(__builtin_nanf("")))};
}
#endif

/// Lines with contiguous k, a multiple of the block of the scale factors; line i has row `first + i` of them.
template <GemmFormat F>
struct ScaledLines {
  const gemm_scalar_t<F>* p;
  int64_t line;
  ScaleFactors sf;
  const uint8_t* rows[kPanelColumns];  // scales of the lines

  FI_VEC_INLINE ScaledLines(const gemm_scalar_t<F>* lines, int64_t stride, const ScaleFactors& s, int64_t batch,
                            int64_t first)
      : p(lines), line(stride), sf(s) {
    for (int64_t i = 0; i < kPanelColumns; ++i)
      rows[i] = s.bytes + batch * s.batch + sf_row_offset(s.layout, s.first + first + i, s.columns);
  }

  static FI_VEC_INLINE Vec load_from(const gemm_scalar_t<F>* from, int64_t k) {
    if constexpr (F == GemmFormat::kFp4)
      return load_e2m1(from + k / 2);
    else
      return load(from + k);
  }
  /// 32 elements from k on, scaled by `even` in the first half, by `odd` in the second.
  static FI_VEC_INLINE void convert(const gemm_scalar_t<F>* from, int64_t k, float even, float odd, bf16_t* to) {
    constexpr int64_t L = Vec::kLanes;
#if defined(__AVX512BF16__)
    if constexpr (F == GemmFormat::kFp4) {
      // A table of the 16 scaled values of each half, then one look-up for all: bits 0-3 of a word are the code, bit 4
      // the half.
      const __m512 values = _mm512_setr_ps(0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6);
      const __m512i table = reinterpret_cast<__m512i>(
          _mm512_cvtne2ps_pbh(_mm512_mul_ps(values, _mm512_set1_ps(odd)), _mm512_mul_ps(values, _mm512_set1_ps(even))));
      const __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + k / 2)));
      const __m512i half = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(16), 1);
      const __m512i code = _mm512_ternarylogic_epi32(_mm512_or_si512(bytes, _mm512_slli_epi32(bytes, 12)),
                                                     _mm512_set1_epi16(15), half, 0xea);
      _mm512_storeu_si512(to, _mm512_permutexvar_epi16(code, table));
      return;
    }
#endif
#pragma GCC unroll 4
    for (int64_t v = 0; v < 32; v += 2 * L) {
      const Vec s = splat(v < 16 ? even : odd), t = splat(v + L < 16 ? even : odd);
      write_pair(to + v, load_from(from, k + v) * s, load_from(from, k + v + L) * t);
    }
  }
  FI_VEC_INLINE void gather(int64_t i, int64_t k, int64_t k_end, bf16_t* to) const {
    constexpr int64_t L = Vec::kLanes;
    const gemm_scalar_t<F>* const from = p + i * line;
    const bool fine = sf.block == 16;
    // k is a multiple of 32, so that the second half's scale follows in every layout.
    const uint8_t* const at = rows[i] + sf_column_offset(sf.layout, fine ? k / 16 : k / 32);
    const float even = scale_of_byte(at[0], sf.e8m0);
    if (k_end - k >= 2 * kPackPairs) return convert(from, k, even, fine ? scale_of_byte(at[1], sf.e8m0) : even, to);
    int64_t j = 0;  // 16 elements are left
    for (; j < k_end - k; j += L) write_tail(to + j, load_from(from, k + j) * splat(even), L);
    for (; j < 2 * kPackPairs; ++j) to[j].bits = 0;
  }
  template <int>
  FI_VEC_INLINE bool pack(int64_t, int64_t, int64_t, int, bf16_t*) const {
    return false;
  }
};

/// Columns of a weight in the layout [k / block, n, block], k a multiple of the block, the block of 32. `interleaved`
/// (prepare_low_latency_gemm_weights): column c is stored at row 8 * (c % 4) + c % 32 / 4 of its 32.
template <class T>
struct BlockedLines {
  const T* p;
  int64_t block, stride, first;
  bool interleaved;

  FI_VEC_INLINE void gather(int64_t i, int64_t k, int64_t, bf16_t* to) const {
    const T* const from = p + k / block * stride + row_of(first + i) * block + k % block;
    if constexpr (sizeof(T) == 2)
      memcpy(to, from, 2 * kPackPairs * sizeof(T));
    else
      widen_row(from, 2 * kPackPairs, to);
  }
  template <int Width>
  FI_VEC_INLINE bool pack([[maybe_unused]] int64_t lines, [[maybe_unused]] int64_t k, int64_t,
                          [[maybe_unused]] int pairs, [[maybe_unused]] bf16_t* to) const {
#if FI_WIDEN_LINES
    if constexpr (sizeof(T) == 1 && Width == 16) {
      if (lines == Width && pairs == kPackPairs) {
        const T* const from = p + k / block * stride + k % block;
        widen_lines<T>([&](int i) { return from + row_of(first + i) * block; }, to);
        return true;
      }
    }
#endif
    return false;
  }

 private:
  FI_VEC_INLINE int64_t row_of(int64_t c) const { return interleaved ? c / 32 * 32 + c % 4 * 8 + c % 32 / 4 : c; }
};

/// Lines of f16 numbers as sums of two bf16, exact: 11 bits in 8 and 8. 32 elements become 96 of k: those of A high,
/// high, low, those of B high, low, high. An infinite element gives NaN.
struct SplitLines {
  const f16_t* p;
  int64_t line, step, depth;
  bool of_b;

  FI_VEC_INLINE void gather(int64_t i, int64_t k, int64_t, bf16_t* to) const {
    constexpr int64_t n = 2 * kPackPairs;
    const int64_t chunk = k / n, first = chunk / 3 * n, have = depth - first < n ? depth - first : n;
    const bool low = chunk % 3 == (of_b ? 1 : 2);
    alignas(64) f16_t x[n];
    const f16_t* const from = p + i * line + first * step;
    if (have < n) memset(static_cast<void*>(x), 0, sizeof x);
    if (step == 1)
      memcpy(static_cast<void*>(x), from, static_cast<size_t>(have) * sizeof(f16_t));
    else
      for (int64_t j = 0; j < have; ++j) x[j] = from[j * step];
    for (int64_t v = 0; v < n; v += Vec::kLanes) {
      const Vec all = load(x + v);
      write_tail(to + v, all, Vec::kLanes);
      if (low) write_tail(to + v, all - load(to + v), Vec::kLanes);
    }
  }
  template <int>
  FI_VEC_INLINE bool pack(int64_t, int64_t, int64_t, int, bf16_t*) const {
    return false;
  }
};

/// Lines of bytes that hold two numbers in two's complement each, the even one low; k is a multiple of 32. With
/// `block`, a multiple of 16 bytes: a line is in blocks of so many, `stride` bytes apart.
struct Int4Lines {
  const uint8_t* p;
  int64_t line, block = 0, stride = 0;

  FI_VEC_INLINE void gather(int64_t i, int64_t k, int64_t, bf16_t* to) const {
    const int64_t at = k / 2;
    const uint8_t* const from = p + i * line + (block ? at / block * stride + at % block : at);
#pragma GCC unroll 4
    for (int64_t v = 0; v < 2 * kPackPairs; v += Vec::kLanes) {
      alignas(64) float x[Vec::kLanes];
      for (int64_t j = 0; j < Vec::kLanes; ++j)
        x[j] = static_cast<float>(static_cast<int8_t>(from[(v + j) / 2] << (j % 2 ? 0 : 4)) >> 4);
      write_tail(to + v, load(x), Vec::kLanes);
    }
  }
  template <int>
  FI_VEC_INLINE bool pack(int64_t, int64_t, int64_t, int, bf16_t*) const {
    return false;
  }
};

}  // namespace flashinfer::cpu
