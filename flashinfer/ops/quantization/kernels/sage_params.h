// SPDX-License-Identifier: Apache-2.0
// Parameters of the kernels that quantise queries, keys and values for SageAttention. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

struct SageConfig {
  DType dtype, out;  // of x; e4m3 or i8

  static constexpr const char* kName = "flashinfer::SageConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("out", out);
  }
  friend constexpr bool operator==(const SageConfig&, const SageConfig&) = default;
};

/// Tokens [first, end) that share the scale `column` of each head.
struct SageBlock {
  int64_t first, end, column;
};

/// One contiguous tensor [tokens, heads, dim]. `blocks` of tokens share a scale of their head; null: each channel of a
/// head has one for all tokens. `mean` [heads, dim] is subtracted first, or null.
struct SageParams {
  const void* x;
  void* q;
  float* scales;
  const float* mean;
  const SageBlock* blocks;
  int64_t tokens, heads, dim, block_count, columns;  // `columns` scales of a head
  int64_t items_per_task;                            // of heads * block_count, or of heads
};

}  // namespace flashinfer
