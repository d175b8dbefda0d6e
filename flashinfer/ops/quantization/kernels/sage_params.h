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

/// One contiguous tensor [tokens, heads, dim]. `block` tokens share a scale of their head; 0: each channel of a head
/// has one for all tokens.
struct SageParams {
  const void* x;
  void* q;
  float* scales;
  int64_t tokens, heads, dim, block;
  int64_t items_per_task;  // of heads * blocks, or of heads
};

}  // namespace flashinfer
