// SPDX-License-Identifier: Apache-2.0
// The delta rule with a decay of each key channel, token by token: a block takes a few rows of the state of one value
// head of one sequence, which stay in registers from its first token to its last.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/ops/linear_attention/kernels/common/channel_block_layout.h"
#include "flashinfer/ops/linear_attention/kernels/cuda/delta_tile.cuh"
#include "flashinfer/ops/linear_attention/kernels/cuda/kda_inputs.cuh"

namespace flashinfer::cu {
namespace linear {

/// Rows of k, q and g of a token, as they are in memory: those of the next one are loaded before this one is computed.
template <DeltaCudaConfig C>
struct KdaInputs {
  DeltaToken<C> token;  // decay: g

  FI_GLOBAL_FN void load(const KdaParams& p, bool wide, const DeltaTile<C>& tile, int64_t t, int64_t h, int64_t query) {
    tile.columns(p.input, p.k.data, kda_at(p.k, t, query), wide, token.k);
    tile.columns(p.input, p.q.data, kda_at(p.q, t, query), wide, token.q);
    tile.columns(p.input, p.g.data, kda_at(p.g, t, h), wide, token.decay);
  }
};
template <DeltaCudaConfig C>
FI_GLOBAL_FN void kda_token(const KdaParams& p, bool wide, const DeltaTile<C>& tile, int64_t query, float rate,
                            DeltaToken<C>& token) {
  using Tile = DeltaTile<C>;
#pragma unroll
  for (int j = 0; j < Tile::kPieces; ++j) {
    float bias[Tile::kPer] = {};
    if (p.gate != KdaGate::kNone)
      load_columns(DType::kF32, p.dt_bias, query * p.width, Tile::column(j), tile.width, wide, bias);
#pragma unroll
    for (int i = 0; i < Tile::kPer; ++i) {
      float& decay = token.decay[j * Tile::kPer + i];
      decay = ::expf(kda_log_decay(p, decay, bias[i], rate));
    }
  }
  if (p.beta_is_logit) token.beta = logistic(token.beta);
  float q_scale = p.scale;
  if (p.l2norm) {
    Tile::scale(token.k, Tile::inverse_norm(token.k));
    q_scale *= Tile::inverse_norm(token.q);
  }
  Tile::scale(token.q, q_scale);
  token.kq = Tile::dot(token.k, token.q);
}

/// Of a frozen call: k and g of token i of a sequence as they came, and what the token would have added to the state.
template <DeltaCudaConfig C>
FI_GLOBAL_FN void put_inputs(const KdaCudaParams& a, const DeltaTile<C>& tile, int64_t slot, int64_t h, int64_t i,
                             const DeltaToken<C>& token) {
  const KdaStates& kg = a.call.kg;
  const int64_t at = slot * kg.slot + h * kg.head + i * kg.row;
  tile.put_columns(a.call.input, kg.data, at, a.wide_cache, token.k);
  tile.put_columns(a.call.input, kg.data, at + tile.width, a.wide_cache, token.decay);
}
template <DeltaCudaConfig C>
FI_GLOBAL_FN void put_corrections(const KdaCudaParams& a, const DeltaTile<C>& tile, int64_t slot, int64_t h, int64_t i,
                                  const float (&d)[C.rows()]) {
  const KdaStates& to = a.call.corrections;
  tile.put_values(DType::kF32, to.data, slot * to.slot + h * to.head + i * to.row, d);
}

}  // namespace linear

/// Sequences that kda_chunk takes are left out. A block more for each value head and tile than the sequences need
/// clears the results behind the last sequence.
template <DeltaCudaConfig C>
FI_GLOBAL_FN void kda(const KdaCudaParams& a) {
  using namespace linear;
  using S = scalar_of_t<C.state>;
  depend_wait();
  const KdaParams& p = a.call;
  const auto tiles = static_cast<uint32_t>(ceil_div(p.rows, C.block_rows())),
             heads = static_cast<uint32_t>(p.value_heads);
  const uint32_t unit = block_x() / tiles;
  const int64_t n = unit / heads, h = unit % heads, first = a.sequences.at(n);
  const int64_t end = n == p.count ? a.tokens : a.sequences.at(n + 1);
  const int64_t query = static_cast<uint32_t>(h) * static_cast<uint32_t>(p.heads) / heads;
  DeltaTile<C> tile(static_cast<int32_t>(block_x() % tiles), p.rows, p.width);
  if (tile.idle()) return;
  const int64_t read = n == p.count || !p.in.data ? -1 : kda_slot(a.read.at(n), a.in_slots);
  void* const out = const_cast<void*>(p.out.data);
  if (n == p.count || (p.in.data && read < 0)) {
    const float zeros[C.rows()] = {};
#pragma unroll 1
    for (int64_t t = first; t < end; ++t) tile.put_values(p.out_type, out, kda_at(p.out, t, h), zeros);
  } else if (first < end && (!a.chunks || end - first < kChannelCudaTokens)) {
    const auto place = [&](const KdaStates& pool, int64_t slot) {
      return static_cast<S*>(pool.data) + slot * pool.slot + h * pool.head;
    };
    if (p.in.data)
      tile.load(static_cast<const S*>(place(p.in, read)), p.in.row);
    else
      tile.clear();
    const float rate = p.gate == KdaGate::kNone ? 0.0f : decay_rate(p.a_log[query * p.a_log_stride]);
    KdaInputs<C> next;
    next.load(p, a.wide, tile, first, h, query);
#pragma unroll 1
    for (int64_t t = first; t < end; ++t) {
      KdaInputs<C> now = next;
      if (t + 1 < end) next.load(p, a.wide, tile, t + 1, h, query);
      float d[C.rows()], o[C.rows()];  // d: v at first
      tile.values(p.input, p.v.data, kda_at(p.v, t, h), d);
      now.token.beta = element(p.input, p.beta.data, kda_at(p.beta, t, h));
      const bool cached = read < a.cache_slots && t - first < a.cache_tokens;
      if (cached && tile.first == 0) put_inputs(a, tile, read, h, t - first, now.token);
      kda_token(p, a.wide, tile, query, rate, now.token);
      tile.correct(now.token, d, o);
      if (cached) put_corrections(a, tile, read, h, t - first, d);
      tile.put_values(p.out_type, out, kda_at(p.out, t, h), o);
      if (a.after.data)
        if (const int64_t slot = kda_slot(a.after.at(t), a.after_slots); slot >= 0)
          tile.store(place(p.after, slot), p.after.row);
    }
    const int64_t write = !a.updates ? -1 : kda_slot(a.write.data ? a.write.at(n) : read, a.state_slots);
    if (write >= 0) tile.store(place(p.state, write), p.state.row);
  }
  depend_launch();
}

}  // namespace flashinfer::cu
