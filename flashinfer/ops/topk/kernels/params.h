// SPDX-License-Identifier: Apache-2.0
// Config and Params of the top-k kernels. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

struct TopKConfig {
  DType dtype;

  static constexpr const char* kName = "flashinfer::TopKConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
  }
  friend constexpr bool operator==(const TopKConfig&, const TopKConfig&) = default;
};

/// An array of int32 or int64 with one element a row, or none.
struct RowIndices {
  const void* data;
  int64_t stride, wide;
  int64_t at(int64_t row, int64_t absent) const {
    if (!data) return absent;
    return wide ? static_cast<const int64_t*>(data)[row * stride] : static_cast<const int32_t*>(data)[row * stride];
  }
};

struct TopKParams {
  const void* input;
  void* values;       // top_k only
  int64_t* indices;   // top_k only
  uint32_t* scratch;  // of this task: top_k_scratch(d).words; none when k is 1
  float* stats;       // of all rows, computed by tasks of phase 0, a chunk each; null: each row computes its own
  int64_t rows, d, k, rows_per_task;
  int64_t input_stride, values_stride, indices_stride;  // of rows, in elements
  int32_t sorted;
  int32_t large;          // the larger index wins a tie
  int32_t compute_stats;  // this launch computes the statistics
  // Transforms: the window [start, start + length) of a row, positions counted from its start.
  int32_t transform;  // output = position + offset, through a page table when there is one
  int32_t* output;
  int32_t* raw;  // positions, or null
  const int32_t* page_table;
  int64_t output_stride, raw_stride, table_stride, page_shift;
  RowIndices lengths, starts, offsets, batch, table_starts;
};

}  // namespace flashinfer
