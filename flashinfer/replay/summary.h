// SPDX-License-Identifier: Apache-2.0
// What a report says of a tensor's content.
#pragma once
#include <optional>

#include "flashinfer/core/tensor.h"

#pragma GCC visibility push(default)

namespace flashinfer::replay {

/// Statistics over the finite elements, in double precision; NaN and Inf are only counted. Without a finite element
/// min, max, mean and deviation are NaN.
struct Summary {
  int64_t elements = 0, finite = 0, nan = 0, inf = 0;
  double min = 0, max = 0, mean = 0;
  double deviation = 0;  // standard deviation of the population: sqrt(sum((x - mean)^2) / finite)
};

/// One pass over host memory in blocks of 4096 elements. Nothing for packed FP4, whose bytes hold two elements.
std::optional<Summary> summarize(const TensorView& v);

}  // namespace flashinfer::replay

#pragma GCC visibility pop
