// SPDX-License-Identifier: Apache-2.0
// Gated activations: the first half of a row is the gate, the second half is multiplied by it. Computed in f32, one
// rounding at the end.
#pragma once
#include <optional>

#include "flashinfer/core/tensor.h"

#pragma GCC visibility push(default)

namespace flashinfer {

struct ActAndMul {
  TensorView input;  // [..., 2*d] f16|bf16|f32, rank >= 1, last dimension contiguous, other strides free
  std::optional<TensorView> out = {};   // [..., d] dtype of input; allocated when absent; may not overlap input
  std::optional<bool> enable_pdl = {};  // CUDA only
};
/// out = silu(input[..., :d]) * input[..., d:], silu(x) = x / (1 + e^-x). ValueError: an odd last dimension, shapes or
/// dtypes that are inconsistent, a strided last dimension. The same for all three.
Tensor silu_and_mul(const ActAndMul& args);
/// gelu(x) = x/2 * (1 + erf(x / sqrt 2))
Tensor gelu_and_mul(const ActAndMul& args);
/// gelu(x) = x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))
Tensor gelu_tanh_and_mul(const ActAndMul& args);

}  // namespace flashinfer

#pragma GCC visibility pop
