// SPDX-License-Identifier: Apache-2.0
// Parameters of the two steps of LoRA apart. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

struct MoeLoraStepConfig {
  DType x, w, y;  // of the rows, the matrices and the result

  static constexpr const char* kName = "flashinfer::MoeLoraStepConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("x", x);
    v("w", w);
    v("y", y);
  }
  friend constexpr bool operator==(const MoeLoraStepConfig&, const MoeLoraStepConfig&) = default;
};

struct MoeLoraMatrix {
  const void* w;                 // [adapters, experts, n, k]
  int64_t adapter, expert, row;  // strides in elements
  int64_t column, n;             // where its n results begin in a row of y
};
/// A row of x that is multiplied.
struct MoeLoraItem {
  int32_t adapter, expert;
  int64_t x;
  float weight;
};

/// Row r of y, of slice s: the sum over the items of r of weight * (w[adapter, expert] . x), added to y or in its
/// place.
struct MoeLoraStepParams {
  const void* x;
  void* y;
  int64_t x_slice, x_row, y_slice, y_row, k;  // strides in elements
  const MoeLoraMatrix* slices;
  int64_t num_slices;
  const MoeLoraItem* items;
  const int64_t* first;  // [rows + 1]: first item of each row
  int64_t rows, rows_per_task;
  bool add;
};

}  // namespace flashinfer
