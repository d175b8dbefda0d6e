// SPDX-License-Identifier: Apache-2.0
// The layouts of packed weights: the header that all of them have, and the elements of bf16, e4m3 and FP4
// (gguf_layout.h has those of GGUF blocks). Freestanding.
//
// A packed weight is [panels, lines, 64 bytes] with a panel for each 16 columns; the first line of a panel is its
// header. So it is an ordinary tensor that identifies itself, and a slice of panels is a packed weight of fewer
// columns.
#pragma once
#include <stdint.h>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/gemm/kernels/params.h"

namespace flashinfer {

inline constexpr int64_t kPanelLine = 64, kPanelWidth = 16;
inline constexpr int64_t kPackedWidth = kPanelLine / 2;  // elements of a line of bf16
constexpr int64_t packed_panels(int64_t n) { return ceil_div(n, kPanelWidth); }

// ---- the header ----
// 32 words of 16 bits, little-endian, 0x0100 | byte: bf16 numbers of about 2^-125, neither NaN nor infinity and
// invisible in statistics. The bytes: 8 of magic, columns in the panel (1..16), 8 of k, little-endian, the format; the
// rest is 0.
inline constexpr unsigned char kPackedMagic[8] = {'F', 'I', 'm', 'm', 'W', '1', 16, 2};
struct PackedHeader {
  int64_t columns = 0;  // in the panel; 0: the line is no header
  int64_t k = 0;
  GemmFormat format = GemmFormat::kBF16;
};
inline void write_packed_header(void* line, const PackedHeader& h) {
  auto* const to = static_cast<uint8_t*>(line);
  for (int i = 0; i < kPanelLine; i += 2) to[i] = 0, to[i + 1] = 1;
  for (int i = 0; i < 8; ++i) to[2 * i] = kPackedMagic[i];
  to[2 * 8] = static_cast<uint8_t>(h.columns);
  for (int i = 0; i < 8; ++i) to[2 * (9 + i)] = static_cast<uint8_t>(h.k >> (8 * i));
  to[2 * 17] = static_cast<uint8_t>(h.format);
}
inline PackedHeader read_packed_header(const void* line) {
  const auto* const from = static_cast<const uint8_t*>(line);
  for (int i = 0; i < 8; ++i)
    if (from[2 * i] != kPackedMagic[i] || from[2 * i + 1] != 1) return {};
  PackedHeader h{.columns = from[2 * 8], .format = static_cast<GemmFormat>(from[2 * 17])};
  if (h.columns > kPanelWidth) return {};
  for (int i = 0; i < 8; ++i) h.k |= static_cast<int64_t>(from[2 * (9 + i)]) << (8 * i);
  return h;
}

// ---- elements of bf16, e4m3 and FP4 ----
// After the header a line for each four bytes along k, which it holds for all 16 columns: a GEMV reads the weight
// sequentially, and products of several rows convert lines on the fly.
// bf16: column c's pair of k at elements 2 c and 2 c + 1. FP4: column c's bytes at 4 c. e4m3: within a quarter (four
// columns) first their lower two bytes, then the upper ones, so that unpacking bytes gives a k pair of each. k is
// padded with zeros, bf16 to a multiple of 2, the others to one of 32. Scale factors of one byte: SfLayout::kPanels.
/// Elements in four bytes.
constexpr int64_t packed_elements(GemmFormat f) { return f == GemmFormat::kBF16 ? 2 : f == GemmFormat::kFp4 ? 8 : 4; }
/// Lines of a panel, with its header.
constexpr int64_t packed_lines(GemmFormat f, int64_t k) {
  return 1 + (f == GemmFormat::kBF16 ? ceil_div(k, 2) : ceil_div(k, 32) * (32 / packed_elements(f)));
}
/// Position in the line of byte `i` (0..3) of a column; e4m3 and FP4.
constexpr int64_t packed_place(GemmFormat f, int64_t column, int64_t i) {
  return f == GemmFormat::kFp4 ? column * 4 + i : column / 4 * 16 + i / 2 * 8 + column % 4 * 2 + i % 2;
}

}  // namespace flashinfer
