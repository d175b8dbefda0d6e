// SPDX-License-Identifier: Apache-2.0
// Attention of one request in double precision, from the definition. It uses neither plans nor the kernels'
// parameters: reference.cc gives it the elements.
#pragma once
#include <cmath>
#include <functional>
#include <vector>

namespace flashinfer::ref {

struct AttentionRequest {
  using Row = std::vector<double>;
  int64_t rows = 0, keys = 0, heads = 0, kv_heads = 0, dim_vo = 0;
  std::function<Row(int64_t row, int64_t head)> query;
  std::function<Row(int64_t key, int64_t kv_head)> key, value;  // called only for keys that some row sees
  std::function<bool(int64_t row, int64_t key)> visible;
  std::function<double(int64_t row, int64_t key, int64_t head, double dot)> logit;  // in natural units
  std::function<double(int64_t head)> sink;  // a logit without a value in every denominator; absent: none
  std::function<void(int64_t row, int64_t head, const Row& out, double lse)> store;  // lse: natural logarithm
};

/// out = sum_j softmax(logits)_j value_j; a row that sees no key has zeros, and without a sink an LSE of -inf.
inline void attention(const AttentionRequest& r) {
  using Row = AttentionRequest::Row;
  const int64_t group = r.heads / r.kv_heads;
  for (int64_t g = 0; g < r.kv_heads; ++g) {
    std::vector<Row> keys(static_cast<size_t>(r.keys)), values(static_cast<size_t>(r.keys));
    for (int64_t h = g * group; h < (g + 1) * group; ++h)
      for (int64_t i = 0; i < r.rows; ++i) {
        const Row q = r.query(i, h);
        std::vector<double> x(static_cast<size_t>(r.keys), -INFINITY);
        double m = -INFINITY;
        for (int64_t j = 0; j < r.keys; ++j) {
          if (!r.visible(i, j)) continue;
          const auto at = static_cast<size_t>(j);
          if (keys[at].empty()) keys[at] = r.key(j, g), values[at] = r.value(j, g);
          double dot = 0;
          for (size_t d = 0; d < q.size(); ++d) dot += q[d] * keys[at][d];
          x[at] = r.logit(i, j, h, dot);
          m = std::isnan(x[at]) ? x[at] : std::fmax(m, x[at]);
        }
        const bool none = m == -INFINITY;
        const double sink = r.sink ? r.sink(h) : -INFINITY;
        if (sink > m) m = sink;
        Row out(static_cast<size_t>(r.dim_vo), 0.0);
        double sum = r.sink ? std::exp(sink - m) : 0;
        for (size_t j = 0; j < x.size(); ++j) {
          if (x[j] == -INFINITY) continue;
          const double e = std::exp(x[j] - m);
          sum += e;
          for (size_t d = 0; d < out.size(); ++d) out[d] += e * values[j][d];
        }
        for (double& o : out) o = none ? 0 : o / sum;
        r.store(i, h, out, sum == 0 ? -INFINITY : m + std::log(sum));
      }
  }
}

}  // namespace flashinfer::ref
