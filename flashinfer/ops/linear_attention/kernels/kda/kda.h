// SPDX-License-Identifier: Apache-2.0
// The delta rule with a decay of each key channel: sequences of fewer than 16 tokens go from slot to slot through the
// rows of the state, longer ones by chunks of 16 tokens from their first. A unit is one value head of one sequence.
#pragma once
#include "flashinfer/ops/linear_attention/kernels/common/channel_chunk.h"
#include "flashinfer/ops/linear_attention/kernels/kda/params.h"
#include "flashinfer/ops/linear_attention/kernels/mamba/math.h"

namespace flashinfer::cpu {
namespace linear {

template <KdaConfig C>
struct KdaHead {
  using S = scalar_of_t<C.state>;
  const KdaParams& p;
  const KdaSequence& s;
  int64_t h, query, k_floats, v_floats;
  float *row, *text, *chunk;

  KdaHead(const KdaParams& params, int64_t sequence, int64_t head)
      : p(params),
        s(p.sequences[sequence]),
        h(head),
        query(head * p.heads / p.value_heads),
        k_floats(padded(p.width)),
        v_floats(padded(p.rows)),
        row(p.scratch),
        text(row + k_floats),
        chunk(text + kChannelChunk * (4 * k_floats + 2 * v_floats + 32)) {}

  static int64_t at(const KdaRows& r, int64_t token, int64_t head) { return token * r.token + head * r.head; }
  S* place(const KdaStates& pool, int64_t slot) const {
    return static_cast<S*>(pool.data) + slot * pool.slot + h * pool.head;
  }
  int64_t after_slot(int64_t token) const { return p.after_slots ? p.after_slots[token] : -1; }
  void write(int64_t token, const float* o) const {
    narrow_row(p.out_type, o, p.rows, const_cast<void*>(p.out.data), at(p.out, token, h));
  }

  /// decay = e^gate, from g in `decay`.
  void gate(float* decay) const {
    const float rate = p.gate == KdaGate::kNone ? 0.0f : exp_of(p.a_log[query * p.a_log_stride]);
    const Vec a = splat(rate > __FLT_MAX__ ? __FLT_MAX__ : rate);
    for (int64_t j = 0; j < k_floats; j += Vec::kLanes) {
      Vec x = load(decay + j);
      if (p.gate != KdaGate::kNone) {
        const int64_t left = p.width - j;
        if (left > 0) x += load_n(p.dt_bias + query * p.width + j, left < Vec::kLanes ? left : Vec::kLanes);
        x = p.gate == KdaGate::kSoftplus ? -(a * softplus(x)) : splat(p.lower_bound) * sigmoid(a * x);
      }
      store(decay + j, exp(x));
    }
  }
  /// k and scaled q, normalised on request, the decays and v of a token; returns beta.
  float read(int64_t t, float* k, float* q, float* decay, float* v) const {
    widen_row(p.input, p.k.data, at(p.k, t, query), p.width, k);
    widen_row(p.input, p.q.data, at(p.q, t, query), p.width, q);
    widen_row(p.input, p.g.data, at(p.g, t, h), p.width, decay);
    widen_row(p.input, p.v.data, at(p.v, t, h), p.rows, v);
    gate(decay);
    float beta = element(p.input, p.beta.data, at(p.beta, t, h)), q_scale = p.scale;
    if (p.beta_is_logit) beta = sigmoid_of(beta);
    if (p.l2norm) {
      scale_row(k, inverse_norm(k, p.width), p.width);
      q_scale *= inverse_norm(q, p.width);
    }
    scale_row(q, q_scale, p.width);
    return beta;
  }
  template <class T>
  DeltaToken<T> token(int64_t t, float* k) const {
    float *const kd = k + k_floats, *const qd = kd + k_floats, *const decay = qd + k_floats,
                 *const v = decay + k_floats;
    const float beta = read(t, k, qd, decay, v), kq = dot_row(k, qd, p.width);
    for (int64_t j = 0; j < k_floats; j += Vec::kLanes) {
      store(kd + j, load(k + j) * load(decay + j));
      store(qd + j, load(qd + j) * load(decay + j));
    }
    return {k, kd, qd, decay, 1.0f, beta, kq, v, v + v_floats, nullptr, 0};
  }
  float* corrections(int64_t token) const {
    return static_cast<float*>(p.corrections.data) + s.read * p.corrections.slot + h * p.corrections.head +
           (token - s.first) * p.corrections.row;
  }
  /// Keys and gates as they came.
  void keep_keys() const {
    const int64_t item = p.input == DType::kF32 ? 4 : 2;
    for (int64_t t = s.first; t < s.first + s.tokens; ++t) {
      char* const to =
          static_cast<char*>(p.kg.data) + item * (s.read * p.kg.slot + h * p.kg.head + (t - s.first) * p.kg.row);
      const auto bytes = static_cast<size_t>(item * p.width);
      memcpy(to, static_cast<const char*>(p.k.data) + item * at(p.k, t, query), bytes);
      memcpy(to + bytes, static_cast<const char*>(p.g.data) + item * at(p.g, t, h), bytes);
    }
  }
  /// Tokens [first, first + count) through `state`.
  template <class T>
  void block(const DeltaState<T>& state, int64_t first, int64_t count, bool stored) {
    auto* const tokens = reinterpret_cast<DeltaToken<T>*>(text);
    static_assert(sizeof(DeltaToken<T>) <= 32 * sizeof(float));
    float* at = text + kChannelChunk * 32;
    for (int64_t t = 0; t < count; ++t, at += 4 * k_floats + 2 * v_floats) {
      tokens[t] = token<T>(first + t, at);
      if constexpr (C.caches) tokens[t].d = corrections(first + t);
      if constexpr (__is_same(T, S))
        if (stored)
          if (const int64_t slot = after_slot(first + t); slot >= 0)
            tokens[t].after = place(p.after, slot), tokens[t].after_row = p.after.row;
    }
    delta_rows<C.width, true, C.caches != 0>(state, tokens, count, row);
    for (int64_t t = 0; t < count; ++t) write(first + t, tokens[t].o);
  }
  void store_tile(const float* tile, const KdaStates& pool, int64_t slot) const {
    for (int64_t v = 0; v < p.rows; ++v)
      store_state_row(place(pool, slot) + v * pool.row, tile + v * k_floats, p.width);
  }
  /// Tokens [first, first + count) through the rows of the state.
  void few(ChannelChunk& c, int64_t first, int64_t count) {
    c.to_rows();
    const DeltaState<float> state{c.tile, c.tile, k_floats, k_floats, p.rows, p.width};
    for (int64_t t = 0; t < count;) {
      int64_t n = 1;
      while (t + n < count && after_slot(first + t + n - 1) < 0) ++n;
      block(state, first + t, n, false);
      t += n;
      if (const int64_t slot = after_slot(first + t - 1); slot >= 0) store_tile(c.tile, p.after, slot);
    }
  }
  void many(ChannelChunk& c, int64_t first, int64_t count) {
    c.to_columns();
    const FlushSubnormals flush;
    for (int64_t i = 0; i < count; ++i) {
      const Vec beta = splat(read(first + i, c.k(i), c.q(i), c.decay(i), c.u(i)));
      for (int64_t j = 0; j < k_floats; j += Vec::kLanes) store(c.r(i) + j, beta * load(c.k(i) + j));
      for (int64_t j = 0; j < v_floats; j += Vec::kLanes) store(c.u(i) + j, beta * load(c.u(i) + j));
    }
    c.run(count, p.input == DType::kF32 ? Sums::kParts : Sums::kChain);
    for (int64_t i = 0; i < count; ++i) {
      write(first + i, c.o(i));
      if constexpr (C.caches) memcpy(corrections(first + i), c.u(i), static_cast<size_t>(p.rows) * 4);
    }
    for (int64_t n = 1; n <= count; ++n) {
      const int64_t slot = after_slot(first + n - 1);
      float* const state = n == count ? c.state : c.spare;
      if (slot >= 0 || n == count) c.state_after(n, state);
      if (slot < 0) continue;
      transpose(state, v_floats, k_floats, v_floats, c.tile, k_floats);
      store_tile(c.tile, p.after, slot);
    }
  }
  void run() {
    if (s.skip) {
      for (int64_t j = 0; j < v_floats; ++j) text[j] = 0;
      for (int64_t t = 0; t < s.tokens; ++t) write(s.first + t, text);
      return;
    }
    if (!s.tokens) return;
    if constexpr (C.caches) keep_keys();
    if constexpr (C.one_block) {
      const DeltaState<S> state{
          place(p.in, s.read), s.write < 0 ? nullptr : place(p.state, s.write), p.in.row, p.state.row, p.rows, p.width};
      return block(state, s.first, s.tokens, true);
    }
    ChannelChunk c(chunk, p.width, p.rows);
    memset(c.tile, 0, static_cast<size_t>(k_floats * v_floats) * 4);
    for (int64_t v = 0; p.in.data && v < p.rows; ++v)
      widen_as<S>(place(p.in, s.read), v * p.in.row, p.width, c.tile + v * k_floats);
    for (int64_t t = 0; t < s.tokens; t += kChannelChunk) {
      const int64_t n = s.tokens - t < kChannelChunk ? s.tokens - t : kChannelChunk;
      n < kChannelChunk ? few(c, s.first + t, n) : many(c, s.first + t, n);
    }
    c.to_rows();
    if (s.write >= 0) store_tile(c.tile, p.state, s.write);
  }
};

}  // namespace linear

template <KdaConfig C>
void kda(const KdaParams& p, int64_t task) {
  if (p.in_order) {
    for (int64_t i = 0; i < p.count; ++i) linear::KdaHead<C>(p, i, task).run();
    return;
  }
  const int64_t units = p.count * p.value_heads, begin = task * p.per_task;
  const int64_t end = begin + p.per_task < units ? begin + p.per_task : units;
  for (int64_t u = begin; u < end; ++u) linear::KdaHead<C>(p, u / p.value_heads, u % p.value_heads).run();
}

}  // namespace flashinfer::cpu
