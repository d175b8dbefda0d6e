// SPDX-License-Identifier: Apache-2.0
// Mamba's step from a state that is older than the last tokens: these are in a ring, and are replayed before the new
// ones, whose inputs join the ring. A unit is one head of one sequence; a row of the state is read once.
#pragma once
#include "flashinfer/ops/linear_attention/kernels/common/rows.h"
#include "flashinfer/ops/linear_attention/kernels/common/stored.h"
#include "flashinfer/ops/linear_attention/kernels/mamba/math.h"
#include "flashinfer/ops/linear_attention/kernels/mamba/replay_params.h"

namespace flashinfer::cpu {

template <ReplayConfig C>
class Replay {
  using State = stored_t<C.state>;
  using T = scalar_of_t<C.io>;
  static constexpr bool kInt = C.state == DType::kI8, kScaled = kInt || C.state == DType::kF8E4M3;
  static constexpr float kLargest = kInt ? 127.0f : 448.0f;
  static constexpr int64_t L = Vec::kLanes;

 public:
  explicit Replay(const ReplayParams& params)
      : p(params), wide(linear::padded(params.dstate)), x_wide(linear::padded(params.dim)) {
    float* at = p.scratch;
    const auto take = [&](int64_t count) {
      float* const memory = at;
      at += count;
      return memory;
    };
    b = take(kReplayTokens * wide), c = take(kReplayTokens * wide), x = take(kReplayTokens * x_wide);
    y = take(kReplayTokens * x_wide), dts = take(kReplayTokens), decays = take(kReplayTokens);
    state = take(wide), skip = take(x_wide);
  }
  void run(const ReplayRow& row, int64_t head) {
    r = row, h = head;
    if (r.read < 0) return clear();
    if (!r.replay && !r.tokens) {
      for (int64_t d = 0; d < p.dim && r.write >= 0; ++d) copy_row(d);
      return;
    }
    read_ring();
    read_tokens();
    write_ring();
    for (int64_t t = 0; t < r.replay + r.tokens; ++t)
      decays[t] = exp_of(linear::element(p.a.dtype, p.a.data, p.a.head * h) * dts[t]);
    for (int64_t d = 0; d < p.dim; ++d) update_row(d);
    finish();
  }

 private:
  int64_t group() const { return h / p.heads_per_group; }
  static int64_t at(const SsuOperand& o, const ReplayRow& r, int64_t t, int64_t head) {
    return o.row * r.row + o.step * (r.first + t) + o.head * head;
  }
  template <class U>
  U* ring(const ReplayRing& o, int64_t t, int64_t head) const {
    return static_cast<U*>(o.data) + o.slot * r.read + o.head * head + o.token * ((r.start + t) % p.ring);
  }
  void clear() const {
    for (int64_t t = 0; t < r.tokens; ++t)
      memset(static_cast<void*>(static_cast<T*>(const_cast<void*>(p.out.data)) + at(p.out, r, t, h)), 0,
             static_cast<size_t>(p.dim) * sizeof(T));
  }
  void read_ring() {
    for (int64_t t = 0; t < r.replay; ++t) {
      linear::widen_as<T>(ring<T>(p.b_cache, t, group()), 0, p.dstate, b + t * wide);
      linear::widen_as<T>(ring<T>(p.x_cache, t, h), 0, p.dim, x + t * x_wide);
      dts[t] = *ring<float>(p.dt_cache, t, h);
    }
  }
  void read_tokens() {
    for (int64_t t = 0; t < r.tokens; ++t) {
      const int64_t i = r.replay + t;
      linear::widen_as<T>(p.b.data, at(p.b, r, t, group()), p.dstate, b + i * wide);
      linear::widen_as<T>(p.c.data, at(p.c, r, t, group()), p.dstate, c + t * wide);
      linear::widen_as<T>(p.x.data, at(p.x, r, t, h), p.dim, x + i * x_wide);
      float dt = linear::element(p.dt.dtype, p.dt.data, at(p.dt, r, t, h));
      if (p.dt_bias.data) dt += linear::element(p.dt_bias.dtype, p.dt_bias.data, p.dt_bias.head * h);
      dts[i] = p.softplus ? softplus(dt) : dt;
    }
  }
  void write_ring() const {
    for (int64_t t = 0; t < r.tokens; ++t) {
      const int64_t i = r.replay + t;
      memcpy(static_cast<void*>(ring<T>(p.x_cache, i, h)), static_cast<const T*>(p.x.data) + at(p.x, r, t, h),
             static_cast<size_t>(p.dim) * sizeof(T));
      *ring<float>(p.dt_cache, i, h) = dts[i];
      if (h % p.heads_per_group == 0)
        memcpy(static_cast<void*>(ring<T>(p.b_cache, i, group())),
               static_cast<const T*>(p.b.data) + at(p.b, r, t, group()), static_cast<size_t>(p.dstate) * sizeof(T));
    }
  }

  State* place(int64_t slot, int64_t d) const {
    return static_cast<State*>(p.state.data) + p.state.slot * slot + p.state.head * h + p.state.dim * d;
  }
  float& scale(int64_t slot, int64_t d) const {
    return p.state.scale[p.state.scale_slot * slot + p.state.scale_head * h + p.state.scale_dim * d];
  }
  void copy_row(int64_t d) const {
    memcpy(static_cast<void*>(place(r.write, d)), place(r.read, d), static_cast<size_t>(p.dstate) * sizeof(State));
    if constexpr (kScaled) scale(r.write, d) = scale(r.read, d);
  }
  void read_row(int64_t d) const {
    if constexpr (kInt) {
      const int8_t* const from = place(r.read, d);
      for (int64_t i = 0; i < wide; ++i) state[i] = i < p.dstate ? static_cast<float>(from[i]) : 0.0f;
    } else {
      linear::widen_as<State>(place(r.read, d), 0, p.dstate, state);
    }
    if constexpr (kScaled) linear::scale_row(state, scale(r.read, d), p.dstate);
  }
  /// The number of a row's first element in the pool, for random bits.
  uint64_t flat(int64_t d) const { return static_cast<uint64_t>(((r.write * p.heads + h) * p.dim + d) * p.dstate); }
  void write_row(int64_t d) const {
    State* const to = place(r.write, d);
    if constexpr (kScaled) {
      float largest = 0;
      for (int64_t i = 0; i < p.dstate; ++i)
        largest = __builtin_fabsf(state[i]) > largest ? __builtin_fabsf(state[i]) : largest;
      const float by = largest > 0 ? kLargest / largest : 1.0f;
      scale(r.write, d) = 1.0f / by;
      if constexpr (!kInt)
        if (p.rounds) return store_randomly(to, state, by, p.dstate, flat(d), p.seed, p.rounds);
      for (int64_t i = 0; i < p.dstate; ++i) {
        float v = state[i] * by;
        v = v > kLargest ? kLargest : (v < -kLargest ? -kLargest : v);
        if constexpr (kInt)
          to[i] = static_cast<int8_t>(((v == v ? v : 0.0f) + 12582912.0f) - 12582912.0f);  // to nearest even
        else
          to[i] = State(v);
      }
    } else {
      if constexpr (C.state == DType::kF16)
        if (p.rounds) return store_randomly(to, state, 1.0f, p.dstate, flat(d), p.seed, p.rounds);
      linear::narrow_as<State>(state, p.dstate, to, 0);
    }
  }
  void update_row(int64_t d) {
    read_row(d);
    for (int64_t t = 0; t < r.replay + r.tokens; ++t) {
      if (t == r.replay && r.write >= 0) write_row(d);
      const Vec decay = splat(decays[t]), dx = splat(dts[t] * x[t * x_wide + d]);
      for (int64_t i = 0; i < wide; i += L) store(state + i, fma(dx, load(b + t * wide + i), load(state + i) * decay));
      if (t >= r.replay) y[(t - r.replay) * x_wide + d] = linear::dot_row(state, c + (t - r.replay) * wide, p.dstate);
    }
    if (!r.tokens && r.write >= 0) write_row(d);
  }
  /// out = (y + D x) silu(z).
  void finish() {
    for (int64_t d = 0; d < p.dim && p.d.data; ++d)
      skip[d] = linear::element(p.d.dtype, p.d.data, p.d.head * h + p.d.dim * d);
    for (int64_t t = 0; t < r.tokens; ++t) {
      T* const out = static_cast<T*>(const_cast<void*>(p.out.data)) + at(p.out, r, t, h);
      for (int64_t d = 0; d < p.dim; d += L) {
        const int64_t n = p.dim - d < L ? p.dim - d : L;
        Vec v = load_n(y + t * x_wide + d, n);
        if (p.d.data) v = fma(load_n(skip + d, n), load_n(x + (r.replay + t) * x_wide + d, n), v);
        if (p.z.data) v = v * silu(load_n(static_cast<const T*>(p.z.data) + at(p.z, r, t, h) + d, n));
        store_n(out + d, v, n);
      }
    }
  }

  const ReplayParams& p;
  int64_t wide, x_wide;
  float *b, *c, *x, *y, *dts, *decays, *state, *skip;
  ReplayRow r{};
  int64_t h = 0;
};

template <ReplayConfig C>
void mamba_replay(const ReplayParams& p, int64_t task) {
  Replay<C> unit(p);
  const int64_t units = p.in_order ? p.heads : p.count * p.heads, begin = task * p.per_task;
  const int64_t end = begin + p.per_task < units ? begin + p.per_task : units;
  for (int64_t u = begin; u < end; ++u) {
    if (!p.in_order)
      unit.run(p.rows[u / p.heads], u % p.heads);
    else
      for (int64_t s = 0; s < p.count; ++s) unit.run(p.rows[s], u);
  }
}

}  // namespace flashinfer::cpu
