// SPDX-License-Identifier: Apache-2.0
// Config and Params of the steps of LoRA in a mixture of experts on a GPU. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"
#include "flashinfer/kernels/common/page_table.h"

namespace flashinfer {

struct MoeLoraCudaConfig {
  DType x, w, y;          // of the rows, the matrices and the result
  unsigned char aligned;  // pieces of 16 bytes of w, and as many elements of x, are aligned in every row
  short lanes;            // that share a dot product: 1, 2, 4, ... 32
  short threads;

  /// Up to 128 registers a thread: left alone, ptxas spills rather than take more than a few dozen.
  constexpr int min_blocks() const { return 512 / threads; }

  static constexpr const char* kName = "flashinfer::MoeLoraCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("x", x);
    v("w", w);
    v("y", y);
    v("aligned", aligned);
    v("lanes", lanes);
    v("threads", threads);
  }
  friend constexpr bool operator==(const MoeLoraCudaConfig&, const MoeLoraCudaConfig&) = default;
};

/// Which pairs count: token in [0, tokens), adapter in [0, adapters), expert in [0, experts). The host has not looked.
struct MoeLoraPairs {
  StridedIndices token, expert, adapter;  // [pairs], [pairs], [tokens]
  uint32_t pairs, tokens, adapters, experts;
};

/// ids[p] = the token of pair p, or -1: it does not count.
struct MoeLoraTokensParams {
  MoeLoraPairs pairs;
  int32_t* ids;
};

/// Dot products that a thread's group of lanes computes at a time, with one read of x.
inline constexpr int kMoeLoraRows = 4;
inline constexpr int kMoeLoraSlices = 4;
/// n rows of w times rows of x, for each slice.
struct MoeLoraCudaSlice {
  const void *w, *x;
  void* y;
  int64_t adapter, expert, row;  // strides of w in elements
  int32_t n, k;
};
/// Row r of y: of pair r (`entry_of` null), or the sum over the pairs entry_of[offsets[r] .. offsets[r + 1]) of token r
/// in their order, times `weights`; added to y or in its place.
struct MoeLoraCudaParams {
  MoeLoraPairs pairs;
  MoeLoraCudaSlice slice[kMoeLoraSlices];
  int64_t x_row, y_row, y_columns;  // strides in elements; columns of y
  int64_t weight_stride;
  StridedIndices column;  // of y, where each slice begins; data null: y does
  const float* weights;   // [pairs], null: 1
  const int32_t *offsets, *entry_of;
  int32_t x_by_pair, add;
};

}  // namespace flashinfer
