// SPDX-License-Identifier: Apache-2.0
// Reference norms in double precision and plain loops, on strided views of any rank.
#pragma once
#include <cmath>
#include <vector>

#include "flashinfer/ops/common/reference.h"

namespace flashinfer::ref {

/// out[..., :] = input / sqrt(mean(input^2) + eps) * (weight + bias), rounded once to out's dtype.
inline void rmsnorm(const TensorView& input, const TensorView& weight, double eps, double bias, const TensorView& out) {
  const int64_t d = input.size(-1);
  for_each_row(input, [&](const Index& row) {
    double sum = 0;
    for (int64_t i = 0; i < d; ++i) sum += get(input, row, i) * get(input, row, i);
    const double scale = 1.0 / std::sqrt(sum / static_cast<double>(d) + eps);
    for (int64_t i = 0; i < d; ++i) set(out, row, i, get(input, row, i) * scale * (get(weight, i) + bias));
  });
}

/// residual = round(input + residual); input = norm of the sum that is not rounded.
inline void fused_add_rmsnorm(const TensorView& input, const TensorView& residual, const TensorView& weight, double eps,
                              double bias) {
  const int64_t d = input.size(-1);
  std::vector<double> s(static_cast<size_t>(d));
  for_each_row(input, [&](const Index& row) {
    double sum = 0;
    for (int64_t i = 0; i < d; ++i) {
      const double v = s[static_cast<size_t>(i)] = get(input, row, i) + get(residual, row, i);
      sum += v * v;
      set(residual, row, i, v);
    }
    const double scale = 1.0 / std::sqrt(sum / static_cast<double>(d) + eps);
    for (int64_t i = 0; i < d; ++i) set(input, row, i, s[static_cast<size_t>(i)] * scale * (get(weight, i) + bias));
  });
}

/// out = (input - mean) / sqrt(var + eps) * gamma + beta.
inline void layernorm(const TensorView& input, const TensorView& gamma, const TensorView& beta, double eps,
                      const TensorView& out) {
  const int64_t d = input.size(-1);
  const double n = static_cast<double>(d);
  for_each_row(input, [&](const Index& row) {
    double mean = 0, var = 0;
    for (int64_t i = 0; i < d; ++i) mean += get(input, row, i) / n;
    for (int64_t i = 0; i < d; ++i) var += (get(input, row, i) - mean) * (get(input, row, i) - mean) / n;
    const double scale = 1.0 / std::sqrt(var + eps);
    for (int64_t i = 0; i < d; ++i)
      set(out, row, i, (get(input, row, i) - mean) * scale * get(gamma, i) + get(beta, i));
  });
}

}  // namespace flashinfer::ref
