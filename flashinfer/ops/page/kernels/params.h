// SPDX-License-Identifier: Apache-2.0
// Parameters of the GPU append kernel (on the CPU it is one memcpy a head). Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"
#include "flashinfer/kernels/common/page_table.h"

namespace flashinfer {

struct AppendCudaConfig {
  int item;     // bytes of an element: 1, 2, 4
  int aligned;  // every head is 16-byte aligned and a whole number of 16-byte pieces, on both sides
  int threads;  // of a block, which processes a token

  static constexpr const char* kName = "flashinfer::AppendCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("item", item);
    v("aligned", aligned);
    v("threads", threads);
  }
  friend constexpr bool operator==(const AppendCudaConfig&, const AppendCudaConfig&) = default;
};

/// K or V: strides in elements.
struct AppendPlane {
  const void* from;
  void* to;
  int64_t heads, dim;
  int64_t from_stride_n, from_stride_h, to_stride_page, to_stride_n, to_stride_h;
};
struct AppendParams {
  AppendPlane plane[2];
  AppendPages pages;
  int64_t tokens;
};

struct IndexCudaConfig {
  int threads;

  static constexpr const char* kName = "flashinfer::IndexCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("threads", threads);
  }
  friend constexpr bool operator==(const IndexCudaConfig&, const IndexCudaConfig&) = default;
};
/// Request and position of each of `tokens` tokens: those of request b are [indptr[b], indptr[b + 1]) and end at its
/// length.
struct PositionsParams {
  StridedIndices indptr, seq_lens;
  int32_t *batch_indices, *positions;
  int64_t batch_stride, position_stride, tokens, batch;
};
/// Lengths of requests from their pages.
struct SeqLensParams {
  StridedIndices indptr, last_page_len;
  int32_t* out;
  int64_t out_stride, page_size, batch;
};

}  // namespace flashinfer
