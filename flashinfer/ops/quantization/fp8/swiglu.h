// SPDX-License-Identifier: Apache-2.0
// Quantisers of computed values: SwiGLU to MXFP8 in two directions, smoothed rows to NVFP4.
#pragma once
#include <optional>
#include <string>
#include <tuple>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// y = silu(gate) * linear in f32, quantised without rounding in between: by rows, 32 columns a scale, and by columns,
/// 32 rows a scale, each scale the least power of two >= amax / 448. Results that are not requested have no elements.
/// ValueError: m or k that is not a multiple of 128.
struct SiluAndMulMxfp8Quantize {
  TensorView gated_input;  // [m, 2k] bf16|f16: gate, linear half
  bool rowwise = true, colwise = false;
  std::optional<TensorView> row_output = {};     // e4m3 [m, k], contiguous
  std::optional<TensorView> column_output = {};  // e4m3 [m, k], made with strides (1, m)
  std::optional<TensorView> row_scales = {};     // ue8m0 as uint8 [m, k / 32]
  std::optional<TensorView> column_scales = {};  // [k * m / 32]: of column c at c * m / 32
};
op::Results silu_and_mul_mxfp8_quantize(const SiluAndMulMxfp8Quantize& args);

/// The same of the gradients of the gate and of the linear half, side by side [m, 2k]: grad * linear * s * (1 + gate *
/// (1 - s)) and grad * gate * s, s = sigmoid(gate).
struct SiluAndMulMxfp8QuantizeBackward {
  TensorView gated_input;  // [m, 2k] bf16|f16
  TensorView grad_output;  // [m, k] as gated_input
  bool rowwise = true, colwise = false;
  std::optional<TensorView> row_output = {}, column_output = {}, row_scales = {}, column_scales = {};
};
op::Results silu_and_mul_mxfp8_quantize_backward(const SiluAndMulMxfp8QuantizeBackward& args);

/// nvfp4_quantize of x * pre_quant_scale, rounded to x's type; scales in tiles of 128x4. ValueError: k that is not a
/// multiple of 16.
struct Nvfp4QuantizeSmooth {
  TensorView x;                         // [m, k] bf16|f16
  TensorView pre_quant_scale;           // [k] as x
  TensorView global_scale;              // f32, one
  std::optional<bool> enable_pdl = {};  // CUDA only
  std::string backend = "auto";
  std::optional<TensorView> xq = {};  // uint8 [m, k / 2]
  std::optional<TensorView> sf = {};  // uint8 [pad(m, 128) * pad(k / 16, 4)]
};
std::pair<Tensor, Tensor> nvfp4_quantize_smooth(const Nvfp4QuantizeSmooth& args);

}  // namespace flashinfer

#pragma GCC visibility pop
