// SPDX-License-Identifier: Apache-2.0
// Block formats of GGUF files, and the packed layout of prepare_gguf_weights. Freestanding.
//
// A row of a weight is a row of blocks. All scales are f16. Q4_0, Q4_1: nibbles, element i in the low half and i + 16
// in the high half of byte i. K formats: the interleavings are described at their readers (kernels/cpu/gguf_sources.h).
#pragma once
#include <stdint.h>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/gemm/kernels/packed_layout.h"

namespace flashinfer {

struct GgufFormat {
  const char* name;
  GemmFormat format;
  int64_t elements, bytes;  // of a block
  int64_t grid;             // elements that share a scale
  bool minimum;             // value = scale * q - or + minimum
  bool panels;              // supported by prepare_gguf_weights
};
inline constexpr GgufFormat kGgufFormats[] = {
    {"Q4_0", GemmFormat::kQ4_0, 32, 18, 32, false, true},    {"Q4_1", GemmFormat::kQ4_1, 32, 20, 32, true, true},
    {"Q8_0", GemmFormat::kQ8_0, 32, 34, 32, false, true},    {"Q4_K", GemmFormat::kQ4_K, 256, 144, 32, true, false},
    {"Q6_K", GemmFormat::kQ6_K, 256, 210, 16, false, false},
};
constexpr const GgufFormat* gguf_format(GemmFormat f) {
  for (const GgufFormat& g : kGgufFormats)
    if (g.format == f) return &g;
  return nullptr;
}

/// Blocks to floats.
struct GgufConfig {
  GemmFormat from;
  DType to;  // f32, bf16 or f16

  static constexpr const char* kName = "flashinfer::GgufConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("from", from);
    v("to", to);
  }
  friend constexpr bool operator==(const GgufConfig&, const GgufConfig&) = default;
};
struct GgufParams {
  const uint8_t* blocks = nullptr;
  int64_t row = 0;  // bytes
  void* to = nullptr;
  int64_t to_row = 0;  // elements
  int64_t k = 0;
};

// ---- packed layout: panels of 16 columns ----
// u8 [panels, lines, 64]: a header line; the quants, block after block; the f16 scales [block][16]; with Q4_1 the f16
// minima [block][16]; the rest of the last line is 0. Quants of a block of 32 k: Q8_0 8 lines of two pairs, 8 bytes of
// one and 8 of the other alternately, so that unpacking bytes within 128 bits leaves both in order (gguf_byte_place);
// the 4-bit formats 4 lines of words [16 columns][2], whose nibble t (lowest first) is of pair 4 * line + t. So a line
// holds a few k pairs of all columns, as in panels of bf16, and the number of bytes is that of the file.
constexpr int64_t gguf_quant_bytes(GemmFormat f) {
  return f == GemmFormat::kQ8_0 ? 512 : 256;
}  // of a block of a panel
/// Of Q8_0's word (column * 2 + k % 2) of a pair, in the block.
constexpr int64_t gguf_byte_place(int64_t pair, int64_t word) {
  return pair / 2 * 64 + word / 8 * 16 + pair % 2 * 8 + word % 8;
}
constexpr int64_t gguf_scale_bytes(GemmFormat f) { return f == GemmFormat::kQ4_1 ? 64 : 32; }
constexpr int64_t gguf_lines(GemmFormat f, int64_t k) {
  return 1 + ceil_div(k / 32 * (gguf_quant_bytes(f) + gguf_scale_bytes(f)), kPanelLine);
}

}  // namespace flashinfer
