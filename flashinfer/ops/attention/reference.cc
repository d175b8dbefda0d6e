// SPDX-License-Identifier: Apache-2.0
// The reference of every operator that has a plan and a call: reads their members itself, so that it finds what is
// wrong in the kernels' parameters (params_of) too.
#include <cmath>

#include "flashinfer/ops/attention/plan/plan.h"
#include "flashinfer/ops/attention/ref.h"
#include "flashinfer/ops/common/reference.h"

namespace flashinfer::attention {
namespace {

using Row = ref::AttentionRequest::Row;

int64_t int_at(const Tensor& t, int64_t i) { return t.data_as<int32_t>()[i]; }
double number_at(const TensorView* t, int64_t i) { return t ? ref::at(*t, {i}) : 1.0; }

/// `dim` elements of K or V at (page, token of the page, head); of an NVFP4 cache two values a byte, the low one first,
/// times the e4m3 scale of every 16.
Row elements(DType t, const ops::KvPlane& x, const ops::KvPlane* scales, int64_t page, int64_t n, int64_t h,
             int64_t dim) {
  const bool nvfp4 = t == DType::kF4E2M1x2;
  const auto at = [&](const ops::KvPlane& p) { return page * p.stride_page + n * p.stride_n + h * p.stride_h; };
  const TensorView all(x.data, nvfp4 ? DType::kU8 : t, {1}), sf(scales ? scales->data : nullptr, DType::kF8E4M3, {1});
  constexpr double kGrid[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  Row row(static_cast<size_t>(dim));
  for (int64_t d = 0; d < dim; ++d) {
    double& to = row[static_cast<size_t>(d)];
    to = ref::load_element(all, at(x) + (nvfp4 ? d / 2 : d));
    if (!nvfp4) continue;
    const int code = static_cast<int>(to) >> (d % 2 * 4) & 15;
    to = (code & 8 ? -1 : 1) * kGrid[code & 7] * ref::load_element(sf, at(*scales) + d / 16);
  }
  return row;
}

/// Pairs (d, d + D/2) turned by position * theta^(-2d/D) / scale.
void rotate(Row& x, double position, double scale, double theta) {
  const size_t half = x.size() / 2;
  for (size_t d = 0; d < half; ++d) {
    const double angle =
        position / scale * std::pow(theta, -2.0 * static_cast<double>(d) / static_cast<double>(x.size()));
    const double a = x[d], b = x[d + half];
    x[d] = a * std::cos(angle) - b * std::sin(angle);
    x[d + half] = a * std::sin(angle) + b * std::cos(angle);
  }
}

/// ALiBi's slope: 2^(-8 (h + 1) / n) for the first n = 2^floor(log2 H) heads, then every other one of twice as many.
double slope(const Plan& p, int64_t h) {
  if (p.alibi_slopes.defined()) return ref::at(p.alibi_slopes.view(), {h});
  int64_t n = 1;
  while (2 * n <= p.num_qo_heads) n *= 2;
  return std::exp2(h < n ? -8.0 * static_cast<double>(h + 1) / static_cast<double>(n)
                         : -4.0 * static_cast<double>(2 * (h - n) + 1) / static_cast<double>(n));
}

/// Whether token i of request b, at position `at` of `keys`, sees key j.
bool sees(const Plan& p, int64_t b, int64_t i, int64_t at, int64_t j, int64_t keys) {
  if (p.window_left >= 0 && j < at - p.window_left) return false;
  if (p.mask.defined()) {
    const int64_t bit = i * keys + j;
    return p.mask.data_as<uint8_t>()[p.mask_indptr.data_as<int64_t>()[b] + bit / 8] >> (bit % 8) & 1;
  }
  if (p.prefix_len.defined()) {  // several items behind a prefix: a token sees the prefix and its own item
    const int64_t prefix = p.prefix_len.data_as<uint32_t>()[b];
    if (j > at) return false;
    if (at < prefix || j < prefix) return true;
    return j > at - p.token_pos.data_as<uint16_t>()[b * p.token_pos.size(1) + at - prefix];
  }
  return !p.causal || j <= at;
}

void reference_of_request(const Plan& p, const Call& c, int64_t b) {
  const int64_t first = int_at(p.qo_indptr, b), group = p.num_qo_heads / p.num_kv_heads;
  const int64_t rows = int_at(p.qo_indptr, b + 1) - first, keys = int_at(p.kv_len, b), before = keys - rows;
  const int64_t kv_first = p.kv_indptr.defined() ? int_at(p.kv_indptr, b) : 0;
  const bool rope = p.pos_encoding_mode == "ROPE_LLAMA", alibi = p.pos_encoding_mode == "ALIBI";
  const double scale = c.sm_scale.value_or(p.sm_scale) * c.q_scale * c.k_scale;
  const auto cached = [&](const ops::KvPlane& x, const ops::KvPlane* sf, const Tensor& pages, int64_t j, int64_t g,
                          int64_t dim) {
    if (!p.paged) return elements(p.kv_data_type, x, sf, 0, kv_first + j, g, dim);
    return elements(p.kv_data_type, x, sf, int_at(pages, kv_first + j / p.page_size), j % p.page_size, g, dim);
  };
  const Tensor& v_indices = p.v_indices.defined() ? p.v_indices : p.kv_indices;
  ref::AttentionRequest r;
  r.rows = rows, r.keys = keys, r.heads = p.num_qo_heads, r.kv_heads = p.num_kv_heads, r.dim_vo = p.head_dim_vo;
  r.query = [&](int64_t i, int64_t h) {
    Row q(static_cast<size_t>(p.head_dim_qk));
    for (int64_t d = 0; d < p.head_dim_qk; ++d) q[static_cast<size_t>(d)] = ref::at(c.q, {first + i, h, d});
    if (rope) rotate(q, static_cast<double>(i + before), p.rope_scale, p.rope_theta);
    return q;
  };
  r.key = [&](int64_t j, int64_t g) {
    Row k = cached(c.kv.k, c.kv_sf ? &c.kv_sf->k : nullptr, p.kv_indices, j, g, p.head_dim_qk);
    if (rope) rotate(k, static_cast<double>(j), p.rope_scale, p.rope_theta);
    return k;
  };
  r.value = [&](int64_t j, int64_t g) {
    return cached(c.kv.v, c.kv_sf ? &c.kv_sf->v : nullptr, v_indices, j, g, p.head_dim_vo);
  };
  r.visible = [&](int64_t i, int64_t j) { return sees(p, b, i, i + before, j, keys); };
  r.logit = [&](int64_t i, int64_t j, int64_t h, double dot) {
    double s = dot * scale * number_at(c.q_head_scales, h) * number_at(c.k_head_scales, h / group);
    if (alibi) s += slope(p, h) * static_cast<double>(j - i);
    return p.logits_soft_cap > 0 ? p.logits_soft_cap * std::tanh(s / p.logits_soft_cap) : s;
  };
  if (c.sinks) r.sink = [&](int64_t h) { return ref::at(*c.sinks, {h}); };
  r.store = [&](int64_t i, int64_t h, const Row& out, double lse) {
    for (int64_t d = 0; d < p.head_dim_vo; ++d)
      ref::put(c.out, {first + i, h, d},
               out[static_cast<size_t>(d)] * c.v_scale * number_at(c.v_head_scales, h / group));
    if (!c.lse) return;
    const double value = c.natural_lse ? lse : lse / std::log(2.0);
    if (c.lse_by_head)
      ref::put(*c.lse, {h, first + i}, value);
    else
      ref::put(*c.lse, {first + i, h}, value);
  };
  ref::attention(r);
}

}  // namespace

void run_reference(const Plan& p, const Call& c) {
  FI_CHECK(p.jit_args.is_none(), NotImplementedError, "a custom variant has no reference: it needs a C++ compiler");
  for (int64_t b = 0; b < p.batch_size; ++b) reference_of_request(p, c, b);
}

}  // namespace flashinfer::attention
