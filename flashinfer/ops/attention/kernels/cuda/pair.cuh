// SPDX-License-Identifier: Apache-2.0
// Tiles of few rows and of many in one launch: the former wait for memory, the latter for tensor cores, so that an SM
// with both waits less. Each tile is computed as in a launch of its kind alone, to the bit; registers are those of the
// kind that needs more.
//
// The grid is not persistent: a plan's list is sorted, longest tiles first, and the GPU starts the next block where one
// ends, which is what blocks that fetch tiles from a counter would do.
#pragma once
#include "flashinfer/ops/attention/kernels/cuda/attention.cuh"
#include "flashinfer/ops/attention/kernels/cuda/pair_params.h"

namespace flashinfer::cu {

/// Blocks of both kinds take turns, in proportion to their numbers: `few` of the first b blocks are of few rows.
template <AttentionCudaConfig C>
FI_GLOBAL_FN void attention_pair(const AttentionPairParams& p) {
  depend_wait();
  const auto few = [&](uint64_t b) { return static_cast<uint32_t>(b * p.share >> 32); };
  const auto block = [] {
    Pack<uint32_t, 1> b{{block_x()}};
    forget(b);  // computed again rather than kept in registers
    return b[0];
  };
  if (few(uint64_t{block_x()} + 1) != few(block_x()))
    attn::run_tile<few_beside(C), attn::NoHooks>(p.few, p.few.a, [&] { return few(block()); });
  else
    attn::run_tile<C, attn::NoHooks>(p.many, p.many.a, [&] {
      const uint32_t b = block();
      return b - few(b);
    });
}

}  // namespace flashinfer::cu
