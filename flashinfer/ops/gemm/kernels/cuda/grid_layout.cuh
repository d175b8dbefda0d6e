// SPDX-License-Identifier: Apache-2.0
// f32 scales of blocks, copied into the layout that cuBLASLt reads. Neighbouring threads take neighbouring lines, and
// each of them the blocks of k that share a sector where a line's scales are neighbours.
#pragma once
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/ops/gemm/kernels/grid_layout_params.h"

namespace flashinfer::cu {

template <GridLayoutConfig C>
FI_GLOBAL_FN void grid_layout(const GridLayoutParams& p) {
  depend_wait();
  const GridLayoutParams::Operand& o = p.of[block_z()];
  const uint32_t line = block_x() * static_cast<uint32_t>(C.threads) + thread_x();
  if (line < o.lines) {
    constexpr int kBlocks = GridLayoutConfig::kBlocks;
    const uint32_t first = block_y() * kBlocks;
    const float* from = o.from + line / o.share * o.from_line + first * o.from_block;
    float* to = o.to + line * o.to_line + first * o.to_block;
    float scales[kBlocks];  // all loads are under way before the first store
#pragma unroll
    for (int i = 0; i < kBlocks; ++i) scales[i] = first + i < o.blocks ? from[i * o.from_block] : 0.0f;
#pragma unroll
    for (int i = 0; i < kBlocks; ++i)
      if (first + i < o.padded) to[i * o.to_block] = scales[i];
  }
  depend_launch();
}

}  // namespace flashinfer::cu
