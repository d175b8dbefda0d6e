// SPDX-License-Identifier: Apache-2.0
// What the results of the prefill ops must be: the recurrence token by token in double precision.
#pragma once
#include <type_traits>

#include "flashinfer/ops/linear_attention/gdn/decode_ref.h"
#include "flashinfer/ops/linear_attention/gdn/prefill_call.h"

namespace flashinfer::ref {

class GdnPrefillReference {
 public:
  explicit GdnPrefillReference(const ops::linear_attention::PrefillCall& call, bool keep_empty) : c_(call) {
    for (int64_t n = 0; n + 1 < c_.sequences.size(0); ++n)
      for (int64_t h = 0; h < c_.heads(); ++h) run(n, h, keep_empty);
  }

 private:
  /// Row of `t` for head h, normalised and rounded to the type when asked.
  std::vector<double> row(const TensorView& t, int64_t token, int64_t h, bool normalise) const {
    const int64_t head = h * t.size(1) / c_.heads();
    std::vector<double> x(static_cast<size_t>(t.size(2)));
    double squares = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = at(t, {token, head, static_cast<int64_t>(i)});
      squares += x[i] * x[i];
    }
    if (!normalise) return x;
    const Tensor one = Tensor::empty({1}, t.dtype());
    for (double& e : x) {
      store_element(one.view(), 0, e / std::sqrt(squares + 1e-6));
      e = load_element(one.view(), 0);
    }
    return x;
  }
  void store_state(const GdnState& s, const TensorView& t, int64_t slot, int64_t h) const {
    for (size_t v = 0; v < s.size(); ++v)
      for (size_t k = 0; k < s[v].size(); ++k)
        put(t, {slot, h, static_cast<int64_t>(v), static_cast<int64_t>(k)}, s[v][k]);
  }
  void update(GdnState& s, int64_t i, int64_t h) const {
    std::vector<double> k = row(c_.k, i, h, c_.l2norm), v = row(c_.v, i, h, false);
    if (!c_.channels) return gdn_update(s, 1, c_.beta.defined() ? at(c_.beta, {i, h}) : 1, k, v);
    const std::vector<double> beta = c_.beta.defined() ? row(c_.beta, i, h, false) : std::vector<double>(k.size(), 1),
                              w = c_.write.defined() ? row(c_.write, i, h, false) : std::vector<double>(v.size(), 1);
    for (size_t r = 0; r < s.size(); ++r) {
      double n = w[r] * v[r];
      for (size_t j = 0; j < k.size(); ++j) n -= s[r][j] * beta[j] * k[j];
      for (size_t j = 0; j < k.size(); ++j) s[r][j] += n * k[j];
    }
  }
  void decay(GdnState& s, int64_t token, int64_t h) const {
    if (!c_.gate.defined()) return;
    const std::vector<double> g = c_.channels ? row(c_.gate, token, h, false) : std::vector<double>();
    for (auto& r : s)
      for (size_t j = 0; j < r.size(); ++j) r[j] *= c_.channels ? std::exp(g[j]) : at(c_.gate, {token, h});
  }
  void run(int64_t n, int64_t h, bool keep_empty) const {
    const int64_t start = op::index_at(c_.sequences, n), end = op::index_at(c_.sequences, n + 1);
    if (start == end && (keep_empty || !c_.final.defined())) return;
    const int64_t slot = c_.slots.defined() ? op::index_at(c_.slots, n) : n;
    GdnState s(static_cast<size_t>(c_.v.size(2)), std::vector<double>(static_cast<size_t>(c_.q.size(2))));
    for (size_t v = 0; c_.initial.defined() && v < s.size(); ++v)
      for (size_t k = 0; k < s[v].size(); ++k)
        s[v][k] = at(c_.initial, {slot, h, static_cast<int64_t>(v), static_cast<int64_t>(k)});
    for (int64_t t = start; t < end; ++t) {
      decay(s, t, h);
      for (int64_t j = 0; j < c_.updates; ++j) update(s, t * c_.updates + j, h);
      const std::vector<double> q = row(c_.q, t, h, c_.l2norm);
      for (size_t v = 0; v < s.size(); ++v) {
        double o = 0;
        for (size_t j = 0; j < q.size(); ++j) o += s[v][j] * q[j];
        put(c_.output, {t, h, static_cast<int64_t>(v)}, o * c_.scale);
      }
      if (c_.every && (t + 1 - start) % c_.every == 0)
        store_state(s, c_.checkpoints, op::index_at(c_.checkpoint_starts, n) + (t + 1 - start) / c_.every - 1, h);
    }
    if (c_.final.defined()) store_state(s, c_.final, slot, h);
  }

  const ops::linear_attention::PrefillCall& c_;
};

}  // namespace flashinfer::ref
