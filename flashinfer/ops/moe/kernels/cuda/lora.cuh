// SPDX-License-Identifier: Apache-2.0
// LoRA of a mixture of experts on a GPU: products of one row with a matrix of its own. A matrix is read once for each
// pair, in pieces of 16 bytes; lanes that share a dot product read neighbours.
#pragma once
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/page_table.h"
#include "flashinfer/kernels/cuda/rows.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "flashinfer/ops/moe/kernels/cuda_params.h"
#include "flashinfer/ops/moe/kernels/lora_cuda_params.h"

namespace flashinfer::cu {

struct MoeLoraPlace {
  int64_t token, adapter, expert;  // token -1: the pair does not count
};
FI_GLOBAL_FN MoeLoraPlace lora_place(const MoeLoraPairs& p, int64_t pair) {
  MoeLoraPlace at{strided_index(p.token, pair), 0, 0};
  if (at.token < 0 || at.token >= p.tokens) return {-1, 0, 0};
  at.adapter = strided_index(p.adapter, at.token);
  at.expert = strided_index(p.expert, pair);
  const bool counts = at.adapter >= 0 && at.adapter < p.adapters && at.expert >= 0 && at.expert < p.experts;
  if (!counts) at.token = -1;
  return at;
}

template <MoeCudaConfig C>
FI_GLOBAL_FN void moe_lora_tokens(const MoeLoraTokensParams& p) {
  depend_wait();
  const uint32_t i = block_x() * C.threads + thread_x();
  if (i < p.pairs.pairs) p.ids[i] = static_cast<int32_t>(lora_place(p.pairs, i).token);
  depend_launch();
}

/// Block (x, y, z): row x, a share of the outputs, slice z.
template <MoeLoraCudaConfig C>
FI_GLOBAL_FN void moe_lora_step(const MoeLoraCudaParams& p) {
  using X = scalar_of_t<C.x>;
  using W = scalar_of_t<C.w>;
  using Y = scalar_of_t<C.y>;
  constexpr int N = kPiece<W>, kRows = kMoeLoraRows;
  constexpr uint32_t kGroups = C.threads / C.lanes;
  depend_wait();
  const auto row = static_cast<int32_t>(block_x());
  const MoeLoraCudaSlice& s = p.slice[block_z()];
  const uint32_t group = thread_x() / C.lanes, rank = thread_x() % C.lanes;
  const int32_t first = static_cast<int32_t>(block_y() * kGroups * kRows + group);  // outputs first + j * kGroups
  float sum[kRows] = {};
  const int32_t begin = p.entry_of ? p.offsets[row] : row, end = p.entry_of ? p.offsets[row + 1] : row + 1;
  bool any = false;
  for (int32_t i = begin; i < end; ++i) {
    const int32_t pair = p.entry_of ? p.entry_of[i] : i;
    const MoeLoraPlace at = lora_place(p.pairs, pair);
    if (at.token < 0) continue;
    any = true;
    const X* const x = static_cast<const X*>(s.x) + (p.x_by_pair ? pair : at.token) * p.x_row;
    const W* const w = static_cast<const W*>(s.w) + at.adapter * s.adapter + at.expert * s.expert;
    float dot[kRows] = {};
    for (int32_t e = static_cast<int32_t>(rank) * N; e < s.k; e += C.lanes * N) {
      RawPiece<W, N> piece[kRows];
#pragma unroll
      for (int j = 0; j < kRows; ++j) {
        const int32_t o = first + j * static_cast<int32_t>(kGroups);
        load_raw<C.aligned != 0, N, Hint::kOnce>(w + (o < s.n ? o : 0) * s.row, e, o < s.n ? s.k : 0, piece[j]);
      }
      float v[N];
      load_piece<C.aligned != 0, N>(x, e, s.k, v);
#pragma unroll
      for (int j = 0; j < kRows; ++j)
#pragma unroll
        for (int t = 0; t < N; ++t) dot[j] = fmaf(piece[j][t], v[t], dot[j]);
    }
    const float weight = p.weights ? p.weights[pair * p.weight_stride] : 1.0f;
#pragma unroll
    for (int j = 0; j < kRows; ++j) sum[j] += weight * warp_reduce<C.lanes>(dot[j], Sum{});
  }
  const int64_t column = p.column.data ? strided_index(p.column, block_z()) : 0;
  const bool in_y = column >= 0 && column + s.n <= p.y_columns;
  Y* const y = static_cast<Y*>(s.y) + row * p.y_row + column;
  if (rank == 0 && in_y && (any || !p.add)) {
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      const int32_t o = first + j * static_cast<int32_t>(kGroups);
      if (o < s.n) y[o] = from_f32<Y>(sum[j] + (p.add ? to_f32(y[o]) : 0.0f));
    }
  }
  depend_launch();
}

}  // namespace flashinfer::cu
