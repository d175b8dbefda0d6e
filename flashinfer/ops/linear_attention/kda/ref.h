// SPDX-License-Identifier: Apache-2.0
// The delta rule with a decay of each key channel in double precision, token by token.
#pragma once
#include <cmath>
#include <vector>

#include "flashinfer/op/index_checks.h"
#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/linear_attention/kda/kda.h"

namespace flashinfer::ref {

inline void kda_recurrence(const KdaRecurrence& a) {
  const int64_t width = a.q.size(2), rows = a.v.size(2), value_heads = a.v.size(1), n = a.cu_seqlens.size(0) - 1;
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto rate = [&](int64_t t, int64_t h, int64_t hq, int64_t k) {
    const double g = at(a.g, {t, h, k});
    if (!a.use_gate) return g;
    const double x = g + at(*a.dt_bias, {hq, k}), e = std::fmin(std::exp(get(*a.A_log, hq)), 3.4e38);
    return a.lower_bound ? *a.lower_bound * sigmoid(e * x) : -e * (x > 20 ? x : std::log1p(std::exp(x)));
  };
  const auto row = [&](const TensorView& x, int64_t t, int64_t h, double scale) {
    std::vector<double> r;
    double squares = 1e-6;
    for (int64_t k = 0; k < width; ++k) r.push_back(at(x, {t, h, k})), squares += r.back() * r.back();
    for (double& e : r) e *= scale * (a.use_qk_l2norm ? 1 / std::sqrt(squares) : 1);
    return r;
  };
  for (int64_t t = 0; t < a.q.size(0); ++t)
    for (int64_t h = 0; h < value_heads; ++h)
      for (int64_t v = 0; v < rows; ++v) put(*a.output, {t, h, v}, 0);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t first = op::index_at(a.cu_seqlens, i), end = op::index_at(a.cu_seqlens, i + 1);
    const int64_t from = !a.state ? -1 : a.read_indices ? op::index_at(*a.read_indices, i) : i;
    if (first == end || (a.state && from < 0)) continue;
    for (int64_t h = 0; h < value_heads; ++h) {
      const int64_t hq = h * a.q.size(1) / value_heads;
      std::vector<double> s(static_cast<size_t>(rows * width), 0.0);
      const TensorView* const source = a.source ? &*a.source : a.state ? &*a.state : nullptr;
      for (int64_t e = 0; e < rows * width && source; ++e)
        s[static_cast<size_t>(e)] = at(*source, {from, h, e / width, e % width});
      const auto store = [&](const TensorView& pool, int64_t slot) {
        if (slot < 0) return;
        for (int64_t e = 0; e < rows * width; ++e)
          put(pool, {slot, h, e / width, e % width}, s[static_cast<size_t>(e)]);
      };
      for (int64_t t = first; t < end; ++t) {
        const std::vector<double> k = row(a.k, t, hq, 1);
        const std::vector<double> q = row(a.q, t, hq, a.scale.value_or(1 / std::sqrt(static_cast<double>(width))));
        const double beta = at(a.beta, {t, h}), b = a.beta_is_logit ? sigmoid(beta) : beta;
        for (int64_t v = 0; v < rows; ++v) {
          double* const line = s.data() + v * width;
          double dot = 0, o = 0;
          for (int64_t j = 0; j < width; ++j)
            dot += (line[j] *= std::exp(rate(t, h, hq, j))) * k[static_cast<size_t>(j)];
          const double d = b * (at(a.v, {t, h, v}) - dot);
          if (a.correction_cache) put(*a.correction_cache, {from, h, t - first, v}, d);
          for (int64_t j = 0; j < width; ++j)
            o += (line[j] += d * k[static_cast<size_t>(j)]) * q[static_cast<size_t>(j)];
          put(*a.output, {t, h, v}, o);
        }
        for (int64_t j = 0; j < 2 * width && a.kg_cache; ++j)
          put(*a.kg_cache, {from, h, t - first, j}, j < width ? at(a.k, {t, hq, j}) : at(a.g, {t, h, j - width}));
        if (a.after_indices) store(a.after_states ? *a.after_states : *a.state, op::index_at(*a.after_indices, t));
      }
      if (a.state && !a.disable_state_update)
        store(*a.state, a.write_indices ? op::index_at(*a.write_indices, i) : from);
    }
  }
}

}  // namespace flashinfer::ref
