// SPDX-License-Identifier: Apache-2.0
// Parameters of the kernels that quantise queries, keys and values for SageAttention. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"
#include "flashinfer/kernels/common/page_table.h"

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

struct SageCudaConfig {
  DType dtype, out;
  unsigned char mean, aligned;  // of partial results: sums; pieces of 16 bytes of x
  int threads;

  static constexpr const char* kName = "flashinfer::SageCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("out", out);
    v("mean", mean);
    v("aligned", aligned);
    v("threads", threads);
  }
  friend constexpr bool operator==(const SageCudaConfig&, const SageCudaConfig&) = default;
};
/// As SageParams; `block` tokens of a request share a scale (sage_blocks).
struct SageCudaParams {
  const void* x;
  void* q;
  float *scales, *partials;  // partials: [chunks][heads * dim]
  const float* mean;
  StridedIndices cum;  // offsets of the requests; null: one
  int64_t requests, tokens, heads, dim, block, columns, chunk, chunks;
};

}  // namespace flashinfer
