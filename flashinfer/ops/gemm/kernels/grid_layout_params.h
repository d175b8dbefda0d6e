// SPDX-License-Identifier: Apache-2.0
// Config and Params of the copy that brings f32 scales of blocks into another layout. Freestanding.
#pragma once
#include <stdint.h>

namespace flashinfer {

struct GridLayoutConfig {
  int threads;  // a thread takes one line and kBlocks blocks of k

  static constexpr int kBlocks = 8;  // 32 bytes where a line's scales are neighbours
  static constexpr const char* kName = "flashinfer::GridLayoutConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("threads", threads);
  }
  friend constexpr bool operator==(const GridLayoutConfig&, const GridLayoutConfig&) = default;
};
struct GridLayoutParams {
  struct Operand {
    const float* from;
    float* to;
    int64_t from_line, from_block, to_line, to_block;  // strides in elements
    uint32_t lines;                                    // of `to`; 0: nothing to do
    uint32_t share;                                    // so many of them have the scales of one line of `from`
    uint32_t blocks, padded;                           // blocks of k, and with the zeros behind them
  } of[2];
};

}  // namespace flashinfer
