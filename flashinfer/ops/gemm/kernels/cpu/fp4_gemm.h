// SPDX-License-Identifier: Apache-2.0
// Products of FP4 matrices; the weight unpacked or packed (kernels/packed_layout.h). A block's sum is exact in integers
// (kernels/cpu/int8_tile.h). 16 unpacked rows of B are transposed four bytes at a time, so that a lane has eight k of a
// column; a look-up in 16 bytes converts a nibble to an operand of vpdpbusd.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/gemm/kernels/cpu/int8_tile.h"
#include "flashinfer/ops/gemm/kernels/cpu/pack_sources.h"

namespace flashinfer::cpu {
namespace detail {

/// Twice the values of the codes, and the same plus 12.
alignas(16) inline constexpr int8_t kFp4Twice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
alignas(16) inline constexpr uint8_t kFp4Positive[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

/// Prefetch distance of packed words and of scales, in bytes; panels are contiguous.
inline constexpr int64_t kWordsAhead = 8192, kScalesAhead = 1024;

template <int Groups, bool Packed>
struct Fp4Quads {
  static constexpr int kGroups = Groups;
  static constexpr bool kMinima = false;
  const uint8_t* words;  // [block][4][16][4]
  const float* scales;   // [block][group][16]; Packed: sf, the same in bytes, of 32 ue8m0 and of 16 e4m3
  const uint8_t* sf = nullptr;
  // 64 bytes to prefetch with each word, spread out so that prefetches do not wait for each other; or null.
  const uint8_t* ahead = nullptr;

  FI_VEC_INLINE Vec scale(int64_t block, int g, int v) const {
    if constexpr (Packed) {
      const uint8_t* const at = sf + (block * Groups + g) * kPanelColumns + v * Vec::kLanes;
      __builtin_prefetch(at + kScalesAhead, 0, 2);
#if defined(__AVX512F__)
      return scale_values(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at))), Groups == 1);
#else
      alignas(64) float y[Vec::kLanes];
      for (int c = 0; c < Vec::kLanes; ++c) y[c] = scale_of_byte(at[c], Groups == 1);
      return load(y);
#endif
    }
    return load(scales + (block * Groups + g) * kPanelColumns + v * Vec::kLanes);
  }
  Vec minimum(int64_t, int, int) const { return zero(); }
#if FI_VNNI
  template <class F>
  FI_VEC_INLINE void each_quad(int64_t block, int g, F f) const {
    const __m512i table = _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(kFp4Positive)));
    const __m512i nibble = _mm512_set1_epi8(15);
#pragma GCC unroll 4
    for (int i = 0; i < 4 / Groups; ++i) {
      const int word = g * 4 / Groups + i;
      if (ahead) __builtin_prefetch(ahead + (block * 4 + word) * 64, 0, 2);
      const __m512i x = _mm512_loadu_si512(words + block * 256 + word * 64);
      f(2 * word, _mm512_shuffle_epi8(table, _mm512_and_si512(x, nibble)));
      f(2 * word + 1, _mm512_shuffle_epi8(table, _mm512_and_si512(_mm512_srli_epi16(x, 4), nibble)));
    }
  }
#elif FI_AVX_VNNI
  template <class F>
  FI_VEC_INLINE void each_half(int64_t block, int g, int half, F f) const {
    const __m256i table = _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(kFp4Positive)));
    const __m256i nibble = _mm256_set1_epi8(15);
#pragma GCC unroll 4
    for (int i = 0; i < 4 / Groups; ++i) {
      const int word = g * 4 / Groups + i;
      if (ahead && half == 0) __builtin_prefetch(ahead + (block * 4 + word) * 64, 0, 2);
      const __m256i x = load_bytes(words + block * 256 + word * 64 + half * 32);
      f(2 * word, _mm256_shuffle_epi8(table, _mm256_and_si256(x, nibble)));
      f(2 * word + 1, _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(x, 4), nibble)));
    }
  }
#endif
  void bytes(int64_t block, uint8_t* w) const {
    for (int i = 0; i < 512; ++i)
      w[i] = kFp4Positive[words[block * 256 + i / 128 * 64 + i % 64] >> (i / 64 % 2 * 4) & 15];
  }
};

/// Up to 16 blocks of 16 rows of B and their scales.
template <int Groups>
struct Fp4Blocks {
  static constexpr int64_t kBlocks = 16;
  alignas(64) uint8_t words[kBlocks * 256];
  alignas(64) float scales[kBlocks * Groups * kPanelColumns];
  const uint8_t *rows, *sf_rows[kPanelColumns];
  int64_t line, columns;
  bool side_by_side;  // the scales of the 16 rows are 16 bytes apart, as in a tile of the 128x4 layout
  const ByteGemmParams& p;

  Fp4Blocks(const ByteGemmParams& params, int64_t panel)
      : rows(params.b + panel * kPanelColumns * params.b_line),
        line(params.b_line),
        columns(params.n - panel * kPanelColumns),
        p(params) {
    for (int64_t c = 0; c < kPanelColumns; ++c)  // a missing column uses row 0's: it is computed and not stored
      sf_rows[c] =
          p.b_sf.bytes +
          sf_row_offset(p.b_sf.layout, p.b_sf.first + panel * kPanelColumns + (c < columns ? c : 0), p.b_sf.columns);
    side_by_side = p.b_sf.layout == SfLayout::k128x4 && columns >= kPanelColumns &&
                   (p.b_sf.first + panel * kPanelColumns) % kPanelColumns == 0;
  }

  /// Whether the rows are contiguous.
  bool in_line() const { return line == p.b_k / 2; }
  /// The memory to prefetch while blocks from `first` on are processed: the same place in the next 16 rows, if rows are
  /// contiguous.
  const uint8_t* next(int64_t first) const { return in_line() ? rows + kPanelColumns * line + first * 256 : nullptr; }

  void fill(int64_t first, int64_t count) {
    for (int64_t block = 0; block < count; block += 4)
      fill_words((first + block) * 16, block, count - block < 4 ? count - block : 4);
    for (int64_t g = 0; g < count * Groups; g += 4) fill_scales(first * Groups + g, g, count * Groups - g);
  }

 private:
  /// 64 bytes of every row: four blocks.
  void fill_words(int64_t at, int64_t block, int64_t blocks) {
    uint8_t* const to = words + block * 256;
#if FI_VNNI
    if (columns >= kPanelColumns && at + 64 <= p.b_k / 2) {
      if (!in_line()) {  // 512 bytes further on, or as many into the rows after these: the hardware prefetcher does not
                         // follow 16 streams
        const uint8_t* const ahead = rows + at + 512 + (at + 512 < p.b_k / 2 ? 0 : kPanelColumns * line - p.b_k / 2);
        for (int c = 0; c < kPanelColumns; ++c) __builtin_prefetch(ahead + c * line, 0, 2);
      }
      return transpose_16x16(rows + at, line, to);
    }
#endif
    memset(to, 0, static_cast<size_t>(blocks * 256));
    for (int64_t c = 0; c < kPanelColumns && c < columns; ++c)
      for (int64_t i = 0; i < blocks * 16 && at + i < p.b_k / 2; ++i)
        to[i / 4 * 64 + c * 4 + i % 4] = rows[c * line + at + i];
  }
#if FI_VNNI
  /// Four columns of scales of 16 rows: selects the 4-byte words of the rows from the tile, then splits them into
  /// bytes.
  FI_VEC_INLINE void convert_scales(int64_t column, float* to) const {
    const uint8_t* const from = sf_rows[0] + sf_column_offset(p.b_sf.layout, column);
    const auto word = static_cast<int>((sf_rows[0] - p.b_sf.bytes) % 16 / 4);  // within each 16 bytes
    const auto rows_at = [&](int i) { return _mm512_loadu_si512(from - 4 * word + 64 * i); };
    const __m512i pick = _mm512_add_epi32(_mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 0, 0, 0, 0, 0, 0, 0),
                                          _mm512_set1_epi32(word));
    const __m512i low = _mm512_permutex2var_epi32(rows_at(0), pick, rows_at(1)),
                  high = _mm512_permutex2var_epi32(rows_at(2), pick, rows_at(3));
    __m512i four = _mm512_inserti64x4(low, _mm512_castsi512_si256(high), 1);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i, four = _mm512_srli_epi32(four, 8))
      store(to + i * kPanelColumns, scale_values(_mm512_and_si512(four, _mm512_set1_epi32(255)), p.b_sf.e8m0));
  }
#endif
  /// Four columns of scale factors, which are adjacent except in the linear layout; beyond the matrix they are 0.
  void fill_scales(int64_t column, int64_t group, int64_t groups) {
    alignas(64) uint32_t four[kPanelColumns];
    const int64_t left = p.b_sf.columns - column;
#if FI_VNNI
    if (side_by_side && left >= 4 && groups >= 4) return convert_scales(column, scales + group * kPanelColumns);
#endif
    for (int64_t c = 0; c < kPanelColumns; ++c) {
      if (p.b_sf.layout != SfLayout::kLinear) {
        memcpy(&four[c], sf_rows[c] + sf_column_offset(p.b_sf.layout, column), 4);
      } else {
        four[c] = 0;
        for (int64_t i = 0; i < 4 && i < left; ++i) four[c] |= static_cast<uint32_t>(sf_rows[c][column + i]) << (8 * i);
      }
    }
    for (int64_t i = 0; i < 4 && i < groups; ++i) {
      float* const to = scales + (group + i) * kPanelColumns;
      if (i >= left) {
        for (int c = 0; c < kPanelColumns; ++c) to[c] = 0;
      } else if (p.b_sf.e8m0) {
        for (int c = 0; c < kPanelColumns; ++c) to[c] = e8m0_to_f32(static_cast<uint8_t>(four[c] >> (8 * i)));
      } else {
        for (int c = 0; c < kPanelColumns; ++c) {  // the exponent's bias differs by 120; all ones is NaN
          const uint32_t b = four[c] >> (8 * i), magnitude = b & 127, bits = magnitude << 20 | (b & 128) << 24;
          const float value = __builtin_bit_cast(float, bits) * 0x1p120f;
          to[c] = magnitude == 127 ? __builtin_nanf("") : value;
        }
      }
    }
  }
};

}  // namespace detail

template <Fp4GemmConfig C>
void gemm_fp4(const ByteGemmParams& p, int64_t task) {
  using Blocks = detail::Fp4Blocks<C.groups>;
  detail::each_panel(p, task, [&](int64_t panel, int64_t begin, int64_t end, const Output& out) {
    if constexpr (C.packed_b) {
      const uint8_t* const words = p.b + panel * p.b_line;
      const detail::Fp4Quads<C.groups, true> b{
          words, nullptr, p.b_sf.bytes + sf_row_offset(SfLayout::kPanels, panel * kPanelColumns, p.b_sf.columns),
          words + detail::kWordsAhead};
      alignas(64) float sums[kBlockRows * kPanelColumns];
      return detail::each_group(p, C.groups, begin, end, [&](int64_t r, int64_t rows, const BytesOfA& a) {
        multiply_byte_rows(rows, b, p.k / 32, a, sums, true);
        finish_rows(out, sums, kPanelColumns, r, rows);
      });
    }
    Blocks some(p, panel);
    detail::Fp4Quads<C.groups, false> b{some.words, some.scales};
    detail::multiply_filled(p, b, Blocks::kBlocks, begin, end, out, [&](int64_t first, int64_t count) {
      some.fill(first, count);
      if (end - begin <= kBlockRows) b.ahead = some.next(first);  // with more rows the words are read again
    });
  });
}

namespace detail {
/// 32 codes to quads `step` bytes apart, and the sums of both halves.
FI_VEC_INLINE void unpack_fp4(const uint8_t* from, int8_t* to, int64_t step, int32_t (&sums)[2]) {
#if FI_VNNI
  const __m128i table = _mm_load_si128(reinterpret_cast<const __m128i*>(kFp4Twice)), nibble = _mm_set1_epi8(15),
                ones = _mm_set1_epi8(1);
  const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  const __m128i low = _mm_shuffle_epi8(table, _mm_and_si128(x, nibble)),
                high = _mm_shuffle_epi8(table, _mm_and_si128(_mm_srli_epi16(x, 4), nibble));
  alignas(16) int32_t words[3][4];
  _mm_store_si128(reinterpret_cast<__m128i*>(words[0]), low);
  _mm_store_si128(reinterpret_cast<__m128i*>(words[1]), high);
  _mm_store_si128(reinterpret_cast<__m128i*>(words[2]),
                  _mm_dpbusd_epi32(_mm_dpbusd_epi32(_mm_setzero_si128(), ones, low), ones, high));
  for (int word = 0; word < 4; ++word) {
    memcpy(to + 2 * word * step, &words[0][word], 4);
    memcpy(to + (2 * word + 1) * step, &words[1][word], 4);
  }
  sums[0] = words[2][0] + words[2][1], sums[1] = words[2][2] + words[2][3];
#else
  sums[0] = sums[1] = 0;
  for (int i = 0; i < 16; ++i) {
    int8_t* const quad = to + i / 4 * 2 * step + i % 4;
    quad[0] = kFp4Twice[from[i] & 15], quad[step] = kFp4Twice[from[i] >> 4];
    sums[i / 8] += quad[0] + quad[step];
  }
#endif
}
}  // namespace detail

template <Fp4GemmConfig C>
void pack_fp4_rows(const Fp4RowsParams& p, int64_t task) {
  const int64_t first = task * p.width, rows = p.m - first < p.width ? p.m - first : p.width,
                blocks = ceil_div(p.k, 32);
  int8_t* const to = p.to + task * p.width * blocks * 32;
  ByteRow* const factors = p.rows + task * p.width * blocks * C.groups;
  for (int64_t r = 0; r < rows; ++r) {
    const uint8_t *from = p.from + (first + r) * p.line,
                  *sf = p.sf.bytes + sf_row_offset(p.sf.layout, p.sf.first + first + r, p.sf.columns);
    for (int64_t block = 0; block < blocks; ++block) {
      uint8_t codes[16] = {};  // the last block may be half a block
      const bool whole = block * 32 + 32 <= p.k;
      if (!whole) memcpy(codes, from + block * 16, 8);
      int32_t sums[2];
      detail::unpack_fp4(whole ? from + block * 16 : codes, to + (block * 8 * p.width + r) * 4, 4 * p.width, sums);
      for (int g = 0; g < C.groups; ++g) {
        const int64_t column = block * C.groups + g;
        const float scale =
            column < p.sf.columns ? scale_of_byte(sf[sf_column_offset(p.sf.layout, column)], p.sf.e8m0) : 0.0f;
        factors[column * p.width + r] = {0.25f * scale, -12 * (C.groups == 2 ? sums[g] : sums[0] + sums[1]), 0.0f};
      }
    }
  }
}

}  // namespace flashinfer::cpu
