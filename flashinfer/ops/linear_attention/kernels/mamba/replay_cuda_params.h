// SPDX-License-Identifier: Apache-2.0
// What the GPU's kernel that replays cached tokens is launched with: the host does not read indices there.
#pragma once
#include "flashinfer/ops/linear_attention/kernels/common/indices.h"
#include "flashinfer/ops/linear_attention/kernels/mamba/replay_params.h"

namespace flashinfer {

/// A slot that is `pad`, negative or at or above those of the pools is none. With `materialize` sequence i goes from
/// slot read.at(i) to write.at(i), after prefix.at(i) rows of its ring from start.at(i) on; else starts and numbers of
/// old tokens are those of the slot.
struct ReplayCudaParams {
  ReplayParams call;                              // without rows and seed
  DType io;                                       // of x, B, C, z, out and the rings
  bool materialize, wide;                         // wide: rows of B and C and of the rings are 16-byte aligned
  int64_t pad, slots, ring_slots, window, steps;  // steps: new tokens of a sequence at most
  GdnIndices read, write, start, prefix, tokens;  // tokens: first of each sequence, null: `steps` of row i
  const int64_t* seed;                            // null: states are rounded to nearest even
};

}  // namespace flashinfer
