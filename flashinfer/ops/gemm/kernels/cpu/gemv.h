// SPDX-License-Identifier: Apache-2.0
// GEMV: bound by reading B. Packed panels of bytes (kernels/packed_layout.h) are converted and multiplied as they are
// read. For an unpacked B with contiguous k, 64 bytes of each of 48 columns are first transposed as 4-byte words. Both
// use the accumulation order of the tiles (gemm.h), so results are bitwise the same.
//
// Three panels at a time, because a column's sum is one chain of dot products with a latency of six cycles each. While
// one tile of 48 columns is multiplied, the lines of the next are prefetched in memory order, a few at each word: the
// hardware prefetcher does not follow 48 streams, and without this reads reach a third of the bandwidth. Prefetching
// every second line reaches half.
#pragma once
#include "flashinfer/kernels/cpu/gemm.h"
#include "flashinfer/kernels/cpu/gemm_amx.h"
#include "flashinfer/ops/gemm/kernels/cpu/pack_sources.h"
#include "flashinfer/ops/gemm/kernels/cpu/packed_unpack.h"
#include "flashinfer/ops/gemm/kernels/params.h"

#if FI_GEMV

namespace flashinfer::cpu::detail {

/// The lines of memory of a tile, row by row.
struct Prefetcher {
  const char *row = nullptr, *at = nullptr;
  int64_t stride = 0, width = 0, left = 0, rows = 0;  // width, left: lines of a row

  FI_VEC_INLINE void start(const char* from, int64_t row_stride, int64_t lines, int64_t count) {
    row = at = from, stride = row_stride, width = left = lines, rows = lines > 0 ? count : 0;
  }
  FI_VEC_INLINE void issue_prefetch(int64_t n) {
    while (n > 0 && rows > 0) {
      const int64_t now = n < left ? n : left;
      for (int64_t i = 0; i < now; ++i, at += 64) __builtin_prefetch(at, 0, 2);
      left -= now, n -= now;
      if (left == 0) row += stride, at = row, left = width, --rows;
    }
  }
};

/// Prefetch distance within packed panels, which are contiguous.
inline constexpr int64_t kPanelAhead = 4096;

/// Scales that are powers of two need not be multiplied into the elements: a chain in units of its block's scale has
/// the same roundings as long as no value leaves the normal range, and from block to block the sum is converted to the
/// new unit. With |a| in [2^-64, 2^31) or 0 and scales in [2^-22, 2^22], every sum is a multiple of 2^-124 in either
/// unit (e4m3: a 2^-71, b 2^-9, scale 2^-22, unit 2^22) and far from overflow.
inline constexpr int kLeastScale = 127 - 22, kScaleRange = 44;
inline bool row_in_range(const bf16_t* a, int64_t k) {
  const __m512i magnitude = _mm512_set1_epi16(0x7fff), one = _mm512_set1_epi16(1);
  __m512i least = _mm512_set1_epi16(-1), most = _mm512_setzero_si512();
  for (int64_t i = 0; i < k; i += 32) {
    const __m512i x =
        _mm512_and_si512(_mm512_maskz_loadu_epi16(k - i < 32 ? ~0u >> (32 - (k - i)) : ~0u, a + i), magnitude);
    least = _mm512_min_epu16(least, _mm512_sub_epi16(x, one));  // 0 becomes the largest
    most = _mm512_max_epu16(most, x);
  }
  const __m512i low = _mm512_set1_epi16((127 - 64) << 7), high = _mm512_set1_epi16((127 + 31) << 7);
  return _mm512_cmplt_epu16_mask(least, _mm512_sub_epi16(low, one)) == 0 && _mm512_cmpge_epu16_mask(most, high) == 0;
}
/// The unit of the sums of 16 columns, as a scale byte.
struct Unit {
  __m512i byte = _mm512_set1_epi32(127);
  FI_VEC_INLINE void change(__m512i to, Vec& acc) {
    const __m512i exponent = _mm512_add_epi32(_mm512_sub_epi32(byte, to), _mm512_set1_epi32(127));
    acc = acc * Vec{_mm512_castsi512_ps(_mm512_slli_epi32(exponent, 23))};
    byte = to;
  }
};

/// Operands of a GEMV.
struct GemvOperands {
  const bf16_t* a;
  const char* b;             // first column of the panels; packed: their lines
  int64_t stride;            // bytes between columns; packed: between panels
  int64_t k, span;           // span: k of one scaled sum, else all of k
  const uint8_t* const* sf;  // scale factors of the first column of each panel
  int64_t sf_stride,
      sf_step;  // bytes between columns of a panel, between fours of blocks; packed: of SfLayout::kPanels
  bool more;    // whether panels follow
};

inline constexpr int64_t kTileLines = 16;  // lines of a row in a tile

#if defined(FI_CPU_AMX)
/// acc += 16 pairs of a row times P tiles, in AMX's order (gemm_amx.h); between() after each tile.
template <int P, class Between>
FI_VEC_INLINE void multiply_amx_row(const bf16_t* a, const char (&words)[P][1024], Vec (&acc)[P], Between between) {
  alignas(64) float sums[P][kPanelColumns];
#pragma GCC unroll 4
  for (int p = 0; p < P; ++p) store(sums[p], acc[p]);
  shape_gemm_tiles(1, 0);
  asm volatile("" ::"r"(sums), "r"(words) : "memory");
  _tile_loadd(4, a, 64);
#pragma GCC unroll 4
  for (int p = 0; p < P; ++p) {
    _tile_loadd(0, sums[p], 64);
    _tile_loadd(6, words[p], 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_stored(0, sums[p], 64);
    between();
  }
#pragma GCC unroll 4
  for (int p = 0; p < P; ++p) acc[p] = load(sums[p]);
}
#endif

/// sums[16 P] = the row times P panels. slow(k, elements, sums) continues sums without the fast path. close(first k,
/// end, sums of the span) is called after each span.
template <GemmFormat F, bool Packed, bool Scaled, int P, class Slow, class Close>
FI_VEC_INLINE void gemv(const GemvOperands& x, float* sums, Slow slow, Close close) {
  using Words = PackedPairs<F>;
  constexpr int64_t kChunk = 16 * Words::kElements, kStep = Scaled ? 128 : kChunk,
                    kBlockWords = Scaled ? 32 / Words::kElements : 16;
  const Words convert;
  alignas(64) char words[P][1024];
  alignas(64) uint32_t scales[2][P][kPanelColumns];
  const int64_t chunks = x.k / kChunk;
  Prefetcher ahead;
  Vec acc[P];
  Unit unit[P];
  const auto fill = [&](int64_t step) {
    for (int p = 0; p < P; ++p)
      for (int i = 0; i < kPanelColumns; ++i)
        memcpy(&scales[step & 1][p][i], x.sf[p] + step * x.sf_step + i * x.sf_stride, 4);
  };
  bool ones = !Scaled;  // whether sums are in units of 1 for the rest
  const auto leave = [&] {
    for (int p = 0; p < P && !ones; ++p) {
      unit[p].change(_mm512_set1_epi32(127), acc[p]);
      // A NaN comes from b's codes; packed scaling gives them no sign.
      acc[p].r =
          _mm512_mask_mov_ps(acc[p].r, _mm512_cmpunord_ps_mask(acc[p].r, acc[p].r), _mm512_set1_ps(__builtin_nanf("")));
    }
    ones = true;
    for (int p = 0; p < P; ++p) store(sums + p * kPanelColumns, acc[p]);
  };
  const auto by_slow = [&](int64_t k, int64_t elements) {
    leave();
    slow(k, elements, sums);
    for (int p = 0; p < P; ++p) acc[p] = load(sums + p * kPanelColumns);
  };
  const auto transpose = [&](int64_t chunk) {
    if (chunk % kTileLines == 0) {
      const int64_t next = chunk + kTileLines, from = next < chunks ? next : 0, left = chunks - from;
      ahead.start(x.b + (next < chunks ? 0 : P * kPanelColumns * x.stride) + from * 64, x.stride,
                  left < kTileLines ? left : kTileLines, next < chunks || x.more ? P * kPanelColumns : 0);
    }
#pragma GCC unroll 1
    for (int p = 0; p < P; ++p)
      transpose_16x16<Words::kUnit>(x.b + p * kPanelColumns * x.stride + chunk * 64, x.stride, words[p]);
  };
  const auto word_of = [&](int p, int64_t k, int64_t word) {
    if constexpr (!Packed) return _mm512_load_si512(words[p] + word % 16 * 64);
    const char* const at = x.b + p * x.stride + (k / Words::kElements + word) * 64;
    __builtin_prefetch(at + kPanelAhead, 0, 2);
    return _mm512_loadu_si512(at);
  };
  if (Scaled && !Packed && x.k >= kStep) fill(0);
  for (int64_t begin = 0; begin < x.k; begin += x.span) {
    const int64_t end = x.k - begin < x.span ? x.k : begin + x.span;
    int64_t k = begin;
    for (int p = 0; p < P; ++p) acc[p] = zero();
    for (; k + kStep <= end; k += kStep) {
      __m512i s[P];
      if constexpr (Scaled) {
        if (!Packed && k + 2 * kStep <= end) fill(k / kStep + 1);
        __mmask64 far = 0;
#pragma GCC unroll 4
        for (int p = 0; p < P; ++p) {
          s[p] = Packed ? _mm512_loadu_si512(x.sf[p] + k / 2)
                        : _mm512_load_si512(scales[k / kStep & 1][p]);  // 16 bytes for 32 k
          far |= _mm512_cmpgt_epu8_mask(_mm512_sub_epi8(s[p], _mm512_set1_epi8(kLeastScale)),
                                        _mm512_set1_epi8(kScaleRange));
        }
        if (ones || far != 0) {  // and for the rest, as sums may have become small
          by_slow(k, kStep);
          continue;
        }
      }
#pragma GCC unroll 1
      for (int64_t block = 0; block < kStep / kChunk * (16 / kBlockWords); ++block) {
        const int64_t word = block * kBlockWords;
        if (!Packed && word % 16 == 0) transpose(k / kChunk + word / 16);
        if constexpr (Scaled) {
#pragma GCC unroll 4
          for (int p = 0; p < P; ++p) {
            unit[p].change(Packed ? _mm512_cvtepu8_epi32(_mm512_castsi512_si128(s[p]))
                                  : _mm512_and_si512(s[p], _mm512_set1_epi32(255)),
                           acc[p]);
            s[p] = Packed ? _mm512_alignr_epi64(s[p], s[p], 2) : _mm512_srli_epi32(s[p], 8);
          }
        }
#if defined(FI_CPU_AMX)
        if constexpr (F == GemmFormat::kBF16 && !Packed) {
          multiply_amx_row<P>(x.a + k, words, acc, [&] { ahead.issue_prefetch(16); });
          continue;
        }
#endif
#pragma GCC unroll 2
        for (int64_t w = 0; w < kBlockWords; ++w) {
          if (!Packed) ahead.issue_prefetch(P);  // 16 P for 16 words; all at once they would wait for each other
#pragma GCC unroll 4
          for (int p = 0; p < P; ++p)
            convert.each(word_of(p, k, word + w), [&](int i, Pairs b) {
              acc[p] = dot_pairs(acc[p], splat_pair(x.a + k + (word + w) * Words::kElements + 2 * i), b);
            });
        }
      }
    }
    if (k < end) by_slow(k, end - k);
    leave();
    close(begin, end, sums);
  }
}

}  // namespace flashinfer::cpu::detail
#endif
