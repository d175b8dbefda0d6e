// SPDX-License-Identifier: Apache-2.0
// What the GPU's kernels of the causal convolution are compiled for and launched with: the host does not read indices
// there.
#pragma once
#include "flashinfer/ops/linear_attention/kernels/common/indices.h"
#include "flashinfer/ops/linear_attention/kernels/conv/params.h"

namespace flashinfer {

struct ConvCudaConfig {
  DType dtype;         // of x, the states and the result
  bool channels_last;  // lanes are along channels, else along tokens
  short threads;

  static constexpr const char* kName = "flashinfer::ConvCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("channels_last", channels_last);
    v("threads", threads);
  }
  /// 128 registers: for the sake of more blocks ptxas spills on sm_100a.
  constexpr int min_blocks() const { return 512 / threads; }
  friend constexpr bool operator==(const ConvCudaConfig&, const ConvCudaConfig&) = default;
};

/// A slot that is `pad`, negative or at or above the pool's is padding: the result is 0, no slot is touched.
struct ConvCudaParams {
  ConvParams call;           // without rows and units
  int64_t x_row, out_row;    // strides between sequences that are no packed tokens
  int64_t tokens;            // of each sequence; packed: of all
  GdnIndices starts, slots;  // starts.data null: not packed
  GdnIndices positions;      // cache_seqlens or num_accepted_tokens
  const bool* initial;       // null: `always_initial`
  int64_t initial_stride, slot_count, pad;
  int32_t width;
  DType weight_type;
  bool silu, always_initial;
  bool wide;  // the filter has four taps, side by side, and those of a channel are aligned to their size
};

}  // namespace flashinfer
