// SPDX-License-Identifier: Apache-2.0
// Layouts of the scale factors of block formats, and the value of a scale byte: for quantisers, dequantisers and matrix
// products. A matrix of scales has one row for each row of elements and one column for each block of elements along k,
// one byte each.
#pragma once
#include <stdint.h>
#include <string.h>

#include "flashinfer/core/int_math.h"

namespace flashinfer {

/// The first three numbers are those of the public enumeration SfLayout.
enum class SfLayout : unsigned char {
  k128x4 = 0,   // tiles of 128 rows x 4 columns: 512 bytes, row r % 32 outermost, then (r / 32) % 4, then the column
  k8x4 = 1,     // tiles of 8 rows x 4 columns: 32 bytes, row by row
  kLinear = 2,  // row-major, nothing padded
  kPanels = 3,  // packed weights of prepare_quantized_weights: [rows / 16][columns][16], rows padded to 16 and
                // columns to 4
};

/// Rows and columns with padding; the bytes of a matrix are their product. Batches follow one another.
constexpr int64_t sf_padded_rows(SfLayout layout, int64_t rows) {
  return layout == SfLayout::kLinear ? rows
                                     : round_up(rows, layout == SfLayout::k128x4 ? 128
                                                      : layout == SfLayout::k8x4 ? 8
                                                                                 : 16);
}
constexpr int64_t sf_padded_columns(SfLayout layout, int64_t columns) {
  return layout == SfLayout::kLinear ? columns : round_up(columns, 4);
}
constexpr int64_t sf_bytes(SfLayout layout, int64_t rows, int64_t columns) {
  return sf_padded_rows(layout, rows) * sf_padded_columns(layout, columns);
}

/// Byte of (row, column); `columns` without padding. Equals sf_row_offset(row) + sf_column_offset(column), so a loop
/// over one of them can hoist the other.
constexpr int64_t sf_row_offset(SfLayout layout, int64_t row, int64_t columns) {
  const int64_t padded = sf_padded_columns(layout, columns);
  switch (layout) {
    case SfLayout::k128x4: return row / 128 * (128 * padded) + row % 32 * 16 + row % 128 / 32 * 4;
    case SfLayout::k8x4: return row / 8 * (8 * padded) + row % 8 * 4;
    case SfLayout::kPanels: return row / 16 * (16 * padded) + row % 16;
    default: return row * padded;
  }
}
constexpr int64_t sf_column_offset(SfLayout layout, int64_t column) {
  switch (layout) {
    case SfLayout::k128x4: return column / 4 * 512 + column % 4;
    case SfLayout::k8x4: return column / 4 * 32 + column % 4;
    case SfLayout::kPanels: return column * 16;
    default: return column;
  }
}
constexpr int64_t sf_offset(SfLayout layout, int64_t row, int64_t column, int64_t columns) {
  return sf_row_offset(layout, row, columns) + sf_column_offset(layout, column);
}

/// ue8m0: 2^(byte - 127), 0 included (a subnormal f32); 255 is NaN.
inline float e8m0_to_f32(uint8_t byte) {
  const uint32_t u = byte == 0 ? 0x00400000u : byte == 255 ? 0x7fc00000u : static_cast<uint32_t>(byte) << 23;
  float f;
  memcpy(&f, &u, sizeof f);
  return f;
}
/// Smallest power of two >= s (s >= 0), as quantisers write it. A subnormal s above 2^-127 gives 1, a smaller one 0;
/// 254 is the largest result.
inline uint8_t e8m0_round_up(float s) {
  uint32_t u;
  memcpy(&u, &s, sizeof u);
  const uint32_t exponent = u >> 23 & 0xff, mantissa = u & 0x7fffff;
  if (exponent >= 254) return static_cast<uint8_t>(exponent);
  if (exponent == 0) return mantissa > 0x400000;
  return static_cast<uint8_t>(exponent + (mantissa > 0));
}

/// e2m1 from its four bits (bit 3 is the sign, so 8 is -0). Two codes share a byte, the even element in the low nibble.
inline float e2m1_to_f32(uint8_t nibble) {
  constexpr float kMagnitude[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  const float x = kMagnitude[nibble & 7];
  return nibble & 8 ? -x : x;
}

}  // namespace flashinfer
