// SPDX-License-Identifier: Apache-2.0
// Norms whose results are quantised to 8 bits. Conversions round to nearest even and saturate; NaN stays NaN. `scale`
// is a number or a tensor of one f32; ValueError: more elements, a scale that is 0, infinite or NaN, and as in op.h.
#pragma once
#include <optional>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

struct RmsNormQuant {
  TensorView out;     // [n, d] e4m3|e5m2, written
  TensorView input;   // [n, d] f16|bf16|f32
  TensorView weight;  // [d], dtype of input or f32
  op::ScalarOrTensor scale;
  double eps = 1e-6;
  std::optional<bool> enable_pdl = {};  // CUDA only
};
/// out = input / sqrt(mean(input^2) + eps) * weight * (1 / scale)
void rmsnorm_quant(const RmsNormQuant& args);

struct FusedAddRmsNormQuant {
  TensorView out;       // [n, d] e4m3|e5m2, written
  TensorView input;     // [n, d] f16|bf16|f32
  TensorView residual;  // as input; read, then input + residual rounded
  TensorView weight;    // [d], dtype of input or f32
  op::ScalarOrTensor scale;
  double eps = 1e-6;
  std::optional<bool> enable_pdl = {};
};
/// s = input + residual in f32; residual = round(s); out = s / sqrt(mean(s^2) + eps) * weight * (1 / scale), of the
/// unrounded s.
void fused_add_rmsnorm_quant(const FusedAddRmsNormQuant& args);

struct LayerNormQuant {
  TensorView out;    // [n, d] e4m3|e5m2, written
  TensorView input;  // [n, d] bf16, contiguous: RuntimeError for anything else
  TensorView gemma;  // [d] f32
  TensorView beta;   // [d] f32
  op::ScalarOrTensor scale;
  double eps = 1e-6;
};
/// out = layernorm rounded to bf16, divided by scale
void layernorm_quant(const LayerNormQuant& args);

/// residual = round(s), s = input + residual in f32; normed_out = round(rmsnorm of the unrounded s); for each row and
/// 128 columns a = max(amax(normed_out), 1e-4): block_scale[column / 128][row] = a / 448, out = e4m3(normed_out * (448
/// / a)). Entries of block_scale after the last row are unchanged. ValueError: d that is not a multiple of 128 or, as
/// in FlashInfer, of 256 up to 8192, of 512 up to 16384, or larger.
struct FusedAddRmsNormFp8BlockQuant {
  TensorView out;          // [n, d] e4m3, written
  TensorView block_scale;  // f32 [d/128, n rounded up to 4], written
  TensorView normed_out;   // [n, d] as input, written
  TensorView input;        // [n, d] f16|bf16
  TensorView residual;     // as input
  TensorView weight;       // [d], dtype of input or f32
  double eps = 1e-6;
  std::optional<bool> enable_pdl = {};
};
void fused_add_rmsnorm_fp8_block_quant(const FusedAddRmsNormFp8BlockQuant& args);

}  // namespace flashinfer

#pragma GCC visibility pop
