// SPDX-License-Identifier: Apache-2.0
// Packed weights of byte elements: the header of a panel of 16 columns, and the layout of prepare_quantized_weights.
// Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/gemm/kernels/params.h"

namespace flashinfer {

// ---- the header: the first line of every panel, so that a packed weight, and each of its panels, identifies itself
// ----
inline constexpr int64_t kPanelLine = 64, kPanelWidth = 16;
inline constexpr unsigned char kPanelMagic[8] = {'F', 'I', 'p', 'a', 'n', 'e', 'l', 16};
constexpr int64_t panels_of(int64_t n) { return ceil_div(n, kPanelWidth); }
/// Magic, format, columns in the panel (1..16), k in 8 bytes, little-endian.
inline void write_panel_header(uint8_t* line, GemmFormat f, int64_t columns, int64_t k) {
  for (int i = 0; i < kPanelLine; ++i) line[i] = 0;
  for (int i = 0; i < 8; ++i) line[i] = kPanelMagic[i];
  line[8] = static_cast<uint8_t>(f), line[9] = static_cast<uint8_t>(columns);
  for (int i = 0; i < 8; ++i) line[16 + i] = static_cast<uint8_t>(k >> (8 * i));
}
/// Columns of the panel, 0 when the line is not a header of that format.
inline int64_t read_panel_header(const uint8_t* line, GemmFormat f, int64_t* k) {
  for (int i = 0; i < 8; ++i)
    if (line[i] != kPanelMagic[i]) return 0;
  *k = 0;
  for (int i = 0; i < 8; ++i) *k |= static_cast<int64_t>(line[16 + i]) << (8 * i);
  return line[8] == static_cast<uint8_t>(f) && line[9] <= kPanelWidth ? line[9] : 0;
}

// ---- e4m3 and FP4 ----
// [panels, lines, 64] of bytes: the header, then a line for each four bytes along k, which it holds for all 16 columns:
// a GEMV reads the weight sequentially, and products of several rows convert lines on the fly. FP4: column c's bytes at
// 4 c. e4m3: within a quarter (four columns) first their lower two bytes, then the upper ones, so that unpacking bytes
// gives a k pair of each. k is padded with zeros to a multiple of 32. Scale factors of one byte: SfLayout::kPanels.
/// Elements in a word of four bytes.
constexpr int64_t word_elements(GemmFormat f) { return f == GemmFormat::kFp4 ? 8 : 4; }
constexpr int64_t word_lines(GemmFormat f, int64_t k) { return 1 + ceil_div(k, 32) * (32 / word_elements(f)); }
/// Position in the line of byte `i` (0..3) of a column's word.
constexpr int64_t word_place(GemmFormat f, int64_t column, int64_t i) {
  return f == GemmFormat::kFp4 ? column * 4 + i : column / 4 * 16 + i / 2 * 8 + column % 4 * 2 + i % 2;
}

}  // namespace flashinfer
