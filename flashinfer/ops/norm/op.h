// SPDX-License-Identifier: Apache-2.0
// Normalisation. Statistics and products in f32, one rounding at the end (HuggingFace rounds once more, before the
// weight: results may differ from it by one unit in the last place). A row's result depends on that row alone: sums are
// taken over 64 lanes by element index modulo 64, then lanes are paired 32, 16, ... 1 apart, on every ISA, whatever the
// threads.
//
// All throw ValueError for inconsistent ranks, extents or dtypes, a strided last dimension, or a negative or NaN eps.
// No rows, or d = 0, is a no-op. `weight` has the input's dtype or f32.
#pragma once
#include <optional>

#include "flashinfer/core/tensor.h"
#include "flashinfer/ops/norm/diffusion.h"
#include "flashinfer/ops/norm/fp4.h"
#include "flashinfer/ops/norm/gated.h"
#include "flashinfer/ops/norm/quant.h"

#pragma GCC visibility push(default)

namespace flashinfer {

struct RmsNorm {
  TensorView input;   // [..., d] f16|bf16|f32, rank 2 or 3, last dimension contiguous, other strides free
  TensorView weight;  // [d], dtype of input or f32
  double eps = 1e-6;
  std::optional<TensorView> out = {};   // [..., d] dtype of input; allocated when absent; may be exactly `input`
  std::optional<bool> enable_pdl = {};  // CUDA only
};
/// out[..., :] = input[..., :] / sqrt(mean(input[..., :]^2) + eps) * weight
Tensor rmsnorm(const RmsNorm& args);
/// out[..., :] = input[..., :] / sqrt(mean(input[..., :]^2) + eps) * (1 + weight), the sum in f32
Tensor gemma_rmsnorm(const RmsNorm& args);

struct FusedAddRmsNorm {
  TensorView input;     // [..., d] f16|bf16|f32, rank 2 or 3: read, then the result
  TensorView residual;  // as input; read, then input + residual rounded
  TensorView weight;    // [d], dtype of input or f32
  double eps = 1e-6;
  std::optional<bool> enable_pdl = {};  // CUDA only
};
/// s = input + residual in f32; residual = round(s); input = s / sqrt(mean(s^2) + eps) * weight, of the unrounded s.
void fused_add_rmsnorm(const FusedAddRmsNorm& args);
/// The same with (1 + weight).
void gemma_fused_add_rmsnorm(const FusedAddRmsNorm& args);

struct LayerNorm {
  TensorView input;  // [..., d] bf16|f16|f32, rank 2 or 3
  TensorView gemma;  // [d] f32, the factor
  TensorView beta;   // [d] f32
  double eps = 1e-6;
  std::optional<TensorView> out = {};  // C++ only: memory for the result, dtype of input; may be exactly `input`
};
/// out = (input - mean) / sqrt(var + eps) * gemma + beta over the last dimension, population variance about the mean.
Tensor layernorm(const LayerNorm& args);

}  // namespace flashinfer

#pragma GCC visibility pop
