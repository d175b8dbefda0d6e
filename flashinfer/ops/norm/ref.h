// SPDX-License-Identifier: Apache-2.0
// The truth about norms, in double precision and plain loops, on strided views of any rank.
#pragma once
#include <cmath>

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

}  // namespace flashinfer::ref
