// SPDX-License-Identifier: Apache-2.0
// What the top-k kernel needs to know. Freestanding.
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

struct TopKParams {
  const void* input;
  void* values;
  int64_t* indices;
  uint64_t* scratch;  // scratch_words for each task; none when k is 1
  int64_t rows, d, k, rows_per_task, scratch_words;
  int64_t input_stride, values_stride, indices_stride;  // of rows, in elements
  int32_t sorted;
  int32_t large;  // the larger index wins a tie
};

}  // namespace flashinfer
