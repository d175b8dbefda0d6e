// SPDX-License-Identifier: Apache-2.0
// Elements of any type of arrays around the products of a mixture of experts.
#pragma once
#include "flashinfer/kernels/cuda/convert.h"
#include "flashinfer/kernels/cuda/narrow.h"
#include "flashinfer/ops/moe/kernels/cuda_params.h"

namespace flashinfer::cu {

FI_GLOBAL_FN float moe_number(const MoeNumbers& x, int64_t i, int64_t j, float otherwise) {
  if (x.p == nullptr) return otherwise;
  const int64_t at = i * x.row + j * x.column;
  if (x.dtype == DType::kF32) return static_cast<const float*>(x.p)[at];
  if (x.dtype == DType::kBF16) return to_f32(static_cast<const bf16_t*>(x.p)[at]);
  return to_f32(static_cast<const f16_t*>(x.p)[at]);
}
FI_GLOBAL_FN int64_t moe_integer(const MoeNumbers& x, int64_t i, int64_t j) {
  const int64_t at = i * x.row + j * x.column;
  return x.dtype == DType::kI64 ? static_cast<const int64_t*>(x.p)[at] : static_cast<const int32_t*>(x.p)[at];
}
/// Nothing where there is no array.
FI_GLOBAL_FN void moe_put(const MoeResults& x, int64_t i, int64_t j, float value) {
  if (x.p == nullptr) return;
  const int64_t at = i * x.row + j * x.column;
  if (x.dtype == DType::kF32)
    static_cast<float*>(x.p)[at] = value;
  else if (x.dtype == DType::kBF16)
    static_cast<bf16_t*>(x.p)[at] = from_f32<bf16_t>(value);
  else if (x.dtype == DType::kF16)
    static_cast<f16_t*>(x.p)[at] = from_f32<f16_t>(value);
  else
    static_cast<uint8_t*>(x.p)[at] = static_cast<uint8_t>(narrow_e4m3(value));
}
FI_GLOBAL_FN void moe_put_id(const MoeResults& x, int64_t i, int64_t j, int32_t value) {
  if (x.p == nullptr) return;
  const int64_t at = i * x.row + j * x.column;
  if (x.dtype == DType::kI16)
    static_cast<int16_t*>(x.p)[at] = static_cast<int16_t>(value);
  else
    static_cast<int32_t*>(x.p)[at] = value;
}
/// A number rounded to 16 bits and back.
FI_GLOBAL_FN float moe_rounded(DType to, float x) {
  return to == DType::kBF16 ? to_f32(from_f32<bf16_t>(x)) : to == DType::kF16 ? to_f32(from_f32<f16_t>(x)) : x;
}

}  // namespace flashinfer::cu
