// SPDX-License-Identifier: Apache-2.0
// Parameters of the gated norm kernels. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

struct GatedNormConfig {
  DType dtype;             // of input and gate, or of branch, weights and ffn_input
  unsigned char residual;  // gated residuals, else a sigmoid of a gate

  static constexpr const char* kName = "flashinfer::GatedNormConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("residual", residual);
  }
  friend constexpr bool operator==(const GatedNormConfig&, const GatedNormConfig&) = default;
};

struct GatedNormParams {
  const void* x;                         // input or branch
  const void* gate;                      // argument of the sigmoid
  void* y;                               // the sigmoid's result, ffn_input; null: none
  const void* weight;                    // before the norm, or null
  const void* next_weight;               // of ffn_input
  const float *residual, *alpha, *beta;  // alpha null: alpha_value
  float* residual_out;
  int64_t rows, d, inner;  // row r is (r / inner, r % inner)
  int64_t x_stride[2], gate_stride[2], y_stride[2], residual_stride, residual_out_stride;
  float eps, next_eps, center, next_center, alpha_value;
  int64_t rows_per_task;
};

}  // namespace flashinfer
