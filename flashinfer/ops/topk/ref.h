// SPDX-License-Identifier: Apache-2.0
// Reference top-k: a full stable sort of each row.
#pragma once
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "flashinfer/ops/common/reference.h"

namespace flashinfer::ref {

/// Positions in [0, n) of the k largest of input[r, start .. start + n), in order of position.
inline std::vector<int64_t> top_k_window(const TensorView& input, int64_t r, int64_t start, int64_t n, int64_t k,
                                         bool large) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  if (large) std::reverse(order.begin(), order.end());
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const double x = at(input, {r, start + a}), y = at(input, {r, start + b});
    return std::isnan(y) ? !std::isnan(x) : x > y;
  });
  order.resize(static_cast<size_t>(std::min(n, k)));
  std::sort(order.begin(), order.end());
  return order;
}

inline void top_k(const TensorView& input, int64_t k, bool sorted, bool large, const TensorView& values,
                  const TensorView& indices) {
  const int64_t d = input.size(1);
  std::vector<int64_t> order(static_cast<size_t>(d));
  for (int64_t r = 0; r < input.size(0); ++r) {
    std::iota(order.begin(), order.end(), 0);
    if (large) std::reverse(order.begin(), order.end());
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      const double x = at(input, {r, a}), y = at(input, {r, b});
      return std::isnan(y) ? !std::isnan(x) : x > y;
    });
    if (!sorted) std::sort(order.begin(), order.begin() + k);
    for (int64_t i = 0; i < k; ++i) {
      put(values, {r, i}, at(input, {r, order[static_cast<size_t>(i)]}));
      indices.data_as<int64_t>()[r * indices.stride(0) + i * indices.stride(1)] = order[static_cast<size_t>(i)];
    }
  }
}

}  // namespace flashinfer::ref
