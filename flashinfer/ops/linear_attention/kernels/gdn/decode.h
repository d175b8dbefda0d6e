// SPDX-License-Identifier: Apache-2.0
// Decode of the gated delta rule: the state of a head is read once and written once, which is what a step costs.
#pragma once
#include "flashinfer/ops/linear_attention/kernels/common/delta_rows.h"
#include "flashinfer/ops/linear_attention/kernels/common/gates.h"
#include "flashinfer/ops/linear_attention/kernels/gdn/decode_params.h"

namespace flashinfer::cpu {
namespace linear {

/// S[K][V]: vectors are of value channels. Two passes over strips of four vectors, whose second one finds the strip in
/// the L1 cache.
inline void delta_columns(const DeltaState<float>& s, const DeltaToken<float>& t) {
  constexpr int kVecs = 4;
  constexpr int64_t L = Vec::kLanes, kStrip = kVecs * L;
  for (int64_t c = 0; c < s.rows; c += kStrip) {
    const int64_t n = s.rows - c;
    const auto read = [&](const float* p, int j) {
      return n >= (j + 1) * L ? load(p + j * L) : n > j * L ? load_n(p + j * L, n - j * L) : zero();
    };
    Vec a[kVecs], b[kVecs];
    for (int j = 0; j < kVecs; ++j) a[j] = b[j] = zero();
    for (int64_t i = 0; i < s.width; ++i) {
      const float* p = s.in + i * s.in_row + c;
#pragma GCC unroll 4
      for (int j = 0; j < kVecs; ++j) {
        const Vec x = read(p, j);
        a[j] = fma(x, splat(t.kd[i]), a[j]), b[j] = fma(x, splat(t.qd[i]), b[j]);
      }
    }
#pragma GCC unroll 4
    for (int j = 0; j < kVecs; ++j) {
      a[j] = splat(t.beta) * (read(t.v + c, j) - a[j]);
      const Vec o = fma(a[j], splat(t.kq), b[j]);
      if (n >= (j + 1) * L)
        store(t.o + c + j * L, o);
      else if (n > j * L)
        store_n(t.o + c + j * L, o, n - j * L);
    }
    if (!s.out) continue;
    for (int64_t i = 0; i < s.width; ++i) {
      const float* p = s.in + i * s.in_row + c;
      float* y = s.out + i * s.out_row + c;
#pragma GCC unroll 4
      for (int j = 0; j < kVecs; ++j) {
        const Vec x = fma(a[j], splat(t.k[i]), read(p, j) * splat(t.alpha));
        if (n >= (j + 1) * L)
          store(y + j * L, x);
        else if (n > j * L)
          store_n(y + j * L, x, n - j * L);
      }
    }
  }
}

/// One value head of one batch row.
template <GdnDecodeConfig C>
struct GdnHead {
  using S = scalar_of_t<C.state>;
  const GdnDecodeParams& p;
  int64_t i, h, from, to;  // from, to: the slots that are read and written
  float* row;
  DeltaToken<S>* tokens;

  GdnHead(const GdnDecodeParams& params, int64_t batch, int64_t head)
      : p(params), i(batch), h(head), from(p.read.at(batch)), to(p.write.at(batch)), row(p.scratch) {}

  int64_t offset(const GdnRows& r, int64_t t, int64_t head) const { return i * r.batch + t * r.token + head * r.head; }
  void clear() const {
    for (int64_t j = 0; j < padded(p.rows); ++j) row[j] = 0;
    for (int64_t t = 0; t < p.tokens; ++t) write(t, row);
  }
  void write(int64_t t, const float* o) const {
    narrow_row(p.out_type, o, p.rows, p.result, i * p.result_batch + t * p.result_token + h * p.result_head);
  }
  S* after(int64_t t) const {
    if (!p.after.data) return nullptr;
    int64_t at = i * p.after.slot + t * p.after_token;
    if (p.after_slots) {
      const int64_t slot = p.after_slots[i * p.after_batch + t * p.after_step];
      if (slot < 0) return nullptr;
      at = slot * p.after.slot;
    }
    return static_cast<S*>(p.after.data) + at + h * p.after.head;
  }
  void cache(int64_t t, int64_t query, float log, float beta, const float* k, const float* v) const {
    narrow_row(DType::kBF16, v, p.rows, p.raw_v, from * p.raw_v_slot + h * p.raw_v_head + t * p.raw_v_token);
    p.log_decay[from * p.log_slot + h * p.log_head + t] = log;
    p.beta[from * p.beta_slot + h * p.beta_head + t] = beta;
    if (h * p.heads % p.value_heads < p.heads)  // the first value head of its query head
      narrow_row(DType::kBF16, k, p.width, p.raw_k, from * p.raw_k_slot + query * p.raw_k_head + t * p.raw_k_token);
  }
  /// Rows that are not normalised yet are multiplied with the state up to this 1 / |row|: longer ones could overflow.
  static constexpr float kLeastInverse = 1e-12f;
  /// Token t from memory: gates, normalised rows.
  DeltaToken<S> token(int64_t t, float* k, float* v) const {
    const int64_t n = p.width, query = h * p.heads / p.value_heads;
    float *kd = k + padded(n), *qd = kd + padded(n), *o = v + padded(p.rows);
    widen_row(p.input, p.k.data, offset(p.k, t, query), n, k);
    widen_row(p.input, p.q.data, offset(p.q, t, query), n, qd);
    widen_row(p.input, p.v.data, offset(p.v, t, h), p.rows, v);
    const float x = element(p.input, p.a.data, offset(p.a, t, h)) + element(p.dt_type, p.dt_bias, h * p.dt_stride);
    const float log = linear::log_decay(p.a_log[h * p.a_log_stride], x), alpha = ::expf(log);
    const float beta = logistic(element(p.input, p.b.data, offset(p.b, t, h)));
    if (p.raw_v) cache(t, query, log, beta, k, v);
    float k_scale = 1, q_scale = p.scale;
    bool dots = p.dots;
    if (p.l2norm) {
      const float k_by = inverse_norm(k, n), q_by = inverse_norm(qd, n);
      scale_row(k, k_by, n);
      k_scale = k_by, q_scale *= q_by;
      dots = dots && k_by > kLeastInverse && q_by > kLeastInverse;
    }
    scale_row(qd, q_scale, n);
    const float kq = dot_row(k, qd, n);
    for (int64_t j = 0; j < padded(n); j += Vec::kLanes) {
      store(kd + j, load(k + j) * splat(alpha));
      store(qd + j, load(qd + j) * splat(alpha));
    }
    DeltaToken<S> to{k, kd, qd, nullptr, alpha, beta, kq, v, o, after(t), p.after.row};
    if (dots) {
      to.k16 = static_cast<const bf16_t*>(p.k.data) + offset(p.k, t, query), to.k16_scale = alpha * k_scale;
      to.q16 = static_cast<const bf16_t*>(p.q.data) + offset(p.q, t, query), to.q16_scale = alpha * q_scale;
    }
    return to;
  }
  void run() {
    if (from < 0) return clear();
    const int64_t k = padded(p.width), v = padded(p.rows);
    tokens = reinterpret_cast<DeltaToken<S>*>(row + k);
    float* at = row + k + p.tokens * 32;
    static_assert(sizeof(DeltaToken<S>) <= 32 * sizeof(float));
    for (int64_t t = 0; t < p.tokens; ++t, at += 3 * k + 2 * v) tokens[t] = token(t, at, at + 3 * k);
    S* const out = to < 0 || !p.out.data ? nullptr : static_cast<S*>(p.out.data) + to * p.out.slot + h * p.out.head;
    const int64_t at_in = (p.rows_in_order ? i : from) * p.in.slot + h * p.in.head;
    DeltaState<S> s{static_cast<const S*>(p.in.data) + at_in, out, p.in.row, p.out.row, p.rows, p.width};
    if constexpr (C.v_innermost) {
      for (int64_t t = 0; t < p.tokens; ++t, s.in = out, s.in_row = s.out_row) delta_columns(s, tokens[t]);
    } else {
      delta_rows<C.width, false>(s, tokens, p.tokens, row);
    }
    for (int64_t t = 0; t < p.tokens; ++t) write(t, tokens[t].o);
  }
};

}  // namespace linear

template <GdnDecodeConfig C>
void gdn_decode(const GdnDecodeParams& p, int64_t task) {
  if (p.rows_in_order) {
    for (int64_t i = 0; i < p.batch; ++i) linear::GdnHead<C>(p, i, task).run();
    return;
  }
  const int64_t begin = task * p.per_task, end = begin + p.per_task < p.pairs ? begin + p.per_task : p.pairs;
  for (int64_t r = begin; r < end; ++r) linear::GdnHead<C>(p, r / p.value_heads, r % p.value_heads).run();
}

}  // namespace flashinfer::cpu
