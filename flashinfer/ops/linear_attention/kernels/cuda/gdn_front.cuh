// SPDX-License-Identifier: Apache-2.0
// gdn_fused_decode_step's gates and convolution in one launch. The step itself is a second one (gdn_decode.cuh): each
// of its blocks needs a whole row of the gates' product, and q and k, whose windows of the convolution are shared by
// the blocks of several heads, while one of them would overwrite them.
#pragma once
#include "flashinfer/ops/linear_attention/kernels/cuda/conv.cuh"
#include "flashinfer/ops/linear_attention/kernels/gdn/front_params.h"

namespace flashinfer::cu {
namespace linear {

/// 16 columns of 4 rows of the gates. Two threads take a row of w, the block's others the next ones; sums go over a
/// thread's rows, then lanes, then warps, whatever the number of rows of x.
template <int kThreads>
FI_GLOBAL_FN void gate_product(const GdnGatesParams& p, bool wide, uint32_t block) {
  constexpr int kRows = kGdnFrontRows, kColumns = kGdnFrontColumns, kPer = kColumns / 2, kDeep = kThreads / 2;
  const auto tiles = static_cast<uint32_t>(ceil_div(p.columns, int64_t{kColumns}));
  const int64_t first_row = static_cast<int64_t>(block / tiles) * kRows;
  const auto first = static_cast<int32_t>(block % tiles * kColumns), columns = static_cast<int32_t>(p.columns);
  const auto part = static_cast<int32_t>(thread_x() % 2) * kPer;
  const auto* const x = static_cast<const bf16_t*>(p.x);
  float sum[kRows][kPer] = {};
#pragma unroll 2
  for (int64_t d = thread_x() / 2; d < p.depth; d += kDeep) {
    float w[kPer];
    load_columns(DType::kBF16, p.w, d * p.w_row, first + part, columns, wide, w);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float by = first_row + r < p.rows ? to_f32(x[(first_row + r) * p.x_row + d]) : 0.0f;
#pragma unroll
      for (int c = 0; c < kPer; ++c) sum[r][c] += by * w[c];
    }
  }
  auto* const partial = reinterpret_cast<float*>(shared());  // [warps][rows][columns]
#pragma unroll
  for (int r = 0; r < kRows; ++r)
#pragma unroll
    for (int c = 0; c < kPer; ++c) {
      float all = sum[r][c];
#pragma unroll
      for (uint32_t distance = 16; distance > 1; distance /= 2) all += shuffle_xor(all, distance);
      if (lane() < 2) partial[(warp() * kRows + r) * kColumns + part + c] = all;
    }
  sync_threads();
  if (thread_x() >= kRows * kColumns) return;
  const int64_t row = first_row + thread_x() / kColumns, column = first + thread_x() % kColumns;
  if (row >= p.rows || column >= p.columns) return;
  float all = 0.0f;
#pragma unroll
  for (int w = 0; w < kThreads / 32; ++w) all += partial[w * kRows * kColumns + thread_x()];
  static_cast<bf16_t*>(p.out)[row * p.out_row + column] = from_f32<bf16_t>(all);
}

}  // namespace linear

template <ConvCudaConfig C>
FI_GLOBAL_FN void gdn_front(const GdnFrontParams& p) {
  depend_wait();
  const auto gate_blocks = static_cast<uint32_t>(p.gate_blocks);
  if (block_x() < gate_blocks) {
    linear::gate_product<C.threads>(p.gates, p.wide, block_x());
  } else {
    const auto blocks = static_cast<uint32_t>(ceil_div(p.conv.call.channels, int64_t{C.threads}));
    const uint32_t block = block_x() - gate_blocks;
    linear::conv_update<C>(p.conv, static_cast<int64_t>(block % blocks) * C.threads + thread_x(), block / blocks);
  }
  depend_launch();
}

}  // namespace flashinfer::cu
