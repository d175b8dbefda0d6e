// SPDX-License-Identifier: Apache-2.0
// What comes before the step in gdn_fused_decode_step on a GPU: gates and convolution.
#pragma once
#include "flashinfer/ops/linear_attention/kernels/conv/cuda_params.h"
#include "flashinfer/ops/linear_attention/kernels/gdn/gates_params.h"

namespace flashinfer {

/// A block's part of the gates: columns of a few rows. 16 bf16 columns are a sector of w.
inline constexpr int64_t kGdnFrontRows = 4, kGdnFrontColumns = 16;

struct GdnFrontParams {
  GdnGatesParams gates;
  ConvCudaParams conv;
  int64_t gate_blocks;  // the first ones; those behind them are the convolution's, a thread a channel
  bool wide;            // rows of w are 16-byte aligned
};
/// Bytes of shared memory.
constexpr int64_t gdn_front_shared(int64_t threads) { return threads / 32 * kGdnFrontRows * kGdnFrontColumns * 4; }

}  // namespace flashinfer
