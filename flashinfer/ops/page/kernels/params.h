// SPDX-License-Identifier: Apache-2.0
// Parameters of the GPU append kernel (on the CPU it is one memcpy a head). Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

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

/// An array of int32 or int64 with a stride in elements.
struct StridedIndices {
  const void* data;
  int64_t stride, wide;  // wide: int64
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
  StridedIndices batch_indices, positions, kv_indices, kv_indptr;  // of token t; a negative request is padding
  int64_t tokens, page_size, pages, batch;  // tokens whose request, position or page does not exist are skipped
};

}  // namespace flashinfer
