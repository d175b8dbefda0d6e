// SPDX-License-Identifier: Apache-2.0
// Config and Params of the kernel that makes a rank's addend of an all-reduce from its experts' rows. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

struct MoeReduceConfig {
  DType dtype;             // of the rows
  DType scale;             // f32 or `dtype`; `dtype` when there are no scales
  unsigned char permuted;  // rows are found by `index`; else row t of expert e is row e * rows + t
  unsigned char scaled;
  unsigned char adds;  // a row is added behind the experts'

  static constexpr const char* kName = "flashinfer::MoeReduceConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("scale", scale);
    v("permuted", permuted);
    v("scaled", scaled);
    v("adds", adds);
  }
  friend constexpr bool operator==(const MoeReduceConfig&, const MoeReduceConfig&) = default;
};
/// Tensors are contiguous with rows of d elements.
struct MoeReduceParams {
  const void* x;
  const void* scales;    // [experts, rows]; permuted: [rows, experts]
  const int32_t* index;  // permuted: [rows, experts]; negative: none
  const void* add;
  void* out;
  int64_t rows, experts, d, rows_per_task;
};

}  // namespace flashinfer
