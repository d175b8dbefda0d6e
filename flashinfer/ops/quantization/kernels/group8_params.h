// SPDX-License-Identifier: Apache-2.0
// Parameters of the kernels that quantise groups of a row to 8 bits. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

struct Group8Config {
  DType dtype;  // of x
  DType out;    // e4m3, e5m2 or i8

  static constexpr const char* kName = "flashinfer::Group8Config";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("out", out);
  }
  friend constexpr bool operator==(const Group8Config&, const Group8Config&) = default;
};
struct Group8Params {
  const void* x;
  void* q;
  float* scales;
  int64_t rows, k, group;
  int64_t x_stride, q_stride, scale_row_stride, scale_group_stride;
  float eps;
  int32_t power;       // scales are powers of two
  int32_t amax_only;   // scales[task] = the largest magnitude of the task's rows; no other output
  const float* given;  // the scale of all elements; null: computed for each group
  int64_t rows_per_task;
};

}  // namespace flashinfer
