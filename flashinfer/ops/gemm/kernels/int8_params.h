// SPDX-License-Identifier: Apache-2.0
// Parameters of products of small integers times scales of blocks along k: u8 x s8 with exact sums. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/ops/gemm/kernels/params.h"

namespace flashinfer {

/// Contribution of a row of A to a group of k that shares scales: its scale, the start value of the integer sum (minus
/// the zero point of B times the sum of the row's integers), and scale times that sum, which multiplies B's minimum.
struct ByteRow {
  float scale;
  int32_t start;
  float sum;
};

/// One artifact for each form of B.
struct ByteGemmConfig {
  GemmFormat b;
  unsigned char packed_b;  // packed by prepare_gguf_weights; else rows as in the file

  static constexpr const char* kName = "flashinfer::ByteGemmConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("b", b);
    v("packed_b", packed_b);
  }
  friend constexpr bool operator==(const ByteGemmConfig&, const ByteGemmConfig&) = default;
};

/// A comes in groups of `width` rows (8, or m when that is less): quad q (four k) of row r at ((q * width) + r) * 4 of
/// its group, factors of group of k g at g * width + r. Which k a quad holds: byte_order.
struct ByteGemmParams {
  const int8_t* a = nullptr;
  const ByteRow* a_rows = nullptr;
  int64_t width = 0;
  const uint8_t* b = nullptr;
  int64_t b_line = 0;  // bytes between panels (b of FP4: after their headers) or rows
  void* out = nullptr;
  int64_t out_row = 0;
  int64_t m = 0, n = 0, k = 0;
  int64_t rows_per_task = 0, panels_per_task = 0;  // rows: a multiple of 8
  DType out_dtype = DType::kBF16;
  // FP4 only; k is rounded up to 32 there:
  int64_t b_k = 0;  // k of B
  ScaleFactors b_sf{};
  float scale = 1;
};

/// GGUF: task t quantises the rows of group t, each in blocks of 32: scale = amax / 127, q = x * (127 / amax) rounded
/// to nearest even. A block with amax below 1e-36 is treated as 0, one with an infinity or a NaN as NaN.
struct QuantizeRowsParams {
  const bf16_t* from = nullptr;
  int64_t line = 0, step = 0;
  int64_t m = 0, k = 0, width = 0;
  int8_t* to = nullptr;
  ByteRow* rows = nullptr;
  int32_t zero = 0;           // of B
  int32_t groups_per_32 = 1;  // 1 or 2
};
struct QuantizeRowsConfig {
  unsigned char nibbles;  // byte_order

  static constexpr const char* kName = "flashinfer::QuantizeRowsConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("nibbles", nibbles);
  }
  friend constexpr bool operator==(const QuantizeRowsConfig&, const QuantizeRowsConfig&) = default;
};

/// Products of FP4 matrices: elements of both are halves of integers, so that a block's sum is exact too and is then
/// scaled by (scale of a x scale of b). Eight k are the low nibbles of four bytes, then the high ones; twice an e2m1
/// number plus 12 is a u8.
struct Fp4GemmConfig {
  unsigned char groups;    // blocks in 32 k: 2 (NVFP4) or 1 (MXFP4)
  unsigned char packed_b;  // packed by prepare_quantized_weights

  static constexpr const char* kName = "flashinfer::Fp4GemmConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("groups", groups);
    v("packed_b", packed_b);
  }
  friend constexpr bool operator==(const Fp4GemmConfig&, const Fp4GemmConfig&) = default;
};
/// Task t converts the rows of group t to the form of ByteGemmParams.
struct Fp4RowsParams {
  const uint8_t* from = nullptr;
  int64_t line = 0;  // bytes
  int64_t m = 0, k = 0, width = 0;
  int8_t* to = nullptr;
  ByteRow* rows = nullptr;
  ScaleFactors sf{};
};

/// Position of element i of 32 among the 8 quads, as quad * 4 + byte. Nibble panels give even pairs of eight k by a
/// mask and odd ones by a shift and a mask: 0 4 1 5, then 2 6 3 7.
constexpr int byte_order(bool nibbles, int i) {
  return nibbles ? (i / 8 * 2 + i / 2 % 2) * 4 + i % 2 * 2 + i / 4 % 2 : i;
}
/// Whether a format's quads have that order.
constexpr bool nibble_order(GemmFormat f) { return f != GemmFormat::kQ8_0; }
/// Added to a format's quants to make them u8.
constexpr int32_t byte_zero(GemmFormat f) {
  switch (f) {
    case GemmFormat::kQ4_0: return 8;
    case GemmFormat::kQ8_0: return 128;
    case GemmFormat::kQ6_K: return 32;
    default: return 0;
  }
}

}  // namespace flashinfer
