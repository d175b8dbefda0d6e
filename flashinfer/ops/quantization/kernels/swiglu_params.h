// SPDX-License-Identifier: Apache-2.0
// Parameters of the SwiGLU kernels. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

struct SwigluMxfp8Config {
  DType dtype;             // of the inputs
  unsigned char backward;  // gradients of both halves, else the activation

  static constexpr const char* kName = "flashinfer::SwigluMxfp8Config";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("backward", backward);
  }
  friend constexpr bool operator==(const SwigluMxfp8Config&, const SwigluMxfp8Config&) = default;
};

/// A task is 32 rows by 128 columns of the activation; m and k are multiples of 128. Codes by rows are [m, w], by
/// columns [w, m]; w is k, or 2 k backward, the gate's half first.
struct SwigluMxfp8Params {
  const void* x;                                         // [m, 2k]: gate, linear half
  const void* grad;                                      // [m, k], backward
  uint8_t *rows, *row_scales, *columns, *column_scales;  // null: not computed
  int64_t m, k, x_stride, grad_stride;
};

/// y = x * s by columns, rounded to x's type: rows as input of the quantiser.
struct SmoothConfig {
  DType dtype;

  static constexpr const char* kName = "flashinfer::SmoothConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
  }
  friend constexpr bool operator==(const SmoothConfig&, const SmoothConfig&) = default;
};
struct SmoothParams {
  const void *x, *scale;
  void* y;
  int64_t k, x_stride, y_stride;
};

}  // namespace flashinfer
