// SPDX-License-Identifier: Apache-2.0
// Parameters of the kernels of block formats. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"
#include "flashinfer/kernels/common/scale_layout.h"

namespace flashinfer {

struct BlockQuantConfig {
  DType dtype;                      // of x: f16, bf16, f32, or e4m3 with 4-bit codes
  unsigned char block;              // elements that share a scale: 16 or 32
  unsigned char ue8m0;              // scales are powers of two, else e4m3
  unsigned char fp8;                // codes are e4m3, else e2m1
  unsigned char gated;              // x has rows of 2k: silu(first half) * second half, rounded to dtype, is quantised
  unsigned char four_over_six = 0;  // 1: the better of two scales, + 2: by squares, + 4: with fast mathematics

  static constexpr const char* kName = "flashinfer::BlockQuantConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("block", block);
    v("ue8m0", ue8m0);
    v("fp8", fp8);
    v("gated", gated);
    v("four_over_six", four_over_six);
  }
  friend constexpr bool operator==(const BlockQuantConfig&, const BlockQuantConfig&) = default;
};

struct BlockQuantParams {
  const void* x;
  uint8_t* codes;
  uint8_t* scales;
  int64_t batches, rows, k;                    // k: columns that are quantised; x has 2k when gated
  int64_t padded_k;                            // columns of codes, those from k on are 0
  int64_t padded_rows;                         // rows of scales of a batch, those from `rows` on are 0
  int64_t batch_stride, row_stride;            // of x, in elements
  int64_t code_batch_stride, code_row_stride;  // in bytes
  int64_t scale_batch_stride;
  SfLayout layout;
  int32_t shuffle;      // rows of each block of 16 or 32 are permuted (kernels/cpu/block.h, shuffled_from); 0: not
  const float* encode;  // factor of amax / 6; of batch b and row r: encode[b * encode_batch + r * encode_row]; null: 1
  int64_t encode_batch, encode_row;
  const int32_t* mask;          // [batches] valid rows, the others get zeros; null: all
  float* token_scale;           // [rows]: the reciprocal of the row's factor, token_most / amax; null: none
  float token_most, token_out;  // e4m3_max * 6; token_scale is stored times token_out
  int64_t rows_per_task;        // of batches * padded_rows
};

struct BlockDequantConfig {
  unsigned char fp8;    // codes are e4m3, else e2m1
  unsigned char ue8m0;  // scales are powers of two, else e4m3

  static constexpr const char* kName = "flashinfer::BlockDequantConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("fp8", fp8);
    v("ue8m0", ue8m0);
  }
  friend constexpr bool operator==(const BlockDequantConfig&, const BlockDequantConfig&) = default;
};
struct BlockDequantParams {
  const uint8_t* codes;
  const uint8_t* scales;
  float* y;
  int64_t rows, k, block;
  int64_t code_stride, y_stride;
  int64_t scale_row_stride, scale_column_stride;  // of a linear layout
  SfLayout layout;
  float global;
  int64_t rows_per_task;
};

}  // namespace flashinfer
