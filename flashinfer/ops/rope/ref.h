// SPDX-License-Identifier: Apache-2.0
// Reference RoPE in double precision and plain loops.
#pragma once
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "flashinfer/ops/common/reference.h"

namespace flashinfer::ref {

/// theta^(-2i/rd) / scale.
inline double rope_frequency(int64_t i, int64_t rd, double theta, double scale) {
  return std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(rd)) / scale;
}
inline double llama31_frequency(int64_t i, int64_t rd, double theta, double scale, double low, double high,
                                double context) {
  const double g = rope_frequency(i, rd, theta, 1);
  const double s = std::clamp((g * context / (2 * std::numbers::pi) - low) / (high - low), 0.0, 1.0);
  return (1 - s) * g / scale + s * g;
}

/// Rotates x [n, heads, d] into y (which may be x). cos_sin(token, i) is the pair's (cos, sin).
template <class CosSin>
void rope(const TensorView& x, const TensorView& y, int64_t rd, bool interleave, CosSin cos_sin) {
  const int64_t d = x.size(2);
  std::vector<double> row(static_cast<size_t>(d));
  for (int64_t t = 0; t < x.size(0); ++t) {
    for (int64_t h = 0; h < x.size(1); ++h) {
      for (int64_t i = 0; i < d; ++i) row[static_cast<size_t>(i)] = at(x, {t, h, i});
      for (int64_t i = rd; i < d; ++i) put(y, {t, h, i}, row[static_cast<size_t>(i)]);
      for (int64_t i = 0; i < rd / 2; ++i) {
        const int64_t ia = interleave ? 2 * i : i, ib = interleave ? 2 * i + 1 : i + rd / 2;
        const auto [c, s] = cos_sin(t, i);
        const double a = row[static_cast<size_t>(ia)], b = row[static_cast<size_t>(ib)];
        put(y, {t, h, ia}, a * c - b * s);
        put(y, {t, h, ib}, b * c + a * s);
      }
    }
  }
}

}  // namespace flashinfer::ref
