// SPDX-License-Identifier: Apache-2.0
// What the kernels of group8.h need to know. Freestanding.
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
  int32_t amax_only;   // scales[task] = the largest magnitude of the task's rows, nothing else
  const float* given;  // the scale of everything; null: from each group
  int64_t rows_per_task;
};

}  // namespace flashinfer
