// SPDX-License-Identifier: Apache-2.0
// selective_state_update on the CPU. The rows of a state (dstate numbers of one element of x) do not depend on each
// other, so that a row is read once, goes through all tokens of its block, and is written once. A unit is one head of
// one sequence.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/linear_attention/kernels/common/rows.h"
#include "flashinfer/ops/linear_attention/kernels/common/stored.h"
#include "flashinfer/ops/linear_attention/kernels/mamba/math.h"
#include "flashinfer/ops/linear_attention/kernels/mamba/ssu_params.h"
#include "flashinfer/ops/linear_attention/kernels/mamba/ssu_strip.h"

namespace flashinfer::cpu {

template <SsuConfig C>
class Ssu {
  using State = stored_t<C.state>;
  using T = scalar_of_t<C.io>;
  static constexpr bool kInt = C.state == DType::kI16;
  static constexpr int64_t kLanes = Vec::kLanes;
  static constexpr bool kStrips = C.one_decay && !kInt && kSsuStrips;

 public:
  explicit Ssu(const SsuParams& params)
      : p(params), padded(round_up(params.dstate, kLanes)), row_floats(params.dstate + 16) {
    b = p.scratch;
    c = b + kSsuTokens * row_floats;
    y = c + kSsuTokens * row_floats;
    dts = y + kSsuTokens * p.dim;
    decays = dts + kSsuTokens * (p.dim + 1);
    tile = decays + kSsuTokens;
    a = tile + p.dim * row_floats;
    state = a + row_floats;
    skip = state + row_floats;
  }

  void run(int64_t sequence, int64_t head) {
    r = p.rows[sequence];
    seq = sequence, h = head;
    for (int64_t begin = 0; begin < r.tokens; begin += kSsuTokens) {
      first = begin;
      count = r.tokens - begin < kSsuTokens ? r.tokens - begin : kSsuTokens;
      load_tokens();
      int64_t d = 0;
      if constexpr (kStrips)
        if (from_pool_to_pool() && p.dstate % kRowLanes == 0 && p.dim >= 16) d = update_strips();
      for (; d < p.dim; ++d) update_row(d);
      finish();
    }
  }

 private:
  static float at(const SsuOperand& o, int64_t row, int64_t t, int64_t head, int64_t d) {
    return element(o.data, o.dtype, o.row * row + o.step * t + o.head * head + o.dim * d);
  }
  void widen(const SsuOperand& o, float* to) {
    const int64_t group = h / p.heads_per_group;
    for (int64_t t = 0; t < count; ++t) {
      const T* from = static_cast<const T*>(o.data) + o.row * r.row + o.step * (first + t) + o.head * group;
      float* const line = to + t * row_floats;
      int64_t i = 0;
      for (; i + kLanes <= p.dstate; i += kLanes) store(line + i, load(from + i));
      if (i < p.dstate) store(line + i, load_n(from + i, p.dstate - i));
    }
  }
  /// B and C as f32, and dt of each token (of each element where it differs).
  void load_tokens() {
    widen(p.b, b);
    widen(p.c, c);
    const int64_t elements = C.one_decay ? 1 : p.dim;
    for (int64_t t = 0; t < count; ++t)
      for (int64_t d = 0; d < elements; ++d) {
        float dt = at(p.dt, r.row, first + t, h, d);
        if (p.dt_bias.data) dt += at(p.dt_bias, 0, 0, h, d);
        dt = p.softplus ? softplus(dt) : dt;
        dts[t * elements + d] = dt < p.dt_min ? p.dt_min : (dt > p.dt_max ? p.dt_max : dt);
      }
    if (C.one_decay)
      for (int64_t t = 0; t < count; ++t) decays[t] = exp_of(at(p.a, 0, 0, h, 0) * dts[t]);
  }

  /// One token: s = s * decay + b * dx; returns the dot product of s with c. `get` and `put` take (i, lanes).
  template <class Get, class Put, class Decay>
  FI_VEC_INLINE float step(int64_t t, float dx, Get get, Put put, Decay decay) {
    const float *const bt = b + t * row_floats, *const ct = c + t * row_floats;
    const auto at = [&](Vec acc, int64_t i, int64_t n) {
      const Vec s = fma(splat(dx), load(bt + i), get(i, n) * decay(i));
      put(i, n, s);
      return fma(s, load(ct + i), acc);  // c is 0 behind the row
    };
    return sum_row(
        p.dstate, [&](Vec acc, int64_t i) { return at(acc, i, kLanes); },
        [&](Vec acc, int64_t i, int64_t n) { return at(acc, i, n); });
  }
  template <class Get, class Put>
  FI_VEC_INLINE float step(int64_t t, int64_t d, Get get, Put put) {
    const float dt = dts[C.one_decay ? t : t * p.dim + d];
    const float dx =
        dt * to_f32(static_cast<const T*>(p.x.data)[p.x.row * r.row + p.x.step * (first + t) + p.x.head * h + d]);
    if constexpr (C.one_decay) {
      const Vec decay = splat(decays[t]);
      return step(t, dx, get, put, [&](int64_t) { return decay; });
    } else {
      return step(t, dx, get, put, [&](int64_t i) { return exp(load(a + i) * splat(dt)); });
    }
  }

  State* place(const SsuPool& pool, int64_t slot, int64_t t, int64_t d) const {
    return static_cast<State*>(pool.data) + pool.slot * slot + pool.step * t + pool.head * h + pool.dim * d;
  }
  void read_row(int64_t d) {
    if (first) {
      memcpy(state, tile + d * row_floats, static_cast<size_t>(padded) * 4);
    } else if (r.read < 0) {
      memset(state, 0, static_cast<size_t>(padded) * 4);
    } else if constexpr (kInt) {
      const int16_t* from = place(p.source, r.read, 0, d);
      const float scale =
          p.source.scale[p.source.scale_slot * r.read + p.source.scale_head * h + p.source.scale_dim * d];
      memset(state, 0, static_cast<size_t>(padded) * 4);
      for (int64_t i = 0; i < p.dstate; ++i) state[i] = static_cast<float>(from[i]) * scale;
    } else {
      const State* from = place(p.source, r.read, 0, d);
      int64_t i = 0;
      for (; i + kLanes <= p.dstate; i += kLanes) store(state + i, load(from + i));
      if (i < p.dstate) store(state + i, load_n(from + i, p.dstate - i));
    }
  }
  /// Stores the row's state after token `t` of the sequence.
  void write_row(const SsuPool& pool, int64_t slot, int64_t entry, int64_t t, int64_t d) {
    State* const to = place(pool, slot, entry, d);
    if constexpr (kInt) {
      pool.scale[pool.scale_slot * slot + pool.scale_step * entry + pool.scale_head * h + pool.scale_dim * d] =
          store_int16(to, state, p.dstate);
    } else {
      if constexpr (C.state == DType::kF16)
        if (p.rounds) {
          const int64_t e = pool.flat_slot * slot + pool.flat_step * entry + (h * p.dim + d) * p.dstate;
          return store_randomly(to, state, 1.0f, p.dstate, static_cast<uint64_t>(e + t * p.step_elements), p.seed,
                                p.rounds);
        }
      int64_t i = 0;
      for (; i + kLanes <= p.dstate; i += kLanes) write_tail(to + i, load(state + i), kLanes);
      if (i < p.dstate) write_tail(to + i, load(state + i), p.dstate - i);
    }
  }

  bool from_pool_to_pool() const {
    return !kInt && !p.dst && r.tokens == 1 && r.read >= 0 && r.write >= 0 && r.cache < 0 && !p.rounds;
  }
  /// Rows [0, its result), 16 at a time.
  int64_t update_strips() {
    const int64_t group = h / p.heads_per_group;
    const T* const c16 = static_cast<const T*>(p.c.data) + p.c.row * r.row + p.c.step * first + p.c.head * group;
    const SsuStrip<State> strip(b, c, p.dots ? reinterpret_cast<const bf16_t*>(c16) : nullptr, decays[0], p.dstate,
                                tile);
    int64_t d = 0;
    for (; d + strip.kRows <= p.dim; d += strip.kRows) {
      alignas(64) float dx[strip.kRows];
      const T* const x = static_cast<const T*>(p.x.data) + p.x.row * r.row + p.x.head * h + d;
      store(dx, splat(dts[0]) * load(x));
      strip.run(place(p.source, r.read, 0, d), p.source.dim, place(p.pool, r.write, 0, d), p.pool.dim, dx, y + d);
    }
    return d;
  }
  void update_row(int64_t d) {
    if constexpr (!C.one_decay) {
      for (int64_t i = 0; i < p.dstate; ++i)
        a[i] = static_cast<const float*>(p.a.data)[p.a.head * h + p.a.dim * d + p.a.row * i];
      for (int64_t i = p.dstate; i < padded; ++i) a[i] = 0;
    }
    const int64_t* const dst = p.dst ? p.dst + seq * p.dst_stride : nullptr;
    if constexpr (!kInt)
      if (from_pool_to_pool()) {
        const State* const from = place(p.source, r.read, 0, d);
        State* const to = place(p.pool, r.write, 0, d);
        y[d] = step(
            0, d, [&](int64_t i, int64_t n) { return n == kLanes ? load(from + i) : load_n(from + i, n); },
            [&](int64_t i, int64_t n, Vec s) { write_tail(to + i, s, n); });
        return;
      }
    read_row(d);
    for (int64_t t = 0; t < count; ++t) {
      y[t * p.dim + d] = step(
          t, d, [&](int64_t i, int64_t) { return load(state + i); },
          [&](int64_t i, int64_t, Vec s) { store(state + i, s); });
      const int64_t token = first + t;
      if (r.cache >= 0) write_row(p.cache, r.cache, token, token, d);
      if (dst && dst[token] >= 0) write_row(p.dst_pool, dst[token], 0, token, d);
    }
    if (first + count < r.tokens)
      memcpy(tile + d * row_floats, state, static_cast<size_t>(padded) * 4);
    else if (r.write >= 0)
      write_row(p.pool, r.write, 0, r.tokens - 1, d);
  }

  /// out = (y + D x) silu(z).
  void finish() {
    if (p.d.data)
      for (int64_t d = 0; d < p.dim; ++d) skip[d] = d && !p.d.dim ? skip[0] : at(p.d, 0, 0, h, d);
    for (int64_t t = 0; t < count; ++t) {
      const auto line = [&](const SsuOperand& o) { return o.row * r.row + o.step * (first + t) + o.head * h; };
      const T *const x = static_cast<const T*>(p.x.data) + line(p.x), *const z = p.z.data
                                                                                     ? static_cast<const T*>(p.z.data) +
                                                                                           line(p.z)
                                                                                     : nullptr;
      T* const out = static_cast<T*>(const_cast<void*>(p.out.data)) + line(p.out);
      float* const yt = y + t * p.dim;
      for (int64_t d = 0; d < p.dim; d += kLanes) {
        const int64_t n = p.dim - d < kLanes ? p.dim - d : kLanes;
        Vec v = load_n(yt + d, n);
        if (p.d.data) v = fma(load_n(skip + d, n), load_n(x + d, n), v);
        if (z) v = v * silu(load_n(z + d, n));
        store_n(out + d, v, n);
      }
    }
  }

  const SsuParams& p;
  int64_t padded, row_floats;
  float *b, *c, *y, *dts, *decays, *tile, *a, *state, *skip;
  SsuRow r{};
  int64_t seq = 0, h = 0, first = 0, count = 0;
};

template <SsuConfig C>
void selective_state_update(const SsuParams& p, int64_t task) {
  Ssu<C> unit(p);
  const int64_t units = p.in_order ? p.heads : p.sequences * p.heads;
  const int64_t begin = task * p.units_per_task;
  const int64_t end = begin + p.units_per_task < units ? begin + p.units_per_task : units;
  for (int64_t u = begin; u < end; ++u) {
    if (!p.in_order)
      unit.run(u / p.heads, u % p.heads);
    else
      for (int64_t s = 0; s < p.sequences; ++s) unit.run(s, u);
  }
}

}  // namespace flashinfer::cpu
