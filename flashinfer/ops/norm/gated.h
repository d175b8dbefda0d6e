// SPDX-License-Identifier: Apache-2.0
// Norms with gates. Sums as in op.h; everything in f32 until the last rounding. ValueError: inconsistent ranks, extents
// or dtypes, a negative or NaN eps. Any d; no rows is a no-op.
#pragma once
#include <optional>
#include <utility>

#include "flashinfer/op/value.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// input = input / sqrt(mean(input^2) + eps) * sigmoid(gate), over the last dimension, in place.
struct RmsNormSigmoidGate {
  TensorView input;  // [rows, d] or [rows, heads, d] bf16|f16|f32
  TensorView gate;   // as input
  double eps = 1e-5;
  bool enable_pdl = true;  // CUDA only
};
void rmsnorm_sigmoid_gate(const RmsNormSigmoidGate& args);

/// out = alpha * residual + beta * x / sqrt(mean(x^2) + eps), x = branch * (weight + gain_center), or branch without a
/// weight.
struct GatedResidualRmsNorm {
  TensorView branch;                 // [rows, d] bf16|f16|f32
  TensorView residual;               // [rows, d] f32
  std::optional<TensorView> weight;  // [d] as branch
  TensorView alpha, beta;            // [d] f32
  double eps = 1e-6;
  double gain_center = 0.0;
  std::optional<TensorView> out = {};  // [rows, d] f32; may be exactly `residual`
  bool enable_pdl = true;              // CUDA only
};
Tensor gated_residual_rmsnorm(const GatedResidualRmsNorm& args);

/// residual_out = the same with post_eps, post_weight and post_gain_center; ffn_input = residual_out /
/// sqrt(mean(residual_out^2) + next_eps) * (next_weight + next_gain_center), rounded to branch's dtype.
struct GatedResidualNextRmsNorm {
  TensorView branch;         // [rows, d] bf16|f16|f32
  TensorView residual;       // [rows, d] f32
  TensorView next_weight;    // [d] as branch
  op::ScalarOrTensor alpha;  // a number or [d] f32
  TensorView beta;           // [d] f32
  double post_eps = 1e-6, next_eps = 1e-6;
  double next_gain_center = 0.0;
  std::optional<TensorView> residual_out = {};  // [rows, d] f32; may be exactly `residual`
  std::optional<TensorView> ffn_input = {};     // [rows, d] as branch; may be exactly `branch`
  std::optional<TensorView> post_weight = {};   // [d] as branch
  double post_gain_center = 0.0;
  bool enable_pdl = true;  // CUDA only
};
std::pair<Tensor, Tensor> gated_residual_next_rmsnorm(const GatedResidualNextRmsNorm& args);

}  // namespace flashinfer

#pragma GCC visibility pop
