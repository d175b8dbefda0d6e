// SPDX-License-Identifier: Apache-2.0
// Parameters of the LoRA kernel. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

struct MoeLoraConfig {
  DType dtype;  // of x and the matrices

  static constexpr const char* kName = "flashinfer::MoeLoraConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
  }
  friend constexpr bool operator==(const MoeLoraConfig&, const MoeLoraConfig&) = default;
};

/// One pair of a token: matrices a [rank, h] and b [out, rank] of each slice.
struct MoeLoraPair {
  int32_t adapter, expert;
  float weight;
};
struct MoeLoraSlice {
  const void *a, *b;
  int64_t a_adapter, a_expert, a_row, b_adapter, b_expert, b_row;  // strides in elements
  int64_t rank, out;
};

struct MoeLoraParams {
  const void* x;
  int64_t x_stride, hidden;
  const MoeLoraSlice* slices;
  int64_t num_slices;
  const MoeLoraPair* pairs;    // by token
  const int64_t* token_pairs;  // [tokens + 1]: first pair of each token
  float* out;
  int64_t out_stride, columns;
  float* scratch;  // of a thread: the largest rank
  int64_t tokens, tokens_per_task;
};

}  // namespace flashinfer
