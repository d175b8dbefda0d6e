// SPDX-License-Identifier: Apache-2.0
// MLA in double precision, one row at a time, from the definition. It shares only the parameter block with the kernels.
#pragma once
#include <cmath>
#include <vector>

#include "flashinfer/ops/attention/ref.h"
#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/mla/kernels/params.h"
#include "flashinfer/ops/mla/op.h"

namespace flashinfer::ref {

/// Every row of request `b`.
inline void mla_request(const MlaConfig& c, const MlaParams& p, int64_t b) {
  using namespace attention_detail;
  const int64_t first = p.qo_indptr[b], qo_len = p.qo_indptr[b + 1] - first, kv_len = p.kv_len[b];
  const int64_t groups = (p.dim_ckv + mla::kScaleGroup - 1) / mla::kScaleGroup;
  auto page = [&](int64_t j) { return static_cast<int64_t>(p.kv_indices[p.kv_indptr[b] + j / p.page_size]); };
  auto latent = [&](int64_t j) {
    std::vector<double> x = row(c.kv, p.ckv, page(j) * p.ckv_stride_page + j % p.page_size * p.ckv_stride_n, p.dim_ckv);
    for (int64_t d = 0; p.ckv_scales && d < p.dim_ckv; ++d)
      x[static_cast<size_t>(d)] *=
          p.ckv_scales[(page(j) * p.page_size + j % p.page_size) * groups + d / mla::kScaleGroup];
    return x;
  };
  for (int64_t i = 0; i < qo_len; ++i) {
    const int64_t seen = p.causal ? std::min(kv_len, i + kv_len - qo_len + 1) : kv_len;
    for (int64_t h = 0; h < p.num_heads; ++h) {
      const std::vector<double> q =
          row(c.q, p.q_nope, (first + i) * p.q_nope_stride_n + h * p.q_nope_stride_h, p.dim_ckv);
      const std::vector<double> qr = row(c.q, p.q_pe, (first + i) * p.q_pe_stride_n + h * p.q_pe_stride_h, p.dim_kpe);
      std::vector<double> x;
      double m = p.sinks ? static_cast<double>(p.sinks[h]) : -INFINITY;
      for (int64_t j = 0; j < seen; ++j) {
        const std::vector<double> k = latent(j);
        const std::vector<double> kr =
            row(c.kv, p.kpe, page(j) * p.kpe_stride_page + j % p.page_size * p.kpe_stride_n, p.dim_kpe);
        double s = 0, t = 0;
        for (size_t d = 0; d < q.size(); ++d) s += q[d] * k[d];
        for (size_t d = 0; d < qr.size(); ++d) t += qr[d] * kr[d];
        x.push_back((s + t * p.kpe_ratio) * p.scale);
        m = std::max(m, x.back());
      }
      std::vector<double> o(q.size(), 0.0);
      double sum = p.sinks ? std::exp(static_cast<double>(p.sinks[h]) - m) : 0;
      for (int64_t j = 0; j < seen; ++j) {
        const double e = std::exp(x[static_cast<size_t>(j)] - m);
        const std::vector<double> v = latent(j);
        sum += e;
        for (size_t d = 0; d < o.size(); ++d) o[d] += e * v[d];
      }
      const bool empty = seen <= 0;
      for (size_t d = 0; d < o.size(); ++d)
        put(c.o, p.o, (first + i) * p.o_stride_n + h * p.o_stride_h + static_cast<int64_t>(d),
            empty ? 0.0 : o[d] / sum * p.v_scale);
      if (p.lse)
        p.lse[(first + i) * p.lse_stride_n + h * p.lse_stride_h] =
            static_cast<float>(sum == 0 ? -INFINITY : (m + std::log(sum)) / std::log(2.0) * p.lse_factor);
    }
  }
}

inline void append_paged_mla_kv_cache(const AppendPagedMlaKvCache& a) {
  for (const auto& [from, cache] : {std::pair(&a.append_ckv, &a.ckv_cache), std::pair(&a.append_kpe, &a.kpe_cache)}) {
    if (!*cache) continue;
    const int64_t page_size = (*cache)->size(1);
    for (int64_t t = 0; t < from->size(0); ++t) {
      const int64_t b = op::index_at(a.batch_indices, t), position = op::index_at(a.positions, t);
      if (b < 0) continue;
      const int64_t page = op::index_at(a.kv_indices, op::index_at(a.kv_indptr, b) + position / page_size);
      for (int64_t d = 0; d < from->size(1); ++d) put(**cache, {page, position % page_size, d}, at(*from, {t, d}));
    }
  }
}

inline void concat_mla_k(const ConcatMlaK& a) {
  const int64_t nope = a.k_nope.size(2);
  for (int64_t t = 0; t < a.k.size(0); ++t)
    for (int64_t h = 0; h < a.k.size(1); ++h)
      for (int64_t d = 0; d < a.k.size(2); ++d)
        put(a.k, {t, h, d}, d < nope ? at(a.k_nope, {t, h, d}) : at(a.k_rope, {t, 0, d - nope}));
}

inline void concat_mla_kv_quant_fp8(const ConcatMlaKvQuantFp8& a) {
  const auto cast = [](double x) {
    e4m3_t y;
    if (std::isnan(x))
      y.bits = 0x7f;
    else
      y = e4m3_t(round_to_odd(std::min(std::max(x, -448.0), 448.0)));
    return y;
  };
  const auto put_code = [&](const TensorView& to, int64_t t, int64_t h, int64_t d, double x) {
    to.data_as<e4m3_t>()[t * to.stride(0) + h * to.stride(1) + d] = cast(x);
  };
  for (int64_t t = 0; t < a.kv_nope.size(0); ++t)
    for (int64_t h = 0; h < a.kv_nope.size(1); ++h) {
      for (int64_t d = 0; d < a.kv_nope.size(2); ++d)
        if (d < a.nope_dim)
          put_code(*a.key, t, h, d, at(a.kv_nope, {t, h, d}));
        else
          put_code(*a.value, t, h, d - a.nope_dim, at(a.kv_nope, {t, h, d}));
      for (int64_t d = 0; d < a.k_pe.size(-1); ++d)
        put_code(*a.key, t, h, a.nope_dim + d, load_element(a.k_pe, t * a.k_pe.stride(0) + d));
    }
}

}  // namespace flashinfer::ref
