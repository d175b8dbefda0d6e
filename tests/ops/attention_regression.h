// SPDX-License-Identifier: Apache-2.0
// One request in f32, its definition in double precision, and wrappers over it.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "flashinfer/core/context.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/attention/op.h"
#include "tests/ops/data.h"
#include "tests/ops/errors.h"

namespace flashinfer::attention_test {

inline Tensor no_workspace() { return Tensor::empty({0}, DType::kU8); }

/// q [rows, hq, d], k and v [keys, hkv, d].
struct Problem {
  int64_t rows = 5, keys = 37, hq = 4, hkv = 2, d = 32;
  unsigned seed = 1;
  Tensor q, k, v;
  Problem(int64_t r = 5, int64_t n = 37, int64_t heads = 4, int64_t kv_heads = 2, int64_t dim = 32, unsigned s = 1)
      : rows(r),
        keys(n),
        hq(heads),
        hkv(kv_heads),
        d(dim),
        seed(s),
        q(random_tensor<float>({r, heads, dim}, s)),
        k(random_tensor<float>({n, kv_heads, dim}, s + 1)),
        v(random_tensor<float>({n, kv_heads, dim}, s + 2)) {}
};
/// What a row sees and what becomes of its logits (natural units, after sm_scale).
struct Rules {
  std::function<bool(int64_t i, int64_t j)> sees = [](int64_t, int64_t) { return true; };
  std::function<double(double x, int64_t i, int64_t j, int64_t h)> logit = [](double x, int64_t, int64_t, int64_t) {
    return x;
  };
  double scale = 0;  // 0: 1 / sqrt(d)
  const float* sinks = nullptr;
};
inline Rules causal(const Problem& p) {
  Rules r;
  r.sees = [off = p.keys - p.rows](int64_t i, int64_t j) { return j <= i + off; };
  return r;
}
struct Expected {
  std::vector<double> out, lse;  // lse in natural units
};
inline Expected expected(const Problem& p, const Rules& r) {
  Expected e;
  const double scale = r.scale != 0 ? r.scale : 1 / std::sqrt(static_cast<double>(p.d));
  for (int64_t i = 0; i < p.rows; ++i)
    for (int64_t h = 0; h < p.hq; ++h) {
      const int64_t g = h / (p.hq / p.hkv);
      double top = r.sinks ? static_cast<double>(r.sinks[h]) : -INFINITY;
      std::vector<double> x(static_cast<size_t>(p.keys), -INFINITY), o(static_cast<size_t>(p.d), 0.0);
      bool any = false;
      for (int64_t j = 0; j < p.keys; ++j) {
        if (!r.sees(i, j)) continue;
        double dot = 0;
        for (int64_t c = 0; c < p.d; ++c)
          dot += static_cast<double>(p.q.data_as<float>()[(i * p.hq + h) * p.d + c]) *
                 static_cast<double>(p.k.data_as<float>()[(j * p.hkv + g) * p.d + c]);
        x[static_cast<size_t>(j)] = r.logit(dot * scale, i, j, h);
        top = std::max(top, x[static_cast<size_t>(j)]);
        any = true;
      }
      double sum = r.sinks ? std::exp(static_cast<double>(r.sinks[h]) - top) : 0;
      for (int64_t j = 0; j < p.keys && any; ++j) {
        if (!r.sees(i, j)) continue;
        const double w = std::exp(x[static_cast<size_t>(j)] - top);
        sum += w;
        for (int64_t c = 0; c < p.d; ++c)
          o[static_cast<size_t>(c)] += w * static_cast<double>(p.v.data_as<float>()[(j * p.hkv + g) * p.d + c]);
      }
      for (double c : o) e.out.push_back(any ? c / sum : 0.0);
      e.lse.push_back(top == -INFINITY ? -INFINITY : top + std::log(sum));
    }
  return e;
}
inline void expect_values(const Tensor& got, const std::vector<double>& want, double tolerance,
                          const std::string& what) {
  ASSERT_EQ(static_cast<size_t>(got.numel()), want.size()) << what;
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isinf(want[i]))
      ASSERT_EQ(static_cast<double>(got.data_as<float>()[i]), want[i]) << what << ", element " << i;
    else
      ASSERT_NEAR(static_cast<double>(got.data_as<float>()[i]), want[i], tolerance * (1 + std::abs(want[i])))
          << what << ", element " << i;
  }
}
/// out, and lse in base 2.
inline void expect_both(const std::pair<Tensor, Tensor>& got, Expected want, const std::string& what,
                        double tolerance = 2e-5) {
  expect_values(got.first, want.out, tolerance, what + ", out");
  for (double& x : want.lse) x /= std::log(2.0);
  expect_values(got.second, want.lse, tolerance, what + ", lse");
}
inline void expect_bits(const Tensor& got, const Tensor& want, const std::string& what) {
  ASSERT_EQ(got.nbytes(), want.nbytes()) << what;
  EXPECT_EQ(std::memcmp(got.data(), want.data(), static_cast<size_t>(want.nbytes())), 0) << what;
}

/// The keys of a Problem in pages, the last page first; NaN in all else.
struct Pages {
  int64_t size;
  Tensor cache, indptr, indices, last;
  explicit Pages(const Problem& p, int64_t page_size = 16, bool hnd = false) : size(page_size) {
    const int64_t n = ceil_div(p.keys, size);
    cache = hnd ? Tensor::empty({n + 1, 2, p.hkv, size, p.d}, DType::kF32)
                : Tensor::empty({n + 1, 2, size, p.hkv, p.d}, DType::kF32);
    for (float& x : cache.span<float>()) x = NAN;
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < n; ++i) ids.push_back(static_cast<int32_t>(n - 1 - i));
    for (int64_t j = 0; j < p.keys; ++j)
      for (int64_t plane = 0; plane < 2; ++plane)
        for (int64_t h = 0; h < p.hkv; ++h) {
          const int64_t at = (ids[static_cast<size_t>(j / size)] * 2 + plane) * size * p.hkv +
                             (hnd ? h * size + j % size : j % size * p.hkv + h);
          std::memcpy(cache.data_as<float>() + at * p.d, (plane ? p.v : p.k).data_as<float>() + (j * p.hkv + h) * p.d,
                      static_cast<size_t>(p.d) * 4);
        }
    indptr = ints({0, static_cast<int32_t>(n)}), indices = ints(ids);
    last = ints({static_cast<int32_t>(p.keys ? (p.keys - 1) % size + 1 : 1)});
  }
};
inline BatchPrefillPlan prefill_plan(const Problem& p, const Pages& pages, const Tensor& qo) {
  return {.qo_indptr = qo,
          .paged_kv_indptr = pages.indptr,
          .paged_kv_indices = pages.indices,
          .paged_kv_last_page_len = pages.last,
          .num_qo_heads = p.hq,
          .num_kv_heads = p.hkv,
          .head_dim_qk = p.d,
          .page_size = pages.size,
          .q_data_type = DType::kF32};
}
inline BatchDecodePlan decode_plan(const Problem& p, const Pages& pages) {
  return {.indptr = pages.indptr,
          .indices = pages.indices,
          .last_page_len = pages.last,
          .num_qo_heads = p.hq,
          .num_kv_heads = p.hkv,
          .head_dim = p.d,
          .page_size = pages.size,
          .q_data_type = DType::kF32};
}

}  // namespace flashinfer::attention_test
