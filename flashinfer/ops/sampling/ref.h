// SPDX-License-Identifier: Apache-2.0
// Reference of softmax and sampling: double precision and plain loops, with a generator of its own.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "flashinfer/ops/common/reference.h"

namespace flashinfer::ref {

/// exp(x / T - max) / sum; `inverse` is 1 / T as f32, 0 for T = 0.
inline void softmax_row(const TensorView& logits, int64_t r, double inverse, const TensorView& out) {
  const int64_t v = logits.size(1);
  std::vector<double> y(static_cast<size_t>(v));
  double top = -HUGE_VAL, sum = 0;
  for (int64_t i = 0; i < v; ++i) {
    const double x = at(logits, {r, i});
    y[static_cast<size_t>(i)] = x == -HUGE_VAL ? x : x * inverse;
    top = std::max(top, y[static_cast<size_t>(i)]);
  }
  for (double& x : y) sum += x = std::isnan(x) ? x : top == -HUGE_VAL ? 0 : std::exp(x - top);
  for (int64_t i = 0; i < v; ++i) put(out, {r, i}, sum == 0 ? 0 : y[static_cast<size_t>(i)] / sum);
}

/// Philox4x32-10 on (counter, key), written from the paper's definition with arrays.
inline double philox_uniform(uint64_t seed, uint64_t subsequence, uint64_t offset) {
  std::array<uint64_t, 4> c{(offset / 4) & 0xffffffff, (offset / 4) >> 32, subsequence & 0xffffffff, subsequence >> 32};
  std::array<uint64_t, 2> k{seed & 0xffffffff, seed >> 32};
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = c[0] * 0xD2511F53u, p1 = c[2] * 0xCD9E8D57u;
    c = {(p1 >> 32) ^ c[1] ^ k[0], p1 & 0xffffffff, (p0 >> 32) ^ c[3] ^ k[1], p0 & 0xffffffff};
    k = {(k[0] + 0x9E3779B9u) & 0xffffffff, (k[1] + 0xBB67AE85u) & 0xffffffff};
  }
  const float bits = static_cast<float>(c[offset % 4]);
  return static_cast<double>(static_cast<float>(static_cast<double>(bits) * 0x1p-32 + 0x1p-33));
}

/// The uniform numbers of an output row, in order.
struct Uniforms {
  uint64_t seed, subsequence, offset;
  double next() { return philox_uniform(seed, subsequence, offset++); }
};
struct Limits {
  int64_t k;
  double p;
  float min;
};
inline std::vector<double> row_of(const TensorView& t, int64_t r) {
  std::vector<double> x(static_cast<size_t>(t.size(1)));
  for (int64_t i = 0; i < t.size(1); ++i) x[static_cast<size_t>(i)] = at(t, {r, i});
  return x;
}
/// Some element is positive, none is NaN or +inf.
inline bool usable(const std::vector<double>& p) {
  return std::none_of(p.begin(), p.end(), [](double x) { return std::isnan(x) || x == HUGE_VAL; }) &&
         std::any_of(p.begin(), p.end(), [](double x) { return x > 0; });
}
/// The k-th largest; NaN as -inf.
inline double kth_largest(std::vector<double> x, int64_t k) {
  for (double& v : x) v = std::isnan(v) ? -HUGE_VAL : v;
  std::sort(x.rbegin(), x.rend());
  return x[static_cast<size_t>(k <= 0 || k > static_cast<int64_t>(x.size()) ? static_cast<int64_t>(x.size()) : k) - 1];
}

/// One row and its random numbers; ids, -1 for a row without a usable probability.
struct Sampler {
  std::vector<double> p;
  Uniforms u;

  Sampler(const TensorView& in, int64_t row, const Uniforms& uniforms) : p(row_of(in, row)), u(uniforms) {}

  double sum_above(double a) const {
    double s = 0;
    for (double x : p) s += x > a ? x : 0;
    return s;
  }
  int64_t count_above(double a) const {
    return std::count_if(p.begin(), p.end(), [a](double x) { return x > a; });
  }
  /// The first element above `low` whose running sum exceeds `target`, else the last above it.
  int64_t draw(double low, double target) const {
    double run = 0;
    int64_t last = -1;
    for (size_t i = 0; i < p.size(); ++i) {
      if (!(p[i] > low)) continue;
      last = static_cast<int64_t>(i);
      run += p[i];
      if (run > target) break;
    }
    return last;
  }
  int64_t plain() { return usable(p) ? draw(0, u.next()) : -1; }
  int64_t min_p(float min) {
    if (!usable(p)) return -1;
    const double pivot = static_cast<double>(static_cast<float>(*std::max_element(p.begin(), p.end())) * min);
    double sum = 0;
    for (double& x : p) sum += x = x >= pivot && x > 0 ? x : 0;
    return draw(0, u.next() * sum);
  }
  /// Rejection sampling: draws above `low`, accepts a token that the filters keep, else raises `low`.
  int64_t draw_filtered(int64_t k, double top_p) {
    double low = 0, high = std::max(1.0, *std::max_element(p.begin(), p.end())), mass = 1;
    int64_t t = -1;
    while (low < high) {
      const int64_t next_token = draw(low, u.next() * mass);
      if (next_token < 0) break;
      t = next_token;
      const double a = p[static_cast<size_t>(t)], b = (a + high) / 2;
      const auto allowed = [&](double x) { return count_above(x) < k && sum_above(x) < top_p; };
      if (allowed(a)) return t;
      if (allowed(b)) {
        low = a, high = b, mass = sum_above(a);
      } else {
        if (b == low) break;  // no progress left
        low = b, mass = sum_above(b);
      }
    }
    return t;
  }
  int64_t top_k_top_p(Limits l, bool joint) {
    if (!usable(p)) return -1;
    const int64_t n = static_cast<int64_t>(p.size());
    if (l.k <= 0 || l.k > n) l.k = n;
    if (l.p <= 0) return std::max_element(p.begin(), p.end()) - p.begin();
    if (l.p >= 1) l.p = HUGE_VAL;
    if (joint) return draw_filtered(l.k, l.p);
    const double least = std::max(kth_largest(p, l.k), 5e-324);
    double sum = 0;
    for (double x : p) sum += x >= least ? x : 0;
    for (double& x : p) x = x >= least ? x / sum : 0;
    return draw_filtered(n, l.p);
  }
  /// The same of softmax(p); top_k first is a mask on the logits.
  int64_t from_logits(Limits l, bool joint) {
    const double least = joint ? -HUGE_VAL : kth_largest(p, l.k), top = *std::max_element(p.begin(), p.end());
    if (std::any_of(p.begin(), p.end(), [](double x) { return std::isnan(x) || x == HUGE_VAL; })) return -1;
    double sum = 0;
    for (double& x : p) sum += x = x >= least && x > -HUGE_VAL ? std::exp(x - top) : 0;
    for (double& x : p) x = sum > 0 ? x / sum : 0;
    if (!joint) l.k = static_cast<int64_t>(p.size());
    return top_k_top_p(l, joint);
  }
};

/// The index of the largest logit + Gumbel noise; 0 when none is above -inf.
inline int64_t gumbel_max(const TensorView& logits, int64_t row, const Uniforms& u) {
  const int64_t v = logits.size(1), group = v % 4 == 0 ? 4 : v % 2 == 0 ? 2 : 1;
  double best = -HUGE_VAL;
  int64_t at_best = 0;
  for (int64_t i = 0; i < v; ++i) {
    const uint64_t first = u.subsequence * static_cast<uint64_t>(v) + static_cast<uint64_t>(i - i % group);
    const double uniform = static_cast<double>(
        static_cast<float>(philox_uniform(u.seed, first, u.offset + static_cast<uint64_t>(i % group)) * (1 - 0x1p-23)));
    const double x = at(logits, {row, i}) - std::log(2.0) * std::log2(-std::log2(uniform));
    if (x > best) best = x, at_best = i;
  }
  return at_best;
}

/// probs[r] with fewer than k above and less than top_p above, divided by their sum.
inline void renorm_row(const TensorView& probs, int64_t r, int64_t k, double top_p, const TensorView& out) {
  const std::vector<double> p = row_of(probs, r);
  double least = std::max(kth_largest(p, k), 5e-324), sum = 0, run = 0;
  if (top_p < 1) {
    std::vector<double> sorted = p;
    std::sort(sorted.rbegin(), sorted.rend());
    for (size_t i = 0; i < sorted.size() && (i == 0 || run < top_p); ++i) {
      run += std::max(sorted[i], 0.0);
      least = std::max(sorted[i], 5e-324);
    }
  }
  for (double x : p) sum += x >= least ? x : 0;
  const bool any = usable(p);
  for (int64_t i = 0; i < probs.size(1); ++i) {
    const double x = p[static_cast<size_t>(i)];
    put(out, {r, i}, any && x >= least ? x / sum : 0);
  }
}
inline void mask_row(const TensorView& logits, int64_t r, int64_t k, const TensorView& out) {
  const std::vector<double> x = row_of(logits, r);
  const double least = kth_largest(x, k);
  for (int64_t i = 0; i < logits.size(1); ++i)
    put(out, {r, i}, x[static_cast<size_t>(i)] >= least ? x[static_cast<size_t>(i)] : -HUGE_VAL);
}

/// (accepted, emitted) of row r; the ids go to `out`.
inline std::pair<int64_t, int64_t> chain_row(const TensorView& draft, const TensorView& ids, const TensorView& target,
                                             int64_t r, Uniforms u, const TensorView& out) {
  const int64_t n = draft.size(1), v = draft.size(2);
  const auto accepts = [&](int64_t i) {
    const double x = u.next();
    const int64_t id = static_cast<int64_t>(at(ids, {r, i}));
    return id >= 0 && id < v && x * at(draft, {r, i, id}) < at(target, {r, i, id});
  };
  int64_t emitted = 0;
  while (emitted < n && accepts(emitted)) ++emitted;
  for (int64_t i = 0; i < emitted; ++i) put(out, {r, i}, at(ids, {r, i}));
  int64_t accepted = emitted;
  for (int64_t i = emitted; i < n; ++i) accepted += accepts(i);
  const double x = u.next();
  std::vector<double> rest(static_cast<size_t>(v));
  double sum = 0;
  for (bool minus : {true, false}) {
    if (sum > 0) break;
    for (int64_t i = 0; i < v; ++i)
      sum += rest[static_cast<size_t>(i)] =
          std::max(at(target, {r, emitted, i}) - (minus && emitted < n ? at(draft, {r, emitted, i}) : 0.0), 0.0);
  }
  int64_t token = 0;
  double run = 0;
  for (int64_t i = 0; i < v && !(run > x * sum); ++i)
    if (rest[static_cast<size_t>(i)] > 0) run += rest[static_cast<size_t>(i)], token = i;
  put(out, {r, emitted}, static_cast<double>(token));
  for (int64_t i = emitted + 1; i <= n; ++i) put(out, {r, i}, -1);
  return {accepted, emitted};
}

}  // namespace flashinfer::ref
