// SPDX-License-Identifier: Apache-2.0
// Reference gated activations in double precision and plain loops.
#pragma once
#include <cmath>
#include <numbers>

#include "flashinfer/ops/common/reference.h"

namespace flashinfer::ref {

inline double silu(double x) { return x / (1 + std::exp(-x)); }
/// By erfc, so that the lower tail keeps its digits.
inline double gelu(double x) { return x / 2 * std::erfc(-x / std::numbers::sqrt2); }
inline double gelu_tanh(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

/// out[..., i] = act(input[..., i]) * input[..., d + i]
template <class Act>
void act_and_mul(const TensorView& input, const TensorView& out, Act act) {
  const int64_t d = out.size(-1);
  for_each_row(out, [&](const Index& row) {
    for (int64_t i = 0; i < d; ++i) set(out, row, i, act(get(input, row, i)) * get(input, row, d + i));
  });
}

}  // namespace flashinfer::ref
