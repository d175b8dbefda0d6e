// SPDX-License-Identifier: Apache-2.0
// Rows of s8 times columns of u8: the integer sum of a group of k (16 or 32) is exact, then one FMA adds it times (scale of the row x
// scale of the column). Groups are added in order, so a result depends neither on the rows beside it nor on the ISA.
//
// B is read 64 bytes at a time, four k ("a quad") of 16 columns, which is what one vpdpbusd multiplies: twice as many products an
// instruction as the bf16 dot has. A source of B says
//   kGroups                   groups in 32 k: 1 or 2
//   kMinima                   whether columns have minima
//   scale(block, g, v), minimum(block, g, v)   vector v of the 16 columns' factors
//   each_quad(block, g, f)    f(quad, __m512i) for the quads of group g, with VNNI; bytes(block, w) [8][16][4] without
#pragma once
#include "flashinfer/kernels/cpu/gemm.h"
#include "flashinfer/ops/gemm/bytes_params.h"

#if defined(__AVX512VNNI__) && defined(__AVX512BW__)
#define FI_VNNI 1
#endif

namespace flashinfer::cpu {

/// Some rows of a group of A, from some k on.
struct BytesOfA {
  const int8_t* quads;
  const ByteRow* rows;
  int64_t width;
};

namespace detail {
/// part[r] = the exact sums of group g of a block, as floats (below 2^24: no rounding).
template <int Rows, class Source>
FI_VEC_INLINE void sum_group(const Source& b, int64_t block, int g, const BytesOfA& a, const ByteRow* rows,
                             Vec (&part)[Rows][kPanelVecs]) {
  const int8_t* const quads = a.quads + block * 32 * a.width;
#if FI_VNNI
  __m512i sum[Rows];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) sum[r] = _mm512_set1_epi32(rows[r].start);
  b.each_quad(block, g, [&](int quad, __m512i right) {
    const int8_t* const left = quads + quad * 4 * a.width;
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      int32_t four;
      memcpy(&four, left + 4 * r, sizeof four);
      sum[r] = _mm512_dpbusd_epi32(sum[r], right, _mm512_set1_epi32(four));
    }
  });
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) part[r][0] = Vec{_mm512_cvtepi32_ps(sum[r])};
#else
  constexpr int kQuads = 8 / Source::kGroups;
  uint8_t w[512];
  b.bytes(block, w);
  for (int r = 0; r < Rows; ++r) {
    int32_t sum[kPanelColumns];
    for (int c = 0; c < kPanelColumns; ++c) sum[c] = rows[r].start;
    for (int quad = g * kQuads; quad < (g + 1) * kQuads; ++quad)
      for (int c = 0; c < kPanelColumns; ++c)
        for (int i = 0; i < 4; ++i) sum[c] += w[quad * 64 + c * 4 + i] * quads[(quad * a.width + r) * 4 + i];
    float f[kPanelColumns];
    for (int c = 0; c < kPanelColumns; ++c) f[c] = static_cast<float>(sum[c]);
    for (int v = 0; v < kPanelVecs; ++v) part[r][v] = load(f + v * Vec::kLanes);
  }
#endif
}
}  // namespace detail

/// sums[Rows][16] += A times `blocks` blocks of 32 k of a panel; the first ones start at 0.
template <int Rows, class Source>
__attribute__((noinline)) void multiply_bytes(const Source& b, int64_t blocks, const BytesOfA& a, float* sums, bool first) {
  Vec total[Rows][kPanelVecs];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kPanelVecs; ++v) total[r][v] = first ? zero() : load(sums + r * kPanelColumns + v * Vec::kLanes);
  }
  for (int64_t block = 0; block < blocks; ++block) {
#pragma GCC unroll 2
    for (int g = 0; g < Source::kGroups; ++g) {
      const ByteRow* const rows = a.rows + (block * Source::kGroups + g) * a.width;
      Vec part[Rows][kPanelVecs];
      detail::sum_group<Rows>(b, block, g, a, rows, part);
#pragma GCC unroll 4
      for (int v = 0; v < kPanelVecs; ++v) {
        const Vec scale = b.scale(block, g, v);
#pragma GCC unroll 8
        for (int r = 0; r < Rows; ++r) total[r][v] = fma(part[r][v], splat(rows[r].scale) * scale, total[r][v]);
        if constexpr (Source::kMinima) {
          const Vec minimum = b.minimum(block, g, v);
#pragma GCC unroll 8
          for (int r = 0; r < Rows; ++r) total[r][v] = fma(splat(rows[r].sum), minimum, total[r][v]);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kPanelVecs; ++v) store(sums + r * kPanelColumns + v * Vec::kLanes, total[r][v]);
  }
}
template <class Source, int Rows = kBlockRows>
void multiply_byte_rows(int64_t rows, const Source& b, int64_t blocks, const BytesOfA& a, float* sums, bool first) {
  if (rows == Rows) return multiply_bytes<Rows>(b, blocks, a, sums, first);
  if constexpr (Rows > 1) return multiply_byte_rows<Source, Rows - 1>(rows, b, blocks, a, sums, first);
}

/// Blocks of B brought into memory as quads, with f32 factors [block][group][16].
template <int Groups, bool Minima>
struct ByteBlocks {
  static constexpr int kGroups = Groups;
  static constexpr bool kMinima = Minima;
  const uint8_t* quads;
  const float *scales, *minima;

  FI_VEC_INLINE Vec scale(int64_t block, int g, int v) const {
    return load(scales + (block * Groups + g) * kPanelColumns + v * Vec::kLanes);
  }
  FI_VEC_INLINE Vec minimum(int64_t block, int g, int v) const {
    return load(minima + (block * Groups + g) * kPanelColumns + v * Vec::kLanes);
  }
#if FI_VNNI
  template <class F>
  FI_VEC_INLINE void each_quad(int64_t block, int g, F f) const {
#pragma GCC unroll 8
    for (int quad = g * 8 / Groups; quad < (g + 1) * 8 / Groups; ++quad) f(quad, _mm512_loadu_si512(quads + block * 512 + quad * 64));
  }
#endif
  void bytes(int64_t block, uint8_t* w) const { memcpy(w, quads + block * 512, 512); }
};

}  // namespace flashinfer::cpu
