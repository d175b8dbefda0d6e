// SPDX-License-Identifier: Apache-2.0
// The truth about softmax and sampling, in double precision and plain loops, with a generator of its own.
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
  for (double& x : y) sum += x = top == -HUGE_VAL ? 0 : std::exp(x - top);
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

/// One row's probabilities and its random numbers.
struct Sampler {
  std::vector<double> p;
  uint64_t seed, subsequence, offset;

  double next() { return philox_uniform(seed, subsequence, offset++); }
  bool usable() const {
    bool positive = false;
    for (double x : p) {
      if (!std::isfinite(x) && x != -HUGE_VAL) return false;
      positive |= x > 0;
    }
    return positive;
  }
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
  /// The rejection loop of ops.md 5.3 (4, 7).
  int64_t draw_filtered(int64_t k, double top_p) {
    double low = 0, high = std::max(1.0, *std::max_element(p.begin(), p.end())), mass = 1;
    int64_t t = -1;
    while (low < high) {
      const int64_t next_token = draw(low, next() * mass);
      if (next_token < 0) break;
      t = next_token;
      const double a = p[static_cast<size_t>(t)], b = (a + high) / 2;
      const auto allowed = [&](double x) { return count_above(x) < k && sum_above(x) < top_p; };
      if (allowed(a)) return t;
      if (allowed(b)) {
        low = a, high = b, mass = sum_above(a);
      } else {
        if (b == low) break;  // doubles are finer than the kernel's floats: no progress left
        low = b, mass = sum_above(b);
      }
    }
    return t;
  }
  int64_t top_k_top_p(int64_t k, double top_p, bool joint) {
    const int64_t n = static_cast<int64_t>(p.size());
    if (k <= 0 || k > n) k = n;
    if (top_p <= 0) return std::max_element(p.begin(), p.end()) - p.begin();
    if (top_p >= 1) top_p = HUGE_VAL;
    if (joint) return draw_filtered(k, top_p);
    std::vector<double> sorted = p;
    std::sort(sorted.rbegin(), sorted.rend());
    const double least = std::max(sorted[static_cast<size_t>(k - 1)], 5e-324);
    double sum = 0;
    for (double x : p) sum += x >= least ? x : 0;
    for (double& x : p) x = x >= least ? x / sum : 0;
    return draw_filtered(n, top_p);
  }
};

}  // namespace flashinfer::ref
