// SPDX-License-Identifier: Apache-2.0
// selective_state_update: a block takes a few rows of the state of one head of one sequence, which stay in registers
// from its first token to its last. Rows and lanes as in delta_tile.cuh, with dstate for K and dim for V; C.channels: a
// decay for each element of the state.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/ops/linear_attention/kernels/common/random_rounding.h"
#include "flashinfer/ops/linear_attention/kernels/common/stored.h"
#include "flashinfer/ops/linear_attention/kernels/cuda/delta_tile.cuh"
#include "flashinfer/ops/linear_attention/kernels/cuda/ssu_plan.cuh"

namespace flashinfer::cu {
namespace linear {

/// Element first + r of an operand, for each of the group's rows; zeros where there is none.
template <DeltaCudaConfig C>
FI_GLOBAL_FN void ssu_values(const DeltaTile<C>& tile, const SsuOperand& o, int64_t at, float (&to)[C.rows()]) {
#pragma unroll
  for (int r = 0; r < C.rows(); ++r)
    to[r] = o.data && tile.first + r < tile.rows ? element(o.dtype, o.data, at + o.dim * (tile.first + r)) : 0.0f;
}

template <DeltaCudaConfig C>
struct SsuRows {
  using Tile = DeltaTile<C>;
  using State = stored_t<C.state>;
  static constexpr bool kInt = C.state == DType::kI16;
  static constexpr int kRows = C.rows(), kElements = Tile::kElements;
  const SsuCudaParams& a;
  Tile tile;
  int64_t h;

  FI_GLOBAL_FN State* place(const SsuPool& pool, int64_t slot, int64_t step) const {
    return static_cast<State*>(pool.data) + pool.slot * slot + pool.step * step + pool.head * h;
  }
  FI_GLOBAL_FN float* scale(const SsuPool& pool, int64_t slot, int64_t step, int r) const {
    return pool.scale + pool.scale_slot * slot + pool.scale_step * step + pool.scale_head * h +
           pool.scale_dim * (tile.first + r);
  }
  FI_GLOBAL_FN void load(int64_t slot) {
    const SsuPool& pool = a.call.source;
    tile.load(static_cast<const State*>(place(pool, slot, 0)), pool.dim);
    if constexpr (kInt) {
#pragma unroll
      for (int r = 0; r < kRows; ++r)
        if (tile.first + r < tile.rows) Tile::scale(tile.s[r], *scale(pool, slot, 0, r));
    }
  }
  /// The state after token t, rounded; `step`: of a row of intermediate states.
  FI_GLOBAL_FN void store(const SsuPool& pool, int64_t slot, int64_t step, int64_t t) const {
    if constexpr (kInt) {
      Tile rounded = tile;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        float most = 0.0f;
#pragma unroll
        for (int i = 0; i < kElements; ++i) most = ::fmaxf(most, ::fabsf(tile.s[r][i]));
        most = warp_reduce<Tile::kLanes>(most, Max{});
        const float enc = most > 0.0f ? 32767.0f / most : 1.0f;
#pragma unroll
        for (int i = 0; i < kElements; ++i) {
          const float y = ::fminf(::fmaxf(tile.s[r][i] * enc, -32767.0f), 32767.0f);
          rounded.s[r][i] = y == y ? (y + 12582912.0f) - 12582912.0f : 0.0f;  // to nearest even: |y| < 2^22
        }
        if (Tile::group_lane() == 0 && tile.first + r < tile.rows) *scale(pool, slot, step, r) = 1.0f / enc;
      }
      rounded.store(place(pool, slot, step), pool.dim);
    } else if (C.state == DType::kF16 && a.seed) {
      store_randomly(pool, slot, step, t);
    } else {
      tile.store(place(pool, slot, step), pool.dim);
    }
  }
  FI_GLOBAL_FN void store_randomly(const SsuPool& pool, int64_t slot, int64_t step, int64_t t) const {
    const auto seed = static_cast<uint64_t>(*a.seed);
#pragma unroll 1
    for (int e = 0; e < kRows * kElements; ++e) {  // not unrolled: the generator's code would not fit into registers
      const int r = e / kElements, i = e % kElements;
      float x = 0.0f;
#pragma unroll
      for (int k = 0; k < kRows * kElements; ++k) x = k == e ? tile.s[k / kElements][k % kElements] : x;
      const int32_t d = tile.first + r, c = Tile::column(i / Tile::kPer) + i % Tile::kPer;
      if (d >= tile.rows || c >= tile.width) continue;
      const int64_t at = pool.flat_slot * slot + pool.flat_step * step + (h * a.call.dim + d) * tile.width +
                         t * a.call.step_elements + c;
      reinterpret_cast<f16_t*>(place(pool, slot, step) + d * pool.dim)[c] =
          round_randomly(x, philox_word(seed, static_cast<uint64_t>(at), a.call.rounds));
    }
  }
  FI_GLOBAL_FN float step_size(int64_t row, int64_t t, int r) const {
    const SsuParams& p = a.call;
    const int64_t d = tile.first + r;
    return ssu_step_size(p, element(p.dt.dtype, p.dt.data, ssu_at(p.dt, row, t, h) + p.dt.dim * d), h, d);
  }
  /// Token t: the state, and the results of the group's rows.
  FI_GLOBAL_FN void step(int64_t row, int64_t t, float (&y)[kRows]) {
    const SsuParams& p = a.call;
    const int64_t group = static_cast<uint32_t>(h) / static_cast<uint32_t>(p.heads_per_group);
    float b[kElements], c[kElements], x[kRows], dt[kRows];
    tile.columns(p.b.dtype, p.b.data, ssu_at(p.b, row, t, group), a.wide, b);
    tile.columns(p.c.dtype, p.c.data, ssu_at(p.c, row, t, group), a.wide, c);
    ssu_values(tile, p.x, ssu_at(p.x, row, t, h), x);
    const float* const rates = static_cast<const float*>(p.a.data) + p.a.head * h;
    float decay = 0.0f;
    if constexpr (!C.channels) {
      const float one = tile.first < tile.rows ? step_size(row, t, 0) : 0.0f;
      decay = ::expf(rates[0] * one);
#pragma unroll
      for (float& each : dt) each = one;
    } else {
#pragma unroll
      for (int r = 0; r < kRows; ++r) dt[r] = tile.first + r < tile.rows ? step_size(row, t, r) : 0.0f;
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float dx = dt[r] * x[r];
      y[r] = 0.0f;
#pragma unroll
      for (int i = 0; i < kElements; ++i) {
        if constexpr (C.channels) {
          const int32_t column = Tile::column(i / Tile::kPer) + i % Tile::kPer;
          decay = 0.0f;
          if (tile.first + r < tile.rows && column < tile.width)
            decay = ::expf(rates[p.a.dim * (tile.first + r) + p.a.row * column] * dt[r]);
        }
        tile.s[r][i] = tile.s[r][i] * decay + b[i] * dx;
        y[r] += tile.s[r][i] * c[i];
      }
      y[r] = Tile::sum(y[r]);
    }
    float skip[kRows];
    ssu_values(tile, p.d, p.d.head * h, skip);
#pragma unroll
    for (int r = 0; r < kRows; ++r) y[r] += skip[r] * x[r];
    if (!p.z.data) return;
    float z[kRows];
    ssu_values(tile, p.z, ssu_at(p.z, row, t, h), z);
#pragma unroll
    for (int r = 0; r < kRows; ++r) y[r] *= z[r] / (1.0f + ::expf(-z[r]));
  }
};

}  // namespace linear

template <DeltaCudaConfig C>
FI_GLOBAL_FN void selective_state_update(const SsuCudaParams& a) {
  using namespace linear;
  depend_wait();
  const SsuParams& p = a.call;
  const auto tiles = static_cast<uint32_t>(ceil_div(p.dim, C.block_rows())), heads = static_cast<uint32_t>(p.heads);
  const uint32_t unit = block_x() / tiles;
  const int64_t i = unit / heads, h = unit % heads;
  const SsuPlan plan(a, i);
  if (plan.tokens > 0 || (a.whole && (plan.write >= 0 || plan.checkpoint == 0))) {
    SsuRows<C> rows{a, DeltaTile<C>(static_cast<int32_t>(block_x() % tiles), p.dim, p.dstate), h};
    if (rows.tile.idle()) return;
    if (plan.read >= 0)
      rows.load(plan.read);
    else
      rows.tile.clear();
    if (plan.checkpoint == 0) rows.store(p.dst_pool, plan.checkpoint_slot, 0, 0);
#pragma unroll 1
    for (int64_t t = 0; t < plan.tokens; ++t) {
      // Addresses of this token's rows are computed for this token, instead of kept in registers for all tokens.
      Pack<int32_t, 1> first{{rows.tile.first}};
      forget(first);
      rows.tile.first = first[0];
      float y[C.rows()];
      rows.step(plan.row, t, y);
      rows.tile.put_values(p.out.dtype, const_cast<void*>(p.out.data), ssu_at(p.out, plan.row, t, h), y);
      if (plan.checkpoint == t + 1) rows.store(p.dst_pool, plan.checkpoint_slot, 0, t);
      if (plan.cache >= 0 && t < a.steps) rows.store(p.cache, plan.cache, t, t);
      if (a.dst_each_token && plan.read >= 0 && t < a.steps)
        if (const int64_t slot = SsuPlan::slot(a, a.dst.at(i, t)); slot >= 0) rows.store(p.dst_pool, slot, 0, t);
    }
    if (plan.write >= 0) rows.store(p.pool, plan.write, 0, plan.tokens - 1);
  }
  depend_launch();
}

}  // namespace flashinfer::cu
