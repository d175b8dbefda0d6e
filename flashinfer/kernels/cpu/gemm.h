// SPDX-License-Identifier: Apache-2.0
// Dense matrix products of bf16 operands with f32 accumulation: the register tile and the loops around it. Packing is
// in gemm_pack.h.
//
// Every output element is accumulated in one order: the accumulator starts at 0 and adds the k pairs one after another,
// k ascending, one vdpbf16ps (or two FMAs) each. Tiles, blocks, threads, m and the chosen path do not change it, so row
// i of a product is bitwise the same alone and among 512 others.
//
// B is stored as panels of 16 columns, [K/2][16][2]: a 64-byte line holds one k pair of a panel, a panel is one
// contiguous stream, and a product with one row takes one dot instruction a line, so it is memory-bound. A is stored as
// blocks of 8 rows, [K/2][8][2]; a few rows with contiguous k are read unpacked.
#pragma once
#include "flashinfer/kernels/cpu/gemm_pack.h"
#include "flashinfer/kernels/cpu/vec.h"

namespace flashinfer::cpu {

// Accumulators + operands fill the registers: 8 x 3 panels of 32 zmm with the bf16 dot, 8 x 2 where halves must be
// split off, 4 x 1 panel (8 of 16 ymm) with AVX2.
#if defined(__AVX512BF16__)
inline constexpr int kTileRows = 8, kTilePanels = 3;
#elif defined(__AVX512F__)
inline constexpr int kTileRows = 8, kTilePanels = 2;
#else
inline constexpr int kTileRows = 4, kTilePanels = 1;
#endif
inline constexpr int kPanelVecs = kPanelColumns / Vec::kLanes;

/// Operands of a tile: A rows `a + r * row` with pairs `pair` elements apart; B panels `b + p * panel`.
struct TileInput {
  const bf16_t* a;
  int64_t row, pair;
  const bf16_t* b;
  int64_t panel;
  int64_t pairs;
};

// Prefetch distance of B into L2, in k pairs. The hardware prefetcher follows a panel but restarts at each one; with 8
// rows the products of one line also fill the out-of-order window, so that loads and arithmetic would alternate instead
// of overlapping (8 rows from memory: 123 GFLOP/s without prefetch, 136 with 16, 154 with 32, 157 with 64 pairs; into
// L1: 122; one row: no difference).
inline constexpr int64_t kPairsAhead = 32;

/// acc += A * B over `pairs` k pairs. `Packed`: A is a packed block, so its addresses need one register.
template <int Rows, int Panels, bool Packed>
FI_VEC_INLINE void multiply_tile(const TileInput& in, Vec (&acc)[Rows][Panels * kPanelVecs]) {
  constexpr int kVecs = Panels * kPanelVecs;
  const bf16_t* a = in.a;
  const bf16_t* b = in.b;
  const int64_t row = Packed ? 2 : in.row, pair = Packed ? 2 * kBlockRows : in.pair;
  // The next panels follow these in memory.
  const int64_t near = in.pairs - kPairsAhead, next = Panels * in.panel - in.pairs * 2 * kPanelColumns;
  for (int64_t k = 0; k < in.pairs; ++k, a += pair, b += 2 * kPanelColumns) {
    const bf16_t* const ahead = b + kPairsAhead * 2 * kPanelColumns + (k < near ? 0 : next);
#pragma GCC unroll 4
    for (int p = 0; p < Panels; ++p) __builtin_prefetch(ahead + p * in.panel, 0, 2);
    Pairs right[kVecs];
#pragma GCC unroll 16
    for (int v = 0; v < kVecs; ++v)
      right[v] = load_pairs(b + (v / kPanelVecs) * in.panel + (v % kPanelVecs) * 2 * Vec::kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const Pairs left = splat_pair(a + r * row);
#pragma GCC unroll 16
      for (int v = 0; v < kVecs; ++v) acc[r][v] = dot_pairs(acc[r][v], left, right[v]);
    }
  }
}

/// Adds a tile to `sums` [Rows][row]; the first k block starts from zero and ignores the old contents. Sums pass
/// through memory even if k is not blocked: 48 loads and stores beside thousands of products, for a third of the code
/// to compile.
template <int Rows, int Panels, bool Packed>
__attribute__((noinline)) void run_tile(const TileInput& in, float* sums, int64_t row, bool first) {
  constexpr int kVecs = Panels * kPanelVecs;
  Vec acc[Rows][kVecs];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < kVecs; ++v) acc[r][v] = first ? zero() : load(sums + r * row + v * Vec::kLanes);
  }
  multiply_tile<Rows, Panels, Packed>(in, acc);
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < kVecs; ++v) store(sums + r * row + v * Vec::kLanes, acc[r][v]);
  }
}

/// A tile of 1..kTileRows unpacked rows.
template <int Panels, int Rows = kTileRows>
void run_rows(int64_t rows, const TileInput& in, float* sums, int64_t row, bool first) {
  if (rows == Rows) return run_tile<Rows, Panels, false>(in, sums, row, first);
  if constexpr (Rows > 1) return run_rows<Panels, Rows - 1>(rows, in, sums, row, first);
}

/// Destination of finished sums.
struct Output {
  void* out;           // row 0 of the first column
  int64_t row;         // in elements
  const bf16_t* bias;  // of the first column, or null
  float scale_a, scale_b;
  int64_t columns;  // valid columns, from the first
  DType dtype;
};
template <class T>
__attribute__((noinline)) void finish_rows_as(const Output& o, const float* sums, int64_t sums_row, int64_t begin,
                                              int64_t rows) {
  const int64_t columns = o.columns < sums_row ? o.columns : sums_row;
  for (int64_t r = 0; r < rows; ++r, sums += sums_row) {
    T* y = static_cast<T*>(o.out) + (begin + r) * o.row;
    for (int64_t c = 0; c < columns; c += Vec::kLanes) {
      const int64_t left = columns - c;
      Vec x = load(sums + c) * splat(o.scale_a) * splat(o.scale_b);
      if (left >= Vec::kLanes) {
        if (o.bias) x += load(o.bias + c);
        store(y + c, x);
      } else {
        if (o.bias) x += load_n(o.bias + c, left);
        store_n(y + c, x, left);
      }
    }
  }
}

/// The output type is a run-time value: products take far longer than this branch, and there are a third as many
/// artifacts.
inline void finish_rows(const Output& o, const float* sums, int64_t sums_row, int64_t begin, int64_t rows) {
  if (o.dtype == DType::kBF16) return finish_rows_as<bf16_t>(o, sums, sums_row, begin, rows);
  if (o.dtype == DType::kF16) return finish_rows_as<f16_t>(o, sums, sums_row, begin, rows);
  finish_rows_as<float>(o, sums, sums_row, begin, rows);
}

/// Rows of A of one task: full blocks are packed, the remaining rows are unpacked (k contiguous).
struct RowsOfA {
  const bf16_t* blocks;  // block i of kBlockRows rows at blocks + i * block; null: none is packed
  int64_t block;         // in elements
  int64_t packed_rows;   // rows before this one are in blocks
  const bf16_t* rows;    // row r >= packed_rows at rows + r * row
  int64_t row;
};

/// Points a tile at rows [r, ...) from pair k on; true when they are packed.
FI_VEC_INLINE bool point_at_rows(const RowsOfA& a, int64_t r, int64_t k, TileInput& in) {
  if (r + kTileRows <= a.packed_rows) {
    in.a = a.blocks + r / kBlockRows * a.block + (k * kBlockRows + r % kBlockRows) * 2;
    return true;
  }
  in.a = a.rows + r * a.row + 2 * k;
  in.row = a.row;
  in.pair = 2;
  return false;
}

/// One K block of `Panels` adjacent panels: rows [begin, end) of A times `in.b`. `last` finishes them.
struct KBlock {
  int64_t k;  // first pair
  bool first, last;
};
template <int Panels>
void multiply_rows(const RowsOfA& a, int64_t begin, int64_t end, KBlock block, TileInput in, float* sums,
                   const Output& out) {
  constexpr int64_t kRow = Panels * kPanelColumns;
  const bool blocked = !(block.first && block.last);  // otherwise every tile may use the same sums
  for (int64_t r = begin; r < end;) {
    const int64_t rows = end - r < kTileRows ? end - r : kTileRows;
    float* const tile_sums = sums + (blocked ? (r - begin) * kRow : 0);
    if (point_at_rows(a, r, block.k, in))
      run_tile<kTileRows, Panels, true>(in, tile_sums, kRow, block.first);
    else
      run_rows<Panels>(rows, in, tile_sums, kRow, block.first);
    if (block.last) finish_rows(out, tile_sums, kRow, r, rows);
    r += rows;
  }
}

/// The same with scales: each K block's partial sum is scaled by rows[r] * columns[c]. One accumulation chain inside a
/// block, then one FMA a block, in ascending order.
enum class Scales {
  kBoth,              // of rows and of columns
  kColumns,           // of columns
  kColumnsAndMinima,  // and the columns' minima, multiplied by the sum of A's row
};
struct TileScale {
  const float* rows;     // of the tile
  const float* columns;  // of the panels
  const float* minima;
  const float* row_sums;
};
template <int Rows, int Panels, bool Packed, Scales S>
__attribute__((noinline)) void run_scaled_tile(const TileInput& in, TileScale scale, float* sums, int64_t row,
                                               bool first) {
  constexpr int kVecs = Panels * kPanelVecs;
  Vec acc[Rows][kVecs];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < kVecs; ++v) acc[r][v] = zero();
  }
  multiply_tile<Rows, Panels, Packed>(in, acc);
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < kVecs; ++v) {
      float* const sum = sums + r * row + v * Vec::kLanes;
      Vec factor = load(scale.columns + v * Vec::kLanes);
      if constexpr (S == Scales::kBoth) factor = splat(scale.rows[r]) * factor;
      Vec total = fma(acc[r][v], factor, first ? zero() : load(sum));
      if constexpr (S == Scales::kColumnsAndMinima)
        total = fma(splat(scale.row_sums[r]), load(scale.minima + v * Vec::kLanes), total);
      store(sum, total);
    }
  }
}
template <int Panels, Scales S, int Rows = kTileRows>
void run_scaled_rows(int64_t rows, const TileInput& in, TileScale scale, float* sums, int64_t row, bool first) {
  if (rows == Rows) return run_scaled_tile<Rows, Panels, false, S>(in, scale, sums, row, first);
  if constexpr (Rows > 1) return run_scaled_rows<Panels, S, Rows - 1>(rows, in, scale, sums, row, first);
}

/// `factors(r)` are the factors of row r in this K block.
struct RowFactors {
  float scale, sum;
};
template <int Panels, Scales S, class Factors>
void multiply_scaled_rows(const RowsOfA& a, int64_t begin, int64_t end, KBlock block, TileInput in, Factors factors,
                          const float* columns, const float* minima, float* sums) {
  constexpr int64_t kRow = Panels * kPanelColumns;
  for (int64_t r = begin; r < end; r += kTileRows) {
    const int64_t rows = end - r < kTileRows ? end - r : kTileRows;
    float scales[kTileRows], row_sums[kTileRows];
    for (int64_t i = 0; i < rows; ++i) {
      const RowFactors f = factors(r + i);
      scales[i] = f.scale, row_sums[i] = f.sum;
    }
    const TileScale scale{scales, columns, minima, row_sums};
    float* const tile_sums = sums + (r - begin) * kRow;
    if (point_at_rows(a, r, block.k, in))
      run_scaled_tile<kTileRows, Panels, true, S>(in, scale, tile_sums, kRow, block.first);
    else
      run_scaled_rows<Panels, S>(rows, in, scale, tile_sums, kRow, block.first);
  }
}

}  // namespace flashinfer::cpu
