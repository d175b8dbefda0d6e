// SPDX-License-Identifier: Apache-2.0
// What the results must be: double precision, plain loops, nothing that the kernels use too.
#pragma once
#include <algorithm>
#include <cmath>

#include "flashinfer/ops/common/reference.h"

namespace flashinfer::ref {

inline void skeleton(const TensorView& input, double peak, const TensorView& out) {
  const int64_t d = input.size(-1);
  for_each_row(input, [&](const Index& row) {
    double largest = 0;
    for (int64_t i = 0; i < d; ++i) largest = std::max(largest, std::abs(get(input, row, i)));
    const double scale = largest > 0 ? peak / largest : 0;
    for (int64_t i = 0; i < d; ++i) set(out, row, i, get(input, row, i) * scale);
  });
}

}  // namespace flashinfer::ref
