// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

inline constexpr int64_t kGdnGateColumns = 32;  // of a task

struct GdnGatesConfig {
  DType dtype;

  static constexpr const char* kName = "flashinfer::GdnGatesConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
  }
  friend constexpr bool operator==(const GdnGatesConfig&, const GdnGatesConfig&) = default;
};

/// out[rows][columns] = x[rows][depth] w[depth][columns]; strides of rows in elements.
struct GdnGatesParams {
  const void *x, *w;
  void* out;
  int64_t rows, columns, depth, x_row, w_row, out_row;
};

}  // namespace flashinfer
