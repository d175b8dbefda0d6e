// SPDX-License-Identifier: Apache-2.0
// The matrix product of gemm.h on AMX, whatever the number of rows: up to 32 rows by two panels of 16 columns in four
// tiles of sums. A panel is loaded without repacking, a line as a row of the tile; A is read in place where k is
// contiguous.
//
// The order of a sum is that of the instruction: of each 16 k pairs (counted from the first) the first elements and the
// second elements are summed one after another, then both sums are added. The last pairs are filled up with zeros. So
// bits differ from those of vdpbf16ps, and as there do not depend on tiles, blocks, threads or m.
#pragma once
#include "flashinfer/kernels/cpu/amx.h"
#include "flashinfer/kernels/cpu/gemm.h"

namespace flashinfer::cpu {

inline constexpr int64_t kAmxPairs = 16;  // of a tile

#if defined(FI_CPU_AMX)
inline constexpr int64_t kAmxRows = 32;
/// Prefetch distance of B into L2, in k pairs.
inline constexpr int64_t kAmxAhead = 64;

namespace detail {

inline constexpr int64_t kAmxLine = 2 * kAmxPairs;             // elements of a tile's row
inline constexpr int64_t kAmxTile = kPanelColumns * kAmxLine;  // elements of a panel's tile

/// Tiles 0, 1: sums of `upper` rows; 2, 3: of the `lower` rows after them; 4, 5: those rows of A; 6, 7: panels.
inline void shape_gemm_tiles(int64_t upper, int64_t lower) {
  const uint32_t shapes = 1u << 24 | static_cast<uint32_t>(256 * upper + lower);
  if (t_tile_shapes == shapes) return;
  t_tile_shapes = shapes;
  TileConfig c;
  for (int t = 0; t < 8; ++t) {
    const bool of_lower = t == 2 || t == 3 || t == 5;
    c.rows[t] = static_cast<uint8_t>(t >= 6 ? 16 : of_lower ? lower : upper);
    c.row_bytes[t] = c.rows[t] != 0 ? 64 : 0;
  }
  asm volatile("ldtilecfg %0" ::"m"(c));
}

/// Sums += A[rows][16 pairs] * panels; row: bytes between rows of A.
template <int Panels, bool Lower>
FI_VEC_INLINE void multiply_amx_step(const bf16_t* a, int64_t row, const bf16_t* b, int64_t panel) {
  _tile_loadd(4, a, row);
  _tile_loadd(6, b, 64);
  _tile_dpbf16ps(0, 4, 6);
  if constexpr (Lower) {
    _tile_loadd(5, reinterpret_cast<const char*>(a) + 16 * row, row);
    _tile_dpbf16ps(2, 5, 6);
  }
  if constexpr (Panels == 2) {
    _tile_loadd(7, b + panel, 64);
    _tile_dpbf16ps(1, 4, 7);
    if constexpr (Lower) _tile_dpbf16ps(3, 5, 7);
  }
}

/// to[rows][16 pairs] = rows [r, r + rows) of A from pair k on, zeros from pair k + pairs on.
inline void copy_amx_rows(const RowsOfA& a, int64_t r, int64_t rows, int64_t k, int64_t pairs, bf16_t* to) {
  memset(static_cast<void*>(to), 0, static_cast<size_t>(rows * kAmxLine) * sizeof(bf16_t));
  for (int64_t i = r; i < r + rows; ++i, to += kAmxLine) {
    if (i >= a.packed_rows) {
      memcpy(static_cast<void*>(to), a.rows + i * a.row + 2 * k, static_cast<size_t>(pairs) * 4);
      continue;
    }
    const bf16_t* const from = a.blocks + i / kBlockRows * a.block + i % kBlockRows * 2;
    for (int64_t j = 0; j < pairs; ++j)
      memcpy(static_cast<void*>(to + 2 * j), from + (k + j) * 2 * kBlockRows, sizeof(uint32_t));
  }
}

/// sums[rows][row] (+)= rows [r, r + rows) of A from pair k on times `in.b`; Lower: rows > 16.
template <int Panels, bool Lower>
__attribute__((noinline)) void multiply_amx(const RowsOfA& a, int64_t r, int64_t rows, int64_t k, const TileInput& in,
                                            float* sums, int64_t row, bool first) {
  shape_gemm_tiles(Lower ? 16 : rows, Lower ? rows - 16 : 0);
  asm volatile("" ::: "memory");  // g++ 12's tile loads do not say that they read memory
  float* const lower = sums + 16 * row;
  if (first) {
    _tile_zero(0);
    if constexpr (Panels == 2) _tile_zero(1);
    if constexpr (Lower) _tile_zero(2);
    if constexpr (Lower && Panels == 2) _tile_zero(3);
  } else {
    _tile_loadd(0, sums, 4 * row);
    if constexpr (Panels == 2) _tile_loadd(1, sums + kPanelColumns, 4 * row);
    if constexpr (Lower) _tile_loadd(2, lower, 4 * row);
    if constexpr (Lower && Panels == 2) _tile_loadd(3, lower + kPanelColumns, 4 * row);
  }
  const bf16_t* b = in.b;
  const bool direct = r >= a.packed_rows;
  // As in multiply_tile: the next panels follow these in memory.
  const int64_t next = Panels * in.panel - in.pairs * 2 * kPanelColumns;
  int64_t at = 0;
  for (; direct && at + kAmxPairs <= in.pairs; at += kAmxPairs, b += kAmxTile) {
    const bf16_t* const ahead = b + kAmxAhead * 2 * kPanelColumns + (at + kAmxAhead < in.pairs ? 0 : next);
#pragma GCC unroll 2
    for (int p = 0; p < Panels; ++p)
#pragma GCC unroll 16
      for (int line = 0; line < kAmxPairs; ++line)
        __builtin_prefetch(ahead + p * in.panel + line * 2 * kPanelColumns, 0, 2);
    multiply_amx_step<Panels, Lower>(a.rows + r * a.row + 2 * (k + at), 2 * a.row, b, in.panel);
  }
  for (; at < in.pairs; at += kAmxPairs, b += kAmxTile) {  // blocks of 8 rows, and the last pairs
    alignas(64) bf16_t of_a[kAmxRows * kAmxLine], of_b[Panels * kAmxTile];
    const int64_t pairs = in.pairs - at < kAmxPairs ? in.pairs - at : kAmxPairs;
    copy_amx_rows(a, r, rows, k + at, pairs, of_a);
    memset(static_cast<void*>(of_b), 0, sizeof of_b);
    for (int p = 0; p < Panels; ++p)
      memcpy(static_cast<void*>(of_b + p * kAmxTile), b + p * in.panel, static_cast<size_t>(pairs) * 64);
    asm volatile("" ::"r"(of_a), "r"(of_b) : "memory");
    multiply_amx_step<Panels, Lower>(of_a, 2 * kAmxLine, of_b, kAmxTile);
  }
  _tile_stored(0, sums, 4 * row);
  if constexpr (Panels == 2) _tile_stored(1, sums + kPanelColumns, 4 * row);
  if constexpr (Lower) _tile_stored(2, lower, 4 * row);
  if constexpr (Lower && Panels == 2) _tile_stored(3, lower + kPanelColumns, 4 * row);
}

}  // namespace detail

/// multiply_rows of gemm.h; block.k is a multiple of 16 pairs. Within a TileScope.
template <int Panels>
void multiply_rows_amx(const RowsOfA& a, int64_t begin, int64_t end, KBlock block, const TileInput& in, float* sums,
                       const Output& out) {
  constexpr int64_t kRow = Panels * kPanelColumns;
  const bool blocked = !(block.first && block.last);
  for (int64_t r = begin; r < end; r += kAmxRows) {
    const int64_t rows = end - r < kAmxRows ? end - r : kAmxRows;
    float* const tile_sums = sums + (blocked ? (r - begin) * kRow : 0);
    if (rows > 16)
      detail::multiply_amx<Panels, true>(a, r, rows, block.k, in, tile_sums, kRow, block.first);
    else
      detail::multiply_amx<Panels, false>(a, r, rows, block.k, in, tile_sums, kRow, block.first);
    if (block.last) finish_rows(out, tile_sums, kRow, r, rows);
  }
}

#endif

}  // namespace flashinfer::cpu
