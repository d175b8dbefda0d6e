// SPDX-License-Identifier: Apache-2.0
// Normalisation (ops.md section 3). Statistics and products in f32 or better, one rounding at the end.
#pragma once
#include <optional>

#include "flashinfer/core/tensor.h"

namespace flashinfer {

/// out[..., :] = input[..., :] / sqrt(mean(input[..., :]^2) + eps) * weight
struct RmsNorm {
  TensorView input;               // [..., d] f16|bf16|f32, rank 2 or 3, last dimension contiguous, other strides free
  TensorView weight;              // [d], dtype of input
  double eps = 1e-6;
  std::optional<TensorView> out;  // [..., d] dtype of input; made when absent; may be exactly `input`
  std::optional<bool> enable_pdl; // CUDA only
};
/// ValueError: rank, extents or dtypes that do not fit together, a strided last dimension.
Tensor rmsnorm(const RmsNorm& args);

}  // namespace flashinfer
