// SPDX-License-Identifier: Apache-2.0
// The reference of MLA: attention with one KV head, whose key is the latent row beside its rotated part and whose value
// is the latent row. It reads plan and call itself, not the kernel's parameters.
#include <cmath>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/attention/ref.h"
#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/mla/plan.h"

namespace flashinfer::mla {
namespace {

using Row = ref::AttentionRequest::Row;

int64_t int_at(const Tensor& t, int64_t i) { return t.data_as<int32_t>()[i]; }
/// n elements from (i, j) on, times `factor`, behind those of `to`.
void append(Row& to, const TensorView& t, int64_t i, int64_t j, int64_t n, double factor) {
  for (int64_t d = 0; d < n; ++d) to.push_back(factor * ref::at(t, {i, j, d}));
}

void reference_of_request(const Plan& p, const Call& c, int64_t b) {
  constexpr int64_t kScaled = 128;  // elements of a latent row that share a scale
  const int64_t first = int_at(p.qo_indptr, b), rows = int_at(p.qo_indptr, b + 1) - first, keys = int_at(p.kv_len, b);
  const auto page = [&](int64_t j) { return int_at(p.kv_indices, int_at(p.kv_indptr, b) + j / p.page_size); };
  const auto latent = [&](int64_t j) {
    Row x;
    append(x, c.ckv, page(j), j % p.page_size, p.head_dim_ckv, 1);
    if (!c.ckv_scales) return x;
    const int64_t groups = ceil_div(p.head_dim_ckv, kScaled), slot = page(j) * p.page_size + j % p.page_size;
    for (int64_t d = 0; d < p.head_dim_ckv; ++d)
      x[static_cast<size_t>(d)] *= static_cast<double>(c.ckv_scales->data_as<float>()[slot * groups + d / kScaled]);
    return x;
  };
  ref::AttentionRequest r;
  r.rows = rows, r.keys = keys, r.heads = p.num_heads, r.kv_heads = 1, r.dim_vo = p.head_dim_ckv;
  r.query = [&](int64_t i, int64_t h) {
    Row q;
    append(q, c.q_nope, first + i, h, p.head_dim_ckv, 1);
    if (p.head_dim_kpe) append(q, c.q_pe, first + i, h, p.head_dim_kpe, c.kpe_ratio);
    return q;
  };
  r.key = [&](int64_t j, int64_t) {
    Row k = latent(j);
    if (p.head_dim_kpe) append(k, c.kpe, page(j), j % p.page_size, p.head_dim_kpe, 1);
    return k;
  };
  r.value = [&](int64_t j, int64_t) { return latent(j); };
  r.visible = [&](int64_t i, int64_t j) { return !p.causal || j <= i + keys - rows; };
  r.logit = [&](int64_t, int64_t, int64_t, double dot) { return dot * c.scale; };
  if (c.sinks) r.sink = [&](int64_t h) { return ref::at(*c.sinks, {h}); };
  r.store = [&](int64_t i, int64_t h, const Row& out, double lse) {
    for (int64_t d = 0; d < p.head_dim_ckv; ++d)
      ref::put(c.out, {first + i, h, d}, out[static_cast<size_t>(d)] * c.v_scale);
    if (c.lse) ref::put(*c.lse, {first + i, h}, c.natural_lse ? lse : lse / std::log(2.0));
  };
  ref::attention(r);
}

}  // namespace

void run_reference(const Plan& p, const Call& c) {
  for (int64_t b = 0; b < p.batch_size; ++b) reference_of_request(p, c, b);
}

}  // namespace flashinfer::mla
