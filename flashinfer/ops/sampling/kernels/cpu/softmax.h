// SPDX-License-Identifier: Apache-2.0
// Softmax on the CPU (softmax_row.h).
#pragma once
#include "flashinfer/ops/sampling/kernels/params.h"
#include "flashinfer/ops/sampling/kernels/softmax_row.h"

namespace flashinfer::cpu {

template <SamplingConfig C>
void softmax(const SoftmaxParams& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  const auto in = [&](int64_t r) { return static_cast<const T*>(p.logits) + r * p.logits_stride; };
  if (p.phase) {
    const int64_t chunks = stats_chunks(p.v), r = task / chunks, begin = task % chunks * kStatsChunk;
    const int64_t end = p.v - begin < kStatsChunk ? p.v : begin + kStatsChunk;
    const SoftmaxBlocks s = softmax_blocks(p.blocks + r * 2 * stats_blocks(p.v), p.v);
    float* y = p.out + r * p.out_stride;
    if (p.phase == 1)
      softmax_first(in(r), y, begin, end, p.inverse_temperature[r * p.inverse_stride], s);
    else
      softmax_second(y, begin, end, s, softmax_scale(s, p.v));
    return;
  }
  const int64_t begin = task * p.rows_per_task;
  const int64_t end = begin + p.rows_per_task < p.rows ? begin + p.rows_per_task : p.rows;
  const SoftmaxBlocks s = softmax_blocks(p.scratch, p.v);
  for (int64_t r = begin; r < end; ++r) {
    float* y = p.out + r * p.out_stride;
    softmax_first(in(r), y, 0, p.v, p.inverse_temperature[r * p.inverse_stride], s);
    softmax_second(y, 0, p.v, s, softmax_scale(s, p.v));
  }
}

}  // namespace flashinfer::cpu
