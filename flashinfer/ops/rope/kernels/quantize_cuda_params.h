// SPDX-License-Identifier: Apache-2.0
// Config and Params of RoPE with a cast to FP8 on a GPU. Freestanding.
#pragma once
#include "flashinfer/kernels/common/page_table.h"
#include "flashinfer/ops/rope/kernels/params.h"

namespace flashinfer {

struct RopeQuantizeCudaConfig {
  DType dtype, out;
  unsigned char interleave, aligned;  // aligned: pieces of 16 bytes of the input, and their codes
  int threads;                        // of a block, which processes a token

  static constexpr const char* kName = "flashinfer::RopeQuantizeCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("out", out);
    v("interleave", interleave);
    v("aligned", aligned);
    v("threads", threads);
  }
  friend constexpr bool operator==(const RopeQuantizeCudaConfig&, const RopeQuantizeCudaConfig&) = default;
};

struct RopeQuantizeCudaParams {
  RopeQuantizePart part[kRopeQuantizeParts];
  IndexArray positions;
  const float* table;
  int64_t table_stride, table_rows, tokens;
  AppendPages pages;  // where tokens lie in the cache
  int32_t paged;      // there is one
};

}  // namespace flashinfer
