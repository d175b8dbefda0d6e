// SPDX-License-Identifier: Apache-2.0
// What the results of the decode ops must be: the recurrence token by token in double precision.
#pragma once
#include <cmath>
#include <vector>

#include "flashinfer/op/index_checks.h"
#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/linear_attention/gdn/decode_call.h"

namespace flashinfer::ref {

inline double softplus(double x) { return x > 20 ? x : std::log1p(std::exp(x)); }
inline double logistic(double x) { return 1 / (1 + std::exp(-x)); }
/// S[v][k] of one head.
using GdnState = std::vector<std::vector<double>>;

/// Elements [..., 0 .. n) of `t`, divided by their norm when asked, times `scale`.
inline std::vector<double> gdn_row(const TensorView& t, int64_t i, int64_t j, int64_t h, bool normalise, double scale) {
  std::vector<double> x(static_cast<size_t>(t.size(3)));
  double squares = 0;
  for (size_t n = 0; n < x.size(); ++n) {
    x[n] = at(t, {i, j, h, static_cast<int64_t>(n)});
    squares += x[n] * x[n];
  }
  for (double& e : x) e *= (normalise ? 1 / std::sqrt(squares + 1e-6) : 1) * scale;
  return x;
}
/// S <- decay S + beta (v - decay S k) k^T.
inline void gdn_update(GdnState& s, double decay, double beta, const std::vector<double>& k,
                       const std::vector<double>& v) {
  for (size_t r = 0; r < s.size(); ++r) {
    double dot = 0;
    for (size_t n = 0; n < k.size(); ++n) dot += (s[r][n] *= decay) * k[n];
    for (size_t n = 0; n < k.size(); ++n) s[r][n] += beta * (v[r] - dot) * k[n];
  }
}

class GdnDecodeReference {
 public:
  explicit GdnDecodeReference(const ops::linear_attention::DecodeCall& call) : c_(call) {
    for (int64_t i = 0; i < c_.batch(); ++i)
      for (int64_t h = 0; h < c_.value_heads(); ++h) states_.push_back(slot(c_.read, i) < 0 ? GdnState() : load(i, h));
    for (int64_t i = 0; i < c_.batch(); ++i)
      for (int64_t h = 0; h < c_.value_heads(); ++h) run(i, h);
  }

 private:
  static int64_t slot(const TensorView& indices, int64_t i) { return indices.defined() ? op::index_at(indices, i) : i; }
  double state(int64_t p, int64_t h, int64_t v, int64_t k) const {
    return c_.v_innermost ? at(c_.state, {p, h, k, v}) : at(c_.state, {p, h, v, k});
  }
  GdnState load(int64_t i, int64_t h) const {
    GdnState s(static_cast<size_t>(c_.rows()), std::vector<double>(static_cast<size_t>(c_.width())));
    for (size_t v = 0; v < s.size(); ++v)
      for (size_t k = 0; k < s[v].size(); ++k)
        s[v][k] = state(slot(c_.read, i), h, static_cast<int64_t>(v), static_cast<int64_t>(k));
    return s;
  }
  template <class Put>
  static void store(const GdnState& s, Put put) {
    for (size_t v = 0; v < s.size(); ++v)
      for (size_t k = 0; k < s[v].size(); ++k) put(static_cast<int64_t>(v), static_cast<int64_t>(k), s[v][k]);
  }
  void cache(int64_t from, int64_t t, int64_t i, int64_t h, int64_t query, double log, double beta) const {
    for (int64_t n = 0; n < c_.rows(); ++n) put(c_.raw_v, {from, h, t, n}, at(c_.v, {i, t, h, n}));
    for (int64_t n = 0; n < c_.width(); ++n) put(c_.raw_k, {from, query, t, n}, at(c_.k, {i, t, query, n}));
    put(c_.log_decay, {from, h, t}, log);
    put(c_.beta, {from, h, t}, beta);
  }
  void after(const GdnState& s, int64_t i, int64_t h, int64_t t) const {
    if (!c_.after.defined()) return;
    if (!c_.after_slots.defined())
      return store(s, [&](int64_t v, int64_t k, double x) { put(c_.after, {i, t, h, v, k}, x); });
    const auto to = static_cast<int64_t>(at(c_.after_slots, {i, t}));
    if (to >= 0) store(s, [&](int64_t v, int64_t k, double x) { put(c_.after, {to, h, v, k}, x); });
  }
  void run(int64_t i, int64_t h) {
    const int64_t from = slot(c_.read, i), to = slot(c_.write, i), query = h * c_.heads() / c_.value_heads();
    GdnState& s = states_[static_cast<size_t>(i * c_.value_heads() + h)];
    for (int64_t t = 0; t < c_.tokens(); ++t) {
      if (from < 0) {
        for (int64_t n = 0; n < c_.rows(); ++n) put(c_.output, {i, t, h, n}, 0);
        continue;
      }
      const double x = at(c_.a, {i, t, h}) + at(c_.dt_bias, {h}), beta = logistic(at(c_.b, {i, t, h}));
      const double log = -std::min(std::exp(at(c_.A_log, {h})), 3.4028234663852886e38) * softplus(x);
      const std::vector<double> k = gdn_row(c_.k, i, t, query, c_.l2norm, 1),
                                q = gdn_row(c_.q, i, t, query, c_.l2norm, c_.scale);
      gdn_update(s, std::exp(log), beta, k, gdn_row(c_.v, i, t, h, false, 1));
      for (int64_t n = 0; n < c_.rows(); ++n) {
        double o = 0;
        for (size_t j = 0; j < q.size(); ++j) o += s[static_cast<size_t>(n)][j] * q[j];
        put(c_.output, {i, t, h, n}, o);
      }
      if (c_.raw_v.defined()) cache(from, t, i, h, query, log, beta);
      after(s, i, h, t);
    }
    if (from < 0 || to < 0 || !c_.update) return;
    store(s, [&](int64_t v, int64_t k, double y) {
      c_.v_innermost ? put(c_.state, {to, h, k, v}, y) : put(c_.state, {to, h, v, k}, y);
    });
  }

  const ops::linear_attention::DecodeCall& c_;
  std::vector<GdnState> states_;
};

}  // namespace flashinfer::ref
