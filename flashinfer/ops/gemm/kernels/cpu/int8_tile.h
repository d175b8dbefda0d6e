// SPDX-License-Identifier: Apache-2.0
// Rows of s8 times columns of u8: the integer sum of a group of k (16 or 32) is exact, then one FMA adds it times
// (scale of the row x scale of the column). Groups are added in order, so a result depends neither on the other rows
// nor, where there is an FMA, on the ISA.
//
// B is read 64 bytes at a time, four k ("a quad") of 16 columns, the operand of one vpdpbusd: twice as many products an
// instruction as the bf16 dot. A source of B defines
//   kGroups                   groups in 32 k: 1 or 2
//   kMinima                   whether columns have minima
//   scale(block, g, v), minimum(block, g, v)   vector v of the 16 columns' factors
//   each_quad(block, g, f)    f(quad, __m512i) for the quads of group g, with VNNI
//   each_half(block, g, half, f)   f(quad, __m256i) for 8 of the 16 columns of these quads, with AVX-VNNI
//   bytes(block, w)           the same as bytes [8][16][4], without either
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cpu/gemm.h"
#include "flashinfer/ops/gemm/kernels/int8_params.h"

#if defined(__AVX512VNNI__) && defined(__AVX512BW__)
#define FI_VNNI 1
#elif defined(__AVXVNNI__) && !defined(__AVX512F__)
#define FI_AVX_VNNI 1
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
#elif FI_AVX_VNNI
  // Half of the columns at a time: 8 rows of both would take all 16 registers.
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    __m256i sum[Rows];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) sum[r] = _mm256_set1_epi32(rows[r].start);
    b.each_half(block, g, half, [&](int quad, __m256i right) {
      const int8_t* const left = quads + quad * 4 * a.width;
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        int32_t four;
        memcpy(&four, left + 4 * r, sizeof four);
        sum[r] = _mm256_dpbusd_avx_epi32(sum[r], right, _mm256_set1_epi32(four));
      }
    });
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) part[r][half] = Vec{_mm256_cvtepi32_ps(sum[r])};
  }
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

/// sums[Rows][16] += A times `blocks` blocks of 32 k of a panel; `first`: the sums start at 0.
template <int Rows, class Source>
__attribute__((noinline)) void multiply_bytes(const Source& b, int64_t blocks, const BytesOfA& a, float* sums,
                                              bool first) {
  Vec total[Rows][kPanelVecs];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kPanelVecs; ++v)
      total[r][v] = first ? zero() : load(sums + r * kPanelColumns + v * Vec::kLanes);
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

#if FI_AVX_VNNI
FI_VEC_INLINE __m256i load_bytes(const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
#endif

/// Blocks of B in memory as quads, with f32 factors [block][group][16].
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
    for (int i = 0; i < 8 / Groups; ++i) {
      const int quad = g * 8 / Groups + i;
      f(quad, _mm512_loadu_si512(quads + block * 512 + quad * 64));
    }
  }
#elif FI_AVX_VNNI
  template <class F>
  FI_VEC_INLINE void each_half(int64_t block, int g, int half, F f) const {
#pragma GCC unroll 8
    for (int i = 0; i < 8 / Groups; ++i) {
      const int quad = g * 8 / Groups + i;
      f(quad, load_bytes(quads + block * 512 + quad * 64 + half * 32));
    }
  }
#endif
  void bytes(int64_t block, uint8_t* w) const { memcpy(w, quads + block * 512, 512); }
};

namespace detail {
/// fn(first row, rows, operand) for the groups of rows [begin, end).
template <class Fn>
FI_VEC_INLINE void each_group(const ByteGemmParams& p, int groups_per_32, int64_t begin, int64_t end, Fn fn) {
  for (int64_t r = begin; r < end; r += kBlockRows) {
    const int64_t group = r / kBlockRows;
    fn(r, end - r < kBlockRows ? end - r : int64_t{kBlockRows},
       BytesOfA{p.a + group * p.width * p.k, p.a_rows + group * p.width * (p.k / 32 * groups_per_32), p.width});
  }
}

/// Rows [begin, end) times a panel. fill(first block, blocks) converts `at_once` blocks into `b` at a time; the sums of
/// up to 128 rows are kept meanwhile.
template <class Source, class Fill>
FI_VEC_INLINE void multiply_filled(const ByteGemmParams& p, const Source& b, int64_t at_once, int64_t begin,
                                   int64_t end, const Output& out, Fill fill) {
  constexpr int64_t kRows = 128;
  const int64_t blocks = p.k / 32;
  alignas(64) float sums[kRows * kPanelColumns];
  if (blocks == 0) memset(sums, 0, sizeof sums);
  for (int64_t from = begin; from < end; from += kRows) {
    const int64_t to = end - from < kRows ? end : from + kRows;
    for (int64_t first = 0; first < blocks; first += at_once) {
      const int64_t count = blocks - first < at_once ? blocks - first : at_once;
      fill(first, count);
      each_group(p, Source::kGroups, from, to, [&](int64_t r, int64_t rows, BytesOfA a) {
        a.quads += first * 32 * a.width;
        a.rows += first * Source::kGroups * a.width;
        multiply_byte_rows(rows, b, count, a, sums + (r - from) * kPanelColumns, first == 0);
      });
    }
    finish_rows(out, sums, kPanelColumns, from, to - from);
  }
}

/// fn(panel, begin, end, output of the panel) for the panels and rows of task t: some rows by some panels, panels
/// fastest.
template <class Fn>
FI_VEC_INLINE void each_panel(const ByteGemmParams& p, int64_t task, Fn fn) {
  const int64_t panels = ceil_div(p.n, kPanelColumns);
  const int64_t panel_tasks = ceil_div(panels, p.panels_per_task);
  const int64_t begin = task / panel_tasks * p.rows_per_task,
                end = p.m - begin < p.rows_per_task ? p.m : begin + p.rows_per_task;
  int64_t panel = task % panel_tasks * p.panels_per_task;
  const int64_t last = panels - panel < p.panels_per_task ? panels : panel + p.panels_per_task;
  const int64_t item = p.out_dtype == DType::kF32 ? 4 : 2;
  for (; panel < last; ++panel) {
    const int64_t column = panel * kPanelColumns;
    fn(panel, begin, end,
       Output{.out = static_cast<char*>(p.out) + column * item,
              .row = p.out_row,
              .bias = nullptr,
              .scale_a = p.scale,
              .scale_b = 1,
              .columns = p.n - column,
              .dtype = p.out_dtype});
  }
}
}  // namespace detail

}  // namespace flashinfer::cpu
