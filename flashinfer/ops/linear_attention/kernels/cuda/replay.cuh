// SPDX-License-Identifier: Apache-2.0
// Mamba's step from a state that is older than the last tokens, on a GPU: a block takes a few rows of the state of one
// head of one sequence, which stay in registers while the ring's tokens are replayed and the new ones follow. The rows
// of a ring that are read and those that are written are different ones, so that blocks need no order.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/narrow.h"
#include "flashinfer/ops/linear_attention/kernels/common/random_rounding.h"
#include "flashinfer/ops/linear_attention/kernels/common/stored.h"
#include "flashinfer/ops/linear_attention/kernels/cuda/delta_tile.cuh"
#include "flashinfer/ops/linear_attention/kernels/mamba/replay_cuda_params.h"

namespace flashinfer::cu {
namespace linear {

FI_GLOBAL_FN int64_t replay_slot(int64_t slot, int64_t pad, int64_t slots) {
  return slot == pad || slot < 0 || slot >= slots ? -1 : slot;
}
FI_GLOBAL_FN int64_t replay_clamped(int64_t x, int64_t most) { return x < 0 ? 0 : x < most ? x : most; }

FI_GLOBAL_FN ReplayRow replay_row(const ReplayCudaParams& a, int64_t i) {
  ReplayRow r{i, 0, a.steps, -1, -1, 0, 0};
  if (a.materialize) {
    r.row = r.tokens = 0;
    r.read = replay_slot(a.read.at(i), a.pad, a.slots < a.ring_slots ? a.slots : a.ring_slots);
    r.write = replay_slot(a.write.at(i), a.pad, a.slots);
    r.start = replay_clamped(a.start.at(i), a.call.ring - 1), r.replay = replay_clamped(a.prefix.at(i), a.window);
    return r;
  }
  if (a.tokens.data)
    r.row = 0, r.first = a.tokens.at(i), r.tokens = replay_clamped(a.tokens.at(i + 1) - r.first, a.steps);
  r.read = replay_slot(a.read.at(i), a.pad, a.slots);
  if (r.read < 0) return r;
  r.start = replay_clamped(a.start.at(r.read), a.call.ring - 1),
  r.replay = r.tokens ? replay_clamped(a.prefix.at(r.read), a.window) : 0;
  if (r.tokens && r.replay + a.steps > a.window) r.write = r.read;
  return r;
}

template <DeltaCudaConfig C>
struct ReplayRows {
  using Tile = DeltaTile<C>;
  using State = stored_t<C.state>;
  static constexpr bool kInt = C.state == DType::kI8, kScaled = kInt || C.state == DType::kF8E4M3;
  static constexpr float kLargest = kInt ? 127.0f : 448.0f;
  static constexpr int kRows = C.rows(), kElements = Tile::kElements;
  const ReplayCudaParams& a;
  Tile tile;
  ReplayRow r;
  int64_t h, group;

  FI_GLOBAL_FN State* place(int64_t slot) const {
    const SsuPool& pool = a.call.state;
    return static_cast<State*>(pool.data) + pool.slot * slot + pool.head * h;
  }
  FI_GLOBAL_FN float* scale(int64_t slot, int i) const {
    const SsuPool& pool = a.call.state;
    return pool.scale + pool.scale_slot * slot + pool.scale_head * h + pool.scale_dim * (tile.first + i);
  }
  /// f(row, element, column) for the elements of this lane that are there.
  template <class F>
  FI_GLOBAL_FN void each(F f) const {
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int e = 0; e < kElements; ++e) {
        const int32_t c = Tile::column(e / Tile::kPer) + e % Tile::kPer;
        if (tile.first + i < tile.rows && c < tile.width) f(i, e, c);
      }
  }
  FI_GLOBAL_FN void copy() const {
    const int64_t step = a.call.state.dim;
    each([&](int i, int, int32_t c) {
      place(r.write)[(tile.first + i) * step + c] = place(r.read)[(tile.first + i) * step + c];
    });
    if constexpr (kScaled)
      for (int i = 0; i < kRows; ++i)
        if (Tile::group_lane() == 0 && tile.first + i < tile.rows) *scale(r.write, i) = *scale(r.read, i);
  }
  FI_GLOBAL_FN void load() {
    const int64_t step = a.call.state.dim;
    if constexpr (kInt) {
      tile.clear();
      each([&](int i, int e, int32_t c) {
        tile.s[i][e] = static_cast<float>(place(r.read)[(tile.first + i) * step + c]);
      });
    } else {
      tile.load(static_cast<const State*>(place(r.read)), step);
    }
    if constexpr (kScaled) {
#pragma unroll
      for (int i = 0; i < kRows; ++i)
        if (tile.first + i < tile.rows) Tile::scale(tile.s[i], *scale(r.read, i));
    }
  }
  /// Element (i, e) as it is stored, with the random bits of its place in the pool.
  FI_GLOBAL_FN State rounded(float x, int i, int32_t c) const {
    if constexpr (kInt) {
      const float y = fminf(fmaxf(x, -kLargest), kLargest);
      return static_cast<int8_t>(((y == y ? y : 0.0f) + 12582912.0f) - 12582912.0f);  // to nearest even
    } else if constexpr (C.state == DType::kF16 || C.state == DType::kF8E4M3) {
      if (a.seed) {
        const ReplayParams& p = a.call;
        const auto at = static_cast<uint64_t>(((r.write * p.heads + h) * p.dim + tile.first + i) * p.dstate + c);
        const uint32_t word = philox_word(static_cast<uint64_t>(*a.seed), at, p.rounds);
        if constexpr (C.state == DType::kF16)
          return round_randomly(x, word);
        else
          return round_e4m3_randomly(x, word);
      }
      return stored(x);
    } else {
      return stored(x);
    }
  }
  FI_GLOBAL_FN static State stored(float x) {
    if constexpr (C.state == DType::kF8E4M3) {
      State y;
      y.bits = static_cast<uint8_t>(narrow_e4m3(x));
      return y;
    } else if constexpr (kInt) {
      return static_cast<int8_t>(x);
    } else {
      return from_f32<State>(x);
    }
  }
  FI_GLOBAL_FN void store() const {
    const int64_t step = a.call.state.dim;
    if constexpr (!kScaled)
      if (C.state != DType::kF16 || !a.seed) return tile.store(place(r.write), step);
    float by[kRows];
    if constexpr (kScaled) sync_warp();  // all lanes have read the scales that are written here
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      by[i] = 1.0f;
      if constexpr (kScaled) {
        float most = 0.0f;
#pragma unroll
        for (int e = 0; e < kElements; ++e) most = Max{}(fabsf(tile.s[i][e]), most);
        most = warp_reduce<Tile::kLanes>(most, Max{});
        by[i] = most > 0.0f ? kLargest / most : 1.0f;
        if (Tile::group_lane() == 0 && tile.first + i < tile.rows) *scale(r.write, i) = 1.0f / by[i];
      }
    }
#pragma unroll 1  // the generator's code would not fit into registers
    for (int k = 0; k < kRows * kElements; ++k) {
      float x = 0.0f;
#pragma unroll
      for (int j = 0; j < kRows * kElements; ++j)
        x = j == k ? tile.s[j / kElements][j % kElements] * by[j / kElements] : x;
      const int i = k / kElements, e = k % kElements;
      const int32_t c = Tile::column(e / Tile::kPer) + e % Tile::kPer;
      if (tile.first + i < tile.rows && c < tile.width) place(r.write)[(tile.first + i) * step + c] = rounded(x, i, c);
    }
  }

  FI_GLOBAL_FN int64_t ring(const ReplayRing& o, int64_t t, int64_t head) const {
    const uint32_t row = static_cast<uint32_t>(r.start + t) % static_cast<uint32_t>(a.call.ring);
    return o.slot * r.read + o.head * head + o.token * row;
  }
  FI_GLOBAL_FN static int64_t at(const SsuOperand& o, const ReplayRow& r, int64_t t, int64_t head) {
    return o.row * r.row + o.step * (r.first + t) + o.head * head;
  }
  FI_GLOBAL_FN void advance(const float (&b)[kElements], const float (&x)[kRows], float dt) {
    const ReplayParams& p = a.call;
    const float decay = ::expf(element(p.a.dtype, p.a.data, p.a.head * h) * dt);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const float dx = dt * x[i];
#pragma unroll
      for (int e = 0; e < kElements; ++e) tile.s[i][e] = fmaf(dx, b[e], tile.s[i][e] * decay);
    }
  }
  FI_GLOBAL_FN void replay(int64_t t) {
    const ReplayParams& p = a.call;
    float b[kElements], x[kRows];
    tile.columns(a.io, p.b_cache.data, ring(p.b_cache, t, group), a.wide, b);
    tile.values(a.io, p.x_cache.data, ring(p.x_cache, t, h), x);
    advance(b, x, static_cast<const float*>(p.dt_cache.data)[ring(p.dt_cache, t, h)]);
  }
  FI_GLOBAL_FN void values_of(const SsuOperand& o, int64_t from, float (&to)[kRows]) const {
#pragma unroll
    for (int i = 0; i < kRows; ++i)
      to[i] = tile.first + i < tile.rows ? element(o.dtype, o.data, from + o.dim * (tile.first + i)) : 0.0f;
  }
  /// New token t; its inputs join the ring. `first`: of this head's blocks.
  FI_GLOBAL_FN void token(int64_t t, bool first) {
    const ReplayParams& p = a.call;
    float b[kElements], c[kElements], x[kRows], y[kRows];
    tile.columns(a.io, p.b.data, at(p.b, r, t, group), a.wide, b);
    tile.columns(a.io, p.c.data, at(p.c, r, t, group), a.wide, c);
    values_of(p.x, at(p.x, r, t, h), x);
    float dt = element(p.dt.dtype, p.dt.data, at(p.dt, r, t, h));
    if (p.dt_bias.data) dt += element(p.dt_bias.dtype, p.dt_bias.data, p.dt_bias.head * h);
    if (p.softplus) dt = softplus(dt);
    const int64_t to = r.replay + t;
    tile.put_values(a.io, p.x_cache.data, ring(p.x_cache, to, h), x);
    if (first && thread_x() == 0) static_cast<float*>(p.dt_cache.data)[ring(p.dt_cache, to, h)] = dt;
    if (first && h == group * p.heads_per_group && thread_x() < static_cast<uint32_t>(Tile::kLanes))
      tile.put_columns(a.io, p.b_cache.data, ring(p.b_cache, to, group), a.wide, b);
    advance(b, x, dt);
#pragma unroll
    for (int i = 0; i < kRows; ++i) y[i] = Tile::dot(tile.s[i], c);
    float other[kRows];
    if (p.d.data) {
      values_of(p.d, p.d.head * h, other);
#pragma unroll
      for (int i = 0; i < kRows; ++i) y[i] = fmaf(other[i], x[i], y[i]);
    }
    if (p.z.data) {
      values_of(p.z, at(p.z, r, t, h), other);
#pragma unroll
      for (int i = 0; i < kRows; ++i) y[i] *= other[i] / (1.0f + ::expf(-other[i]));
    }
    tile.put_values(a.io, const_cast<void*>(p.out.data), at(p.out, r, t, h), y);
  }
  FI_GLOBAL_FN void clear() const {
    const float none[kRows] = {};
    for (int64_t t = 0; t < r.tokens; ++t)
      tile.put_values(a.io, const_cast<void*>(a.call.out.data), at(a.call.out, r, t, h), none);
  }
};

}  // namespace linear

template <DeltaCudaConfig C>
FI_GLOBAL_FN void mamba_replay(const ReplayCudaParams& a) {
  using namespace linear;
  depend_wait();
  const ReplayParams& p = a.call;
  const auto tiles = static_cast<uint32_t>(ceil_div(p.dim, C.block_rows())), heads = static_cast<uint32_t>(p.heads),
             unit = block_x() / tiles;
  const int64_t h = unit % heads;
  ReplayRows<C> rows{a, DeltaTile<C>(static_cast<int32_t>(block_x() % tiles), p.dim, p.dstate),
                     replay_row(a, unit / heads), h,
                     static_cast<uint32_t>(h) / static_cast<uint32_t>(p.heads_per_group)};
  const ReplayRow& r = rows.r;
  if (rows.tile.idle()) return;
  if (r.read < 0) {
    rows.clear();
  } else if (r.replay + r.tokens == 0) {
    if (r.write >= 0) rows.copy();
  } else {
    rows.load();
#pragma unroll 1
    for (int64_t t = 0; t < r.replay; ++t) rows.replay(t);
    if (r.write >= 0) rows.store();
#pragma unroll 1
    for (int64_t t = 0; t < r.tokens; ++t) rows.token(t, block_x() % tiles == 0);
  }
  depend_launch();
}

}  // namespace flashinfer::cu
