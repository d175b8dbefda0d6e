// SPDX-License-Identifier: Apache-2.0
// Packs operands of the matrix product (gemm.h) into the layout of its tiles and converts them to bf16, which is exact
// for bf16, e4m3 and e5m2.
#pragma once
#include "flashinfer/kernels/cpu/fp8_rows.h"
#include "flashinfer/kernels/cpu/vec.h"

namespace flashinfer::cpu {

// Layouts are the same on every ISA: packed weights may move between machines, and the launcher is independent of the
// tile.
inline constexpr int kPanelColumns = 16;  // columns of B in a panel
inline constexpr int kBlockRows = 8;      // rows of A in a block
/// Pairs converted at a time: 16 vectors x 16 pairs, one transposition of 16 x 16 32-bit words with AVX-512.
inline constexpr int kPackPairs = 16;

namespace detail {
inline bf16_t narrow(bf16_t x) { return x; }
template <class S>
inline bf16_t narrow(S x) {
  return bf16_t(static_cast<float>(x));
}

/// to[0..32) = elements [k, k + 32) of a line, zeros from `k_end` on.
template <class S>
FI_VEC_INLINE void gather_line(const S* p, int64_t step, int64_t k, int64_t k_end, bf16_t* to) {
  constexpr int64_t n = 2 * kPackPairs;
  const int64_t have = k_end - k < n ? k_end - k : n;
  p += k * step;
  if (step == 1 && __is_same(S, bf16_t)) {
    memcpy(static_cast<void*>(to), p, static_cast<size_t>(have) * sizeof(bf16_t));
  } else if (step == 1 && !__is_same(S, bf16_t)) {
    if constexpr (!__is_same(S, bf16_t)) widen_row(p, have, to);
  } else {
    for (int64_t i = 0; i < have; ++i) to[i] = narrow(p[i * step]);
  }
  if (have < n) memset(static_cast<void*>(to + have), 0, static_cast<size_t>(n - have) * sizeof(bf16_t));
}

/// to[pair][line] for lines that are adjacent in memory (a row-major B): both elements of a pair come from rows of
/// lines.
template <int Width, class S>
FI_VEC_INLINE void interleave_rows(const S* p, int64_t step, int64_t lines, int64_t have, int pairs, bf16_t* to) {
  for (int k = 0; k < pairs; ++k, to += 2 * Width) {
    const S *even = p + 2 * k * step, *odd = even + step;
    if (lines == Width && 2 * k + 2 <= have) {
      for (int i = 0; i < Width; ++i) to[2 * i] = narrow(even[i]), to[2 * i + 1] = narrow(odd[i]);
      continue;
    }
    memset(static_cast<void*>(to), 0, 2 * Width * sizeof(bf16_t));
    for (int64_t i = 0; i < lines && 2 * k < have; ++i) to[2 * i] = narrow(even[i]);
    for (int64_t i = 0; i < lines && 2 * k + 1 < have; ++i) to[2 * i + 1] = narrow(odd[i]);
  }
}

/// to[pair][line] = from[line][pair] for `Width` lines of 16 pairs; from: [Width][32] elements, to: [16][Width][2].
template <int Width>
FI_VEC_INLINE void transpose_pairs(const bf16_t* from, int64_t from_line, bf16_t* to, int pairs) {
  for (int k = 0; k < pairs; ++k)
    for (int i = 0; i < Width; ++i)
      memcpy(static_cast<void*>(to + (k * Width + i) * 2), from + i * from_line + 2 * k, 4);
}

#if defined(__AVX512F__)
/// 64 bytes of each of 16 lines, `line` bytes apart, to [16 words of four bytes][16 lines]: four rounds of exchanges
/// over distances 1, 2, 4, 8. `Unit` 2: within a word's 64 bytes, each quarter (four lines) has first the lower halves
/// of its words, then the upper ones.
template <int Unit = 4>
FI_VEC_INLINE void transpose_16x16(const void* from, int64_t line, void* to) {
  __m512i x[16], y[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) x[i] = _mm512_loadu_si512(static_cast<const char*>(from) + i * line);
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    y[i] = Unit == 4 ? _mm512_unpacklo_epi32(x[i], x[i + 1]) : _mm512_unpacklo_epi16(x[i], x[i + 1]);
    y[i + 1] = Unit == 4 ? _mm512_unpackhi_epi32(x[i], x[i + 1]) : _mm512_unpackhi_epi16(x[i], x[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    x[i] = Unit == 4 ? _mm512_unpacklo_epi64(y[i], y[i + 2]) : _mm512_unpacklo_epi32(y[i], y[i + 2]);
    x[i + 1] = Unit == 4 ? _mm512_unpackhi_epi64(y[i], y[i + 2]) : _mm512_unpackhi_epi32(y[i], y[i + 2]);
    x[i + 2] = Unit == 4 ? _mm512_unpacklo_epi64(y[i + 1], y[i + 3]) : _mm512_unpacklo_epi32(y[i + 1], y[i + 3]);
    x[i + 3] = Unit == 4 ? _mm512_unpackhi_epi64(y[i + 1], y[i + 3]) : _mm512_unpackhi_epi32(y[i + 1], y[i + 3]);
  }
  char* const out = static_cast<char*>(to);
  // x[4 g + j] holds, in its 128-bit quarter q, word 4 q + j of lines 4 g .. 4 g + 3.
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    y[j] = _mm512_shuffle_i32x4(x[j], x[4 + j], 0x88);
    y[4 + j] = _mm512_shuffle_i32x4(x[j], x[4 + j], 0xdd);
    y[8 + j] = _mm512_shuffle_i32x4(x[8 + j], x[12 + j], 0x88);
    y[12 + j] = _mm512_shuffle_i32x4(x[8 + j], x[12 + j], 0xdd);
  }
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    _mm512_storeu_si512(out + (0 + j) * 64, _mm512_shuffle_i32x4(y[j], y[8 + j], 0x88));
    _mm512_storeu_si512(out + (8 + j) * 64, _mm512_shuffle_i32x4(y[j], y[8 + j], 0xdd));
    _mm512_storeu_si512(out + (4 + j) * 64, _mm512_shuffle_i32x4(y[4 + j], y[12 + j], 0x88));
    _mm512_storeu_si512(out + (12 + j) * 64, _mm512_shuffle_i32x4(y[4 + j], y[12 + j], 0xdd));
  }
}
template <>
FI_VEC_INLINE void transpose_pairs<16>(const bf16_t* from, int64_t line, bf16_t* to, int pairs) {
  if (pairs == kPackPairs) return transpose_16x16(from, line * 2, to);
  bf16_t all[16 * 32];
  transpose_16x16(from, line * 2, all);
  memcpy(static_cast<void*>(to), all, static_cast<size_t>(pairs) * 64);
}
#endif
}  // namespace detail

/// Vectors along k: element (i, k) at p + i * line + k * step. If `ahead` is not 0, reading an element prefetches the
/// one that many elements further on: sixteen streams are more than the hardware prefetcher follows.
///
/// The interface that pack_lines needs: gather() and, where a source has a faster way, pack(). The other sources are in
/// ops/gemm/kernels/cpu/pack_sources.h and gguf_sources.h.
template <class S>
struct Lines {
  const S* p;
  int64_t line, step, ahead = 0;

  /// to[0..32) = elements [k, k + 32) of line i as bf16, zeros from `k_end` on.
  FI_VEC_INLINE void gather(int64_t i, int64_t k, int64_t k_end, bf16_t* to) const {
    detail::gather_line(p + i * line, step, k, k_end, to);
  }
  /// Packs `pairs` k pairs from k on and returns true, or returns false where this fast path does not apply.
  template <int Width>
  FI_VEC_INLINE bool pack(int64_t lines, int64_t k, int64_t k_end, int pairs, bf16_t* to) const {
    if constexpr (__is_same(S, bf16_t)) {
      if (step == 1 && lines == Width && k + 2 * kPackPairs <= k_end) {
        if (ahead)
          for (int i = 0; i < Width; ++i) __builtin_prefetch(p + k + i * line + ahead, 0, 2);
        detail::transpose_pairs<Width>(p + k, line, to, pairs);
        return true;
      }
    }
#if FI_WIDEN_LINES
    if constexpr (!__is_same(S, bf16_t) && Width == 16) {
      if (step == 1 && lines == Width && k + 2 * kPackPairs <= k_end && pairs == kPackPairs) {
        if (ahead && k % 64 == 0)
          for (int i = 0; i < Width; ++i) __builtin_prefetch(p + k + i * line + ahead, 0, 2);
        widen_lines<S>([&](int i) { return p + i * line + k; }, to);
        return true;
      }
    }
#endif
    if (line == 1 && step != 1) {
      detail::interleave_rows<Width>(p + k * step, step, lines, k_end - k, pairs, to);
      return true;
    }
    return false;
  }
};

/// Interleaves `lines` <= Width vectors by k pairs: to[k / 2][Width][2], with zeros for missing lines and for k >=
/// k_end. Writes pairs [k / 2, (k_to + 1) / 2), k even. For a panel of B the lines are columns, for a block of A rows.
template <int Width, class Source>
void pack_lines(const Source& from, int64_t lines, int64_t k, int64_t k_to, int64_t k_end, bf16_t* to) {
  alignas(64) bf16_t tile[Width * 2 * kPackPairs];
  for (; k < k_to; k += 2 * kPackPairs, to += kPackPairs * Width * 2) {
    const int64_t left = (k_to - k + 1) / 2;
    const int pairs = left < kPackPairs ? static_cast<int>(left) : kPackPairs;
    if (from.template pack<Width>(lines, k, k_end, pairs, to)) continue;
    if (lines < Width) memset(static_cast<void*>(tile), 0, sizeof tile);
    for (int64_t i = 0; i < lines; ++i) from.gather(i, k, k_end, tile + i * 2 * kPackPairs);
    detail::transpose_pairs<Width>(tile, 2 * kPackPairs, to, pairs);
  }
}

}  // namespace flashinfer::cpu
