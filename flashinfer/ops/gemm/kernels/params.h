// SPDX-License-Identifier: Apache-2.0
// Config and Params of the matrix-product kernels. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/int_math.h"
#include "flashinfer/core/scalar.h"
#include "flashinfer/kernels/common/scale_layout.h"

namespace flashinfer {

/// Format of an operand's elements. Tiles multiply bf16; packing converts, exactly. The numbers are in the headers of
/// packed weights (packed_layout.h), so new formats come last.
enum class GemmFormat : unsigned char {
  kBF16,
  kE4M3,
  kE5M2,
  kFp4,   // e2m1, two a byte along k
  kInt4,  // two's complement, two a byte along k; B only
  kF16,   // A and B: each number as the sum of two bf16 (GemmParams::split_k)
  kQ4_0,  // from here on rows of GGUF blocks (gguf_layout.h), B only, always with a grid
  kQ4_1,
  kQ8_0,
  kQ4_K,
  kQ6_K,
};
constexpr bool is_gguf(GemmFormat f) { return f >= GemmFormat::kQ4_0; }

/// One artifact for each form of B. Types of the output, extents, strides, blocks, bias are run-time values.
struct GemmConfig {
  GemmFormat b;
  unsigned char packed_b;  // packed weight; else B is packed by blocks on the fly
  unsigned char grid;      // sums over blocks of k are scaled (BlockScales); else all of k is one sum

  static constexpr const char* kName = "flashinfer::GemmConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("b", b);
    v("packed_b", packed_b);
    v("grid", grid);
  }
  friend constexpr bool operator==(const GemmConfig&, const GemmConfig&) = default;
};

/// Scale factors of one byte for `block` elements along k, multiplied into the elements while packing: the products of
/// e2m1 and e4m3, and of any of these types and a power of two, are bf16 numbers (below 2^-126 they become 0, from
/// 2^128 on infinity).
struct ScaleFactors {
  const uint8_t* bytes = nullptr;  // null: none
  int64_t columns = 0;             // of the matrix, without padding
  int64_t batch = 0;               // bytes between batches
  int64_t first = 0;               // row of line 0
  int32_t block = 0;               // 16 or 32
  SfLayout layout = SfLayout::kLinear;
  unsigned char e8m0 = 0;  // else e4m3
};
/// f32 scales of blocks of lines x k: that of (line, k block) is p[(first + line) / lines * line_stride + block *
/// k_stride].
struct BlockScales {
  const float* p = nullptr;
  int64_t lines = 1, line_stride = 0, k_stride = 0, batch = 0, first = 0;
  // On a GPU alone: p points to numbers of this type; in the order of 128x4 with `tiles` columns, if not 0.
  DType dtype = DType::kF32;
  int64_t tiles = 0;
};

/// out[i, m, n] = (A[i] . B[i]) * scale_a * scale_b + bias; with a grid the sum over k blocks of (A . B) * a_grid *
/// b_grid. Task t is (batch, rows, panels) with panels fastest, so that tasks next to each other share rows of A.
struct GemmParams {
  const void* a_blocks = nullptr;           // packed rows (GemmPackParams), or null
  int64_t a_block = 0, a_batch_blocks = 0;  // elements between blocks, between batches
  int64_t packed_rows = 0;
  const void* a = nullptr;  // bf16 rows from packed_rows on, k contiguous
  int64_t a_row = 0, a_batch = 0;
  const void* b = nullptr;  // packed: panel p at p * b_panel (GGUF: after its header); else element (k, n) at k *
                            // b_k + n * b_n; FP4: bytes
  int64_t b_panel = 0, b_k = 0, b_n = 0, b_batch = 0;
  const void* bias = nullptr;  // bf16[n] or null
  void* out = nullptr;
  int64_t out_row = 0, out_batch = 0;
  int64_t batch = 0, m = 0, n = 0, k = 0;
  int64_t rows_per_task = 0, panels_per_task = 0;
  int64_t pairs_per_block = 0;  // k pairs between updates of the f32 scratch; >= all pairs: no scratch
  float scale_a = 1, scale_b = 1;
  DType out_dtype = DType::kBF16;  // bf16, f16 or f32
  // B of bf16, e4m3 or int4 as [k / b_block_k, n, b_block_k], and elements between blocks (int4: both count bytes); 0:
  // another layout
  int64_t b_block_k = 0, b_block_stride = 0;
  int64_t split_k = 0;              // f16: elements of a line; each takes 3 k, rounded up to 32 elements
  unsigned char b_interleaved = 0;  // rows within each 32 are interleaved (prepare_low_latency_gemm_weights)
  ScaleFactors b_sf{};
  BlockScales a_grid{}, b_grid{};
  int64_t grid_pairs = 0;         // k pairs of a block of the scale grid: divides 128
  const float* a_sums = nullptr;  // GGUF formats with minima: the sum of A's row over each block of 32 k, [m, k / 32]
};

/// Packing, one artifact for each source type.
struct GemmPackConfig {
  GemmFormat from;
  unsigned char rows;  // 1: A into blocks of rows and a tail of unpacked rows; 0: B into panels with headers

  static constexpr const char* kName = "flashinfer::GemmPackConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("from", from);
    v("rows", rows);
  }
  friend constexpr bool operator==(const GemmPackConfig&, const GemmPackConfig&) = default;
};
struct GemmPackParams {
  const void* from = nullptr;
  int64_t line = 0, step = 0,
          batch_stride = 0;  // elements (FP4: bytes) between rows of A (columns of B), along k, between batches
  void* to = nullptr;
  int64_t to_batch = 0;      // elements
  int64_t lines = 0, k = 0;  // of one batch
  int64_t tasks_per_batch = 0;
  ScaleFactors sf{};
  int64_t split_k = 0;    // as GemmParams
  int64_t plain_row = 0;  // rows of A without blocks: elements between them, even; 0: blocks of 8
};
/// k of a product of f16 numbers: each 32 of A become high, high, low parts and of B high, low, high ones, so that a.b
/// is summed without low times low, 2^-18 of it.
constexpr int64_t split_depth(int64_t k) { return ceil_div(k, 32) * 96; }

/// Task t is row t: to[t][k / 32] = sums over blocks of 32.
struct GemmSumsParams {
  const bf16_t* from = nullptr;
  int64_t line = 0, step = 0, k = 0;
  float* to = nullptr;
};

}  // namespace flashinfer
