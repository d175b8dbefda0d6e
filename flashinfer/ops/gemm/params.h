// SPDX-License-Identifier: Apache-2.0
// What the matrix-product kernels need to know, at compile time (Config) and at run time (Params). Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

/// One artifact a (type of B, form of B, type of the output). Extents, strides, blocks and bias are run-time values.
struct GemmConfig {
  DType b;                 // bf16, or e4m3/e5m2 as they are
  DType out;               // bf16, f16 or f32
  unsigned char packed_b;  // panels of prepare_mm_weights; else B is packed by blocks on the way

  static constexpr const char* kName = "flashinfer::GemmConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("b", b);
    v("out", out);
    v("packed_b", packed_b);
  }
  friend constexpr bool operator==(const GemmConfig&, const GemmConfig&) = default;
};

/// out[i, m, n] = (A[i] . B[i]) * scale_a * scale_b + bias. Task t is (batch, rows, panels) with panels fastest, so
/// that tasks next to each other share rows of A.
struct GemmParams {
  const void* a_blocks;             // packed rows (GemmPackParams), or null
  int64_t a_block, a_batch_blocks;  // elements between blocks, between batches
  int64_t packed_rows;
  const void* a;  // bf16 rows from packed_rows on, k contiguous
  int64_t a_row, a_batch;
  const void* b;  // packed: panel p at p * b_panel; else element (k, n) at k * b_k + n * b_n
  int64_t b_panel, b_k, b_n, b_batch;
  const void* bias;  // bf16[n] or null
  void* out;
  int64_t out_row, out_batch;
  int64_t batch, m, n, k;
  int64_t rows_per_task, panels_per_task;
  int64_t pairs_per_block;  // k pairs between visits to the f32 scratch; >= all pairs: no scratch
  float scale_a, scale_b;
};

/// Packing, one artifact a source type.
struct GemmPackConfig {
  DType from;          // bf16, e4m3, e5m2
  unsigned char rows;  // 1: A into blocks of rows and a tail of plain rows; 0: B into panels with headers

  static constexpr const char* kName = "flashinfer::GemmPackConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("from", from);
    v("rows", rows);
  }
  friend constexpr bool operator==(const GemmPackConfig&, const GemmPackConfig&) = default;
};
struct GemmPackParams {
  const void* from;
  int64_t line, step, batch_stride;  // elements between rows of A (columns of B), along k, between batches
  void* to;
  int64_t to_batch;  // elements
  int64_t lines, k;  // of one batch
  int64_t tasks_per_batch;
};

// ---- the layout of packed weights: bf16 [panels, 1 + ceil(k / 2), 32] ----
/// Line 0 of each panel describes it, so that a packed weight is an ordinary tensor that says what it is wherever it
/// goes, and a slice of panels is a packed weight again. It holds bytes b as the bf16 of bits 0x0100 | b (about 2^-125:
/// no NaN, no infinity, invisible in statistics): 8 of magic, 1 of columns in the panel (1..16), 8 of k, little-endian.
inline constexpr int kPackedMagicBytes = 8, kPackedHeaderBytes = 17;
inline constexpr unsigned char kPackedMagic[kPackedMagicBytes] = {'F', 'I', 'm', 'm', 'W', '1', 16, 2};
/// The first extent, given n; the second, given k; the third.
constexpr int64_t packed_panels(int64_t n) { return (n + 15) / 16; }
constexpr int64_t packed_lines(int64_t k) { return 1 + (k + 1) / 2; }
inline constexpr int64_t kPackedWidth = 32;

inline void write_packed_header(bf16_t* line, int64_t columns, int64_t k) {
  for (int i = 0; i < kPackedWidth; ++i) line[i].bits = 0x0100;
  for (int i = 0; i < kPackedMagicBytes; ++i) line[i].bits = static_cast<uint16_t>(0x0100 | kPackedMagic[i]);
  line[8].bits = static_cast<uint16_t>(0x0100 | columns);
  for (int i = 0; i < 8; ++i) line[9 + i].bits = static_cast<uint16_t>(0x0100 | ((k >> (8 * i)) & 0xff));
}
/// Columns in the panel, or 0 when the line is not such a header.
inline int64_t read_packed_header(const bf16_t* line, int64_t* k) {
  for (int i = 0; i < kPackedMagicBytes; ++i)
    if (line[i].bits != (0x0100 | kPackedMagic[i])) return 0;
  *k = 0;
  for (int i = 0; i < 8; ++i) *k |= static_cast<int64_t>(line[9 + i].bits & 0xff) << (8 * i);
  return line[8].bits & 0xff;
}

}  // namespace flashinfer
