// SPDX-License-Identifier: Apache-2.0
// Config and Params of the products on a GPU. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/int_math.h"
#include "flashinfer/core/scalar.h"
#include "flashinfer/kernels/common/scale_layout.h"
#include "flashinfer/ops/gemm/kernels/params.h"

namespace flashinfer {

/// Which rows of A belong together and to which matrix of B.
enum class GemmGroups : unsigned char {
  kBatch,    // matrix i of A and of B; of A's the first index[i] rows, where there is an index
  kOffsets,  // rows [index[g], index[g + 1])
  kLengths,  // index[g] rows after those of the groups before
  kRows,     // row r belongs to matrix index[r]; -1: to none
};
/// Type of the scale factors of one byte.
enum class GemmFactor : unsigned char { kNone, kE4M3, kUE8M0 };

/// One artifact for each pair of formats, tile and kind of groups. A block computes rows x columns of the result, in
/// steps of `depth` along k; its warps divide rows, columns and each step.
struct GemmCudaConfig {
  GemmFormat a, b;
  unsigned char half;  // elements are converted to f16, else to bf16
  // 1: lines are loaded in pieces of 8 or 16 bytes, GGUF's in halves; 16: Q4_K in pieces of 16 bytes; 0: element by
  // element.
  unsigned char a_wide, b_wide;
  GemmFactor a_factor, b_factor;
  unsigned char tensor;  // on tensor cores; else by multiply-adds of f32, for GPUs before sm_80
  GemmGroups groups;
  unsigned char gather;  // A's lines are named by an index
  unsigned char warps_m, warps_n, warps_k;
  unsigned char spread;  // a block's 32 columns are 8 of each 32 of 128, whose scale factors are whole sectors (k128x4)
  short shuffled;        // B's lines and their scale factors are interleaved (GemmCudaOperand: lines alone)
  short grid;            // elements along k that share a scale of f32 (BlockScales, GGUF blocks); 0: none
  short rows, columns, depth, threads;

  /// Up to 255 registers a thread: left alone, ptxas takes fewer for some formats and spills.
  constexpr int min_blocks() const { return threads < 256 ? 256 / threads : 1; }

  static constexpr const char* kName = "flashinfer::GemmCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("a", a);
    v("b", b);
    v("half", half);
    v("a_wide", a_wide);
    v("b_wide", b_wide);
    v("a_factor", a_factor);
    v("b_factor", b_factor);
    v("tensor", tensor);
    v("groups", groups);
    v("gather", gather);
    v("warps_m", warps_m);
    v("warps_n", warps_n);
    v("warps_k", warps_k);
    v("spread", spread);
    v("shuffled", shuffled);
    v("grid", grid);
    v("rows", rows);
    v("columns", columns);
    v("depth", depth);
    v("threads", threads);
  }
  friend constexpr bool operator==(const GemmCudaConfig&, const GemmCudaConfig&) = default;

  /// Pairs along k are of elements four apart (operand.cuh).
  constexpr bool apart() const {
    return a == GemmFormat::kFp4 || a == GemmFormat::kInt4 || b == GemmFormat::kFp4 || b == GemmFormat::kInt4;
  }
  /// Blocks of `grid` in one step.
  constexpr int grid_blocks() const { return grid == 0 ? 0 : depth > grid ? depth / grid : 1; }
  constexpr bool minima() const { return b == GemmFormat::kQ4_1 || b == GemmFormat::kQ4_K; }
  /// Bytes of one of the two stages: tiles of A and B in 16 bits, then the scales of their lines and B's minima.
  constexpr int tile_bytes() const { return (rows + columns) * depth * 2; }
  constexpr int stage_bytes() const { return tile_bytes() + grid_blocks() * (rows + columns * (minima() ? 2 : 1)) * 4; }
  constexpr int shared_bytes() const { return 2 * stage_bytes(); }
};

/// Where line l lies where each 32 are interleaved: every fourth from the first on, then from the second.
constexpr int64_t interleaved_line(int64_t l) { return l / 32 * 32 + l % 4 * 8 + l % 32 / 4; }

/// Lines along k of one operand.
struct GemmCudaOperand {
  const void* data = nullptr;
  int64_t line = 0, step = 0, batch = 0;  // elements; FP4, int4, GGUF: bytes
  int64_t block_stride = 0;               // between blocks of 2^block_shift elements along k; 0: there are none
  int32_t block_shift = 31;
  int32_t interleaved = 0;           // lines within each 32 (GemmParams::b_interleaved)
  const uint8_t* factors = nullptr;  // ScaleFactors
  int64_t factor_batch = 0, factor_columns = 0;
  int32_t factor_shift = 0;  // elements that share one: 2^factor_shift
  int32_t factor_quad = 4;   // bytes from a group of four columns to the next
  SfLayout factor_layout = SfLayout::kLinear;
  const void* grid = nullptr;  // BlockScales
  int64_t grid_line_stride = 0, grid_k_stride = 0, grid_batch = 0;
  int64_t grid_quad = 0;  // from a group of four blocks along k to the next
  int32_t grid_lines = 1;
  DType grid_dtype = DType::kF32;
  int64_t grid_tiles = 0;
};

struct GemmCudaParams {
  GemmCudaOperand a, b;
  int32_t m, n, k;      // m: rows of a matrix of A, or of all groups
  int32_t matrices;     // of B
  int32_t groups;       // kOffsets, kLengths
  int32_t gather_last;  // lines of A that `gather` may name
  const void* index;    // GemmGroups
  const void* weights;  // matrix of each group; null: the group's number
  const int32_t* gather;
  unsigned char index_wide, weights_wide;  // of int64_t, else int32_t
  unsigned char factor_pad;  // not 0: A's scales of group g begin at row (first row + (pad - 1) g) / pad * pad
  unsigned char
      aligned;      // neighbours of the result, 1, 2 or 4, that are aligned together in every row; 4: no bias, beta 0
  DType out_dtype;  // bf16, f16 or f32
  const float *alpha_a, *alpha_b, *alpha_group;  // null: 1
  int64_t alpha_stride;
  float scale, beta;  // out = scale * alphas * product + bias + beta * out
  const bf16_t* bias;
  void* out;
  int64_t out_row, out_batch;
};

}  // namespace flashinfer
