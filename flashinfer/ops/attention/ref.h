// SPDX-License-Identifier: Apache-2.0
// Attention in double precision, one row at a time, from the definition. It shares only the parameter block with the
// kernels.
#pragma once
#include <cmath>
#include <limits>
#include <vector>

#include "flashinfer/ops/attention/kernels/params.h"

namespace flashinfer::ref {
namespace attention_detail {

inline double element(DType t, const void* base, int64_t i) {
  switch (t) {
    case DType::kF32: return static_cast<const float*>(base)[i];
    case DType::kF16: return static_cast<float>(static_cast<const f16_t*>(base)[i]);
    case DType::kBF16: return static_cast<float>(static_cast<const bf16_t*>(base)[i]);
    case DType::kF8E4M3: return static_cast<float>(static_cast<const e4m3_t*>(base)[i]);
    default: return static_cast<float>(static_cast<const e5m2_t*>(base)[i]);
  }
}
inline void put(DType t, void* base, int64_t i, double x) {
  const float f = static_cast<float>(x);
  switch (t) {
    case DType::kF32: static_cast<float*>(base)[i] = f; break;
    case DType::kF16: static_cast<f16_t*>(base)[i] = f16_t(f); break;
    default: static_cast<bf16_t*>(base)[i] = bf16_t(f); break;
  }
}
inline std::vector<double> row(DType t, const void* base, int64_t at, int64_t dim) {
  std::vector<double> x(static_cast<size_t>(dim));
  for (int64_t d = 0; d < dim; ++d) x[static_cast<size_t>(d)] = element(t, base, at + d);
  return x;
}
/// Like row; an NVFP4 cache has two values a byte (low nibble first) and an e4m3 scale for every 16.
inline std::vector<double> kv_row(DType t, const void* base, int64_t at, int64_t dim, const uint8_t* sf,
                                  int64_t sf_at) {
  if (t != DType::kF4E2M1x2) return row(t, base, at, dim);
  constexpr double kGrid[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  std::vector<double> x(static_cast<size_t>(dim));
  for (int64_t d = 0; d < dim; ++d) {
    const int code = static_cast<const uint8_t*>(base)[at + d / 2] >> (d % 2 * 4) & 15;
    x[static_cast<size_t>(d)] = (code & 8 ? -1 : 1) * kGrid[code & 7] * element(DType::kF8E4M3, sf, sf_at + d / 16);
  }
  return x;
}
/// Pairs (d, d + D/2) turned by position * theta^(-2d/D) / scale.
inline void rotate(std::vector<double>& x, double position, double scale, double theta) {
  const size_t half = x.size() / 2;
  for (size_t d = 0; d < half; ++d) {
    const double angle =
        position / scale * std::pow(theta, -2.0 * static_cast<double>(d) / static_cast<double>(x.size()));
    const double a = x[d], b = x[d + half];
    x[d] = a * std::cos(angle) - b * std::sin(angle);
    x[d + half] = a * std::sin(angle) + b * std::cos(angle);
  }
}
}  // namespace attention_detail

struct Rope {
  double scale = 1, theta = 1e4;
};
/// Further factors of the logits [Hq] and outputs [Hkv], or null.
struct HeadScales {
  const double *logits = nullptr, *outputs = nullptr;
};

/// Every row of request `b`.
inline void attention_request(const AttentionConfig& c, const AttentionParams& p, const Rope& rope, int64_t b,
                              const HeadScales& heads = {}) {
  using namespace attention_detail;
  const int64_t first = p.qo_indptr ? p.qo_indptr[b] : b, qo_len = p.qo_indptr ? p.qo_indptr[b + 1] - first : 1;
  const int64_t kv_len = p.kv_len[b], off = kv_len - qo_len, group = p.num_qo_heads / p.num_kv_heads;
  auto slot = [&](int64_t j, int64_t page_stride, int64_t n_stride) {
    if (!p.kv_indices) return ((p.kv_indptr ? p.kv_indptr[b] : 0) + j) * n_stride;
    return p.kv_indices[p.kv_indptr[b] + j / p.page_size] * page_stride + j % p.page_size * n_stride;
  };
  for (int64_t i = 0; i < qo_len; ++i) {
    for (int64_t h = 0; h < p.num_qo_heads; ++h) {
      std::vector<double> q = row(c.q, p.q, (first + i) * p.q_stride_n + h * p.q_stride_h, p.head_dim_qk);
      if (c.rope) rotate(q, static_cast<double>(i + off), rope.scale, rope.theta);
      std::vector<double> x(static_cast<size_t>(kv_len), -INFINITY);
      double m = -INFINITY;
      for (int64_t j = 0; j < kv_len; ++j) {
        bool visible = p.window_left < 0 || j >= i + off - p.window_left;
        if (p.mask) {
          const int64_t bit = i * kv_len + j;
          visible = visible && (p.mask[p.mask_indptr[b] + bit / 8] >> (bit % 8) & 1);
        } else if (p.prefix_len) {
          const int64_t at = i + off, prefix = p.prefix_len[b];
          const int64_t distance = at >= prefix ? p.token_pos[b * p.token_pos_len + at - prefix] : 0;
          visible = visible && j <= at && (at < prefix || j < prefix || j > at - distance);
        } else if (p.causal) {
          visible = visible && j <= i + off;
        }
        if (!visible) continue;
        std::vector<double> k =
            kv_row(c.kv, p.k, slot(j, p.k_stride_page, p.k_stride_n) + h / group * p.k_stride_h, p.head_dim_qk, p.k_sf,
                   slot(j, p.k_sf_stride_page, p.k_sf_stride_n) + h / group * p.k_sf_stride_h);
        if (c.rope) rotate(k, static_cast<double>(j), rope.scale, rope.theta);
        double s = 0;
        for (size_t d = 0; d < q.size(); ++d) s += q[d] * k[d];
        s *= p.scale * (heads.logits ? heads.logits[h] : 1.0);
        if (p.alibi_slopes) s += static_cast<double>(p.alibi_slopes[h]) * static_cast<double>(j - i);
        if (p.soft_cap > 0) s = p.soft_cap * std::tanh(s / p.soft_cap);
        x[static_cast<size_t>(j)] = s;
        m = std::max(m, s);
      }
      const bool empty = m == -INFINITY;
      const double sink = p.sinks ? static_cast<double>(p.sinks[h]) : -INFINITY;
      m = std::max(m, sink);
      std::vector<double> o(static_cast<size_t>(p.head_dim_vo), 0.0);
      double sum = p.sinks ? std::exp(sink - m) : 0.0;
      for (int64_t j = 0; j < kv_len; ++j) {
        if (x[static_cast<size_t>(j)] == -INFINITY) continue;  // the value of a hidden key is never read
        const double e = std::exp(x[static_cast<size_t>(j)] - m);
        sum += e;
        const std::vector<double> v =
            kv_row(c.kv, p.v, slot(j, p.v_stride_page, p.v_stride_n) + h / group * p.v_stride_h, p.head_dim_vo, p.v_sf,
                   slot(j, p.v_sf_stride_page, p.v_sf_stride_n) + h / group * p.v_sf_stride_h);
        for (size_t d = 0; d < v.size(); ++d) o[d] += e * v[d];
      }
      for (int64_t d = 0; d < p.head_dim_vo; ++d)
        put(c.o, p.o, (first + i) * p.o_stride_n + h * p.o_stride_h + d,
            empty ? 0.0
                  : o[static_cast<size_t>(d)] / sum * p.v_scale * (heads.outputs ? heads.outputs[h / group] : 1.0));
      if (p.lse)
        p.lse[(first + i) * p.lse_stride_n + h * p.lse_stride_h] = static_cast<float>(
            sum == 0 && m == -INFINITY ? -INFINITY : (m + std::log(sum)) / std::log(2.0) * p.lse_factor);
    }
  }
}

}  // namespace flashinfer::ref
