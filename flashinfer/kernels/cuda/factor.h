// SPDX-License-Identifier: Apache-2.0
// Reading of a FactorSource.
#pragma once
#include "flashinfer/kernels/common/factor_source.h"
#include "flashinfer/kernels/cuda/convert.h"

namespace flashinfer::cu {

FI_GLOBAL_FN float factor_at(const FactorSource& f, int64_t batch, int64_t row) {
  float x = f.value;
  if (f.data) {
    const int64_t at = batch * f.batch + row * f.row;
    x = f.dtype == DType::kF32   ? static_cast<const float*>(f.data)[at]
        : f.dtype == DType::kF16 ? to_f32(static_cast<const f16_t*>(f.data)[at])
                                 : to_f32(static_cast<const bf16_t*>(f.data)[at]);
  }
  return f.inverted ? 1.0f / x : x;
}

}  // namespace flashinfer::cu
