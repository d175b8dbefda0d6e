// SPDX-License-Identifier: Apache-2.0
// References of hyper-connections in double precision, from the definitions in op.h. Arrays are contiguous.
#pragma once
#include <array>
#include <cmath>

#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/mhc/op.h"

namespace flashinfer::ref {

inline void mhc_post(const MhcPost& a) {
  const int64_t h = a.residual.size(-1), rows = h ? a.residual.numel() / (4 * h) : 0;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < 4; ++j)
      for (int64_t i = 0; i < h; ++i) {
        double y = load_element(a.x, r * h + i) * load_element(a.post_layer_mix, r * 4 + j);
        for (int64_t k = 0; k < 4; ++k)
          y += load_element(a.residual, (r * 4 + k) * h + i) * load_element(a.comb_res_mix, (r * 4 + k) * 4 + j);
        store_element(*a.out, (r * 4 + j) * h + i, y);
      }
}

using Matrix4 = std::array<std::array<double, 4>, 4>;
/// Each row, or each column, divided by its sum + eps.
inline void divide_by_sums(Matrix4& m, bool columns, double eps) {
  for (size_t i = 0; i < 4; ++i) {
    double sum = eps;
    for (size_t j = 0; j < 4; ++j) sum += columns ? m[j][i] : m[i][j];
    for (size_t j = 0; j < 4; ++j) (columns ? m[j][i] : m[i][j]) /= sum;
  }
}

/// squares(r): the sum of squares of row r; mix(r, i): its raw mixes.
template <class B, class Squares, class Mix>
void mhc_pre(const B& a, double k, Squares squares, Mix mix) {
  const int64_t h = a.residual.size(-1), rows = h ? a.residual.numel() / (4 * h) : 0;
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  for (int64_t r = 0; r < rows; ++r) {
    const double factor = 1 / std::sqrt(squares(r) / k + a.rms_eps);
    const auto logit = [&](int64_t i, int64_t part) {
      return mix(r, i) * factor * load_element(a.mhc_scale, part) + load_element(a.mhc_base, i);
    };
    Matrix4 m;
    for (size_t i = 0; i < 4; ++i) {
      double sum = 0;
      for (size_t j = 0; j < 4; ++j) sum += m[i][j] = std::exp(logit(static_cast<int64_t>(8 + 4 * i + j), 2));
      for (double& x : m[i]) x = x / sum + a.mhc_sinkhorn_eps;
    }
    for (int64_t n = 0; n < a.sinkhorn_repeat; ++n) {
      if (n) divide_by_sums(m, false, a.mhc_sinkhorn_eps);
      divide_by_sums(m, true, a.mhc_sinkhorn_eps);
    }
    for (int64_t i = 0; i < 4; ++i) {
      store_element(*a.post_mix, r * 4 + i, sigmoid(logit(4 + i, 1)) * a.mhc_post_mult_value);
      for (int64_t j = 0; j < 4; ++j)
        store_element(*a.comb_mix, r * 16 + i * 4 + j, m[static_cast<size_t>(i)][static_cast<size_t>(j)]);
    }
    for (int64_t c = 0; c < h; ++c) {
      double y = 0;
      for (int64_t i = 0; i < 4; ++i)
        y += (sigmoid(logit(i, 0)) + a.mhc_pre_eps) * load_element(a.residual, (r * 4 + i) * h + c);
      store_element(*a.layer_input, r * h + c, y);
    }
  }
}
inline void mhc_pre_big_fuse(const MhcPreBigFuse& a) {
  const int64_t rows = a.sqrsum.numel() / a.num_splits;
  const auto over_splits = [&](const TensorView& t, int64_t width, int64_t at) {
    double sum = 0;
    for (int64_t s = 0; s < a.num_splits; ++s) sum += load_element(t, s * rows * width + at);
    return sum;
  };
  mhc_pre(
      a, static_cast<double>(a.k), [&](int64_t r) { return over_splits(a.sqrsum, 1, r); },
      [&](int64_t r, int64_t i) { return over_splits(a.dot_mix, 24, r * 24 + i); });
}
inline void mhc_pre_with_prenorm(const MhcPreBigFuseWithPrenorm& a) {
  const int64_t n = 4 * a.residual.size(-1);
  mhc_pre(
      a, static_cast<double>(n),
      [&](int64_t r) {
        double sum = 0;
        for (int64_t i = 0; i < n; ++i) sum += std::pow(load_element(a.residual, r * n + i), 2);
        return sum;
      },
      [&](int64_t r, int64_t i) { return load_element(a.dot_mix, r * 24 + i); });
}

}  // namespace flashinfer::ref
