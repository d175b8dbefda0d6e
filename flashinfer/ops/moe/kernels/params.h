// SPDX-License-Identifier: Apache-2.0
// Parameters of the kernels around the products of a mixture of experts. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

struct MoeConfig {
  DType out;  // of the activation: bf16 or e4m3; of the sum: bf16, f16, f32

  static constexpr const char* kName = "flashinfer::MoeConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("out", out);
  }
  friend constexpr bool operator==(const MoeConfig&, const MoeConfig&) = default;
};

/// The numbers are those of the public enumeration ActivationType.
enum class MoeActivation : int32_t {
  kGelu = 0,
  kRelu,
  kSilu,
  kSwiglu,
  kGeglu,
  kSwigluBias,
  kRelu2,
  kSwigluStep,
  kGegluTanh,
  kIdentity,
  kSitu,
  kClampedRelu2 = 12
};
constexpr bool has_gate(MoeActivation a) {
  return a == MoeActivation::kSwiglu || a == MoeActivation::kGeglu || a == MoeActivation::kSwigluBias ||
         a == MoeActivation::kSwigluStep || a == MoeActivation::kGegluTanh || a == MoeActivation::kSitu;
}

/// y[r] = act(x[r] * row_factor[r] * factor[expert[r]] + bias[expert[r]] + delta[r]) * scale[expert[r]], x rows of 2 *
/// inter (linear half, gate) or inter, whose logical column i is stored at column[i].
struct MoeActParams {
  const float* x;
  void* y;
  int64_t rows, inter;
  const int32_t* expert;                                        // [rows]
  const int32_t* column;                                        // [width of x], null: identity
  const float* row_factor;                                      // [rows] or null
  const float *factor, *bias;                                   // [experts, width of x], stored columns; or null
  const float* delta;                                           // [rows, width of x], logical columns; or null
  const float *alpha, *beta, *limit, *situ_beta, *situ_linear;  // [experts] or null
  const float* scale;                                           // [experts] or null
  MoeActivation kind;
  float relu2_limit;
  int64_t rows_per_task;
};

/// y = e4m3 of x * scale, saturated; scale[i * scale_step].
struct MoeCastParams {
  const void* x;
  e4m3_t* y;
  const float* scale;
  int64_t rows, k, x_stride, scale_step, rows_per_task;
};

/// out[t] = sum over j of scales[t, j] * (y[row[t, j]] * factor[expert[row]] + bias[expert[row]]), j ascending; row -1
/// contributes nothing.
struct MoeSumParams {
  const float* y;  // [rows, width]
  void* out;
  const int32_t* row;                                // [tokens, top_k]
  const int32_t* expert;                             // [rows]
  const int32_t* column;                             // [hidden], null: identity
  const float* scales;                               // [tokens, top_k]
  const float *factor, *bias;                        // [experts, width], stored columns; or null
  int64_t tokens, top_k, hidden, width, out_stride;  // `hidden` columns of the result, of `width` stored ones
  int64_t rows_per_task;
};

}  // namespace flashinfer
