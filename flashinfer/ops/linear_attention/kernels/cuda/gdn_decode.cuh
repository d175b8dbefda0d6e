// SPDX-License-Identifier: Apache-2.0
// Decode of the gated delta rule, states with K innermost: a block takes a few rows of the state of one value head of
// one batch row.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/ops/linear_attention/kernels/cuda/delta_tile.cuh"
#include "flashinfer/ops/linear_attention/kernels/gdn/decode_params.h"

namespace flashinfer::cu {
namespace linear {

/// Batch row i, value head h.
struct GdnPair {
  int64_t i, h, query, from, to;

  FI_GLOBAL_FN GdnPair(const GdnDecodeParams& p, uint32_t pair) {
    const auto heads = static_cast<uint32_t>(p.value_heads);
    i = pair / heads, h = pair % heads;
    query = static_cast<uint32_t>(h) * static_cast<uint32_t>(p.heads) / heads;
    from = slot(p.read.at(i), p.slots), to = slot(p.write.at(i), p.slots);
  }
  FI_GLOBAL_FN static int64_t slot(int64_t index, int64_t slots) { return index < slots ? index : -1; }
  FI_GLOBAL_FN int64_t at(const GdnRows& r, int64_t t, int64_t head) const {
    return i * r.batch + t * r.token + head * r.head;
  }
  FI_GLOBAL_FN int64_t result_at(const GdnDecodeParams& p, int64_t t) const {
    return i * p.result_batch + t * p.result_token + h * p.result_head;
  }
  /// Where the state after token t of this head goes, in elements; -1: nowhere.
  FI_GLOBAL_FN int64_t after_at(const GdnDecodeParams& p, int64_t t) const {
    if (!p.after_slots) return i * p.after.slot + t * p.after_token + h * p.after.head;
    const int64_t to_slot = slot(p.after_slots[i * p.after_batch + t * p.after_step], p.after_slot_count);
    return to_slot < 0 ? -1 : to_slot * p.after.slot + h * p.after.head;
  }
  /// ln of the decay, and beta.
  FI_GLOBAL_FN void gates(const GdnDecodeParams& p, int64_t t, float* log, float* beta) const {
    const float x = element(p.input, p.a.data, at(p.a, t, h)) + element(p.dt_type, p.dt_bias, h * p.dt_stride);
    *log = -(decay_rate(p.a_log[h * p.a_log_stride]) * softplus(x));
    *beta = logistic(element(p.input, p.b.data, at(p.b, t, h)));
  }
  FI_GLOBAL_FN bool first_of_query(const GdnDecodeParams& p) const { return h * p.heads % p.value_heads < p.heads; }
};

/// Token t for this lane's columns: gates, normalised rows.
template <DeltaCudaConfig C>
FI_GLOBAL_FN DeltaToken<C> gdn_token(const GdnDecodeParams& p, const GdnPair& pair, const DeltaTile<C>& tile,
                                     int64_t t) {
  using Tile = DeltaTile<C>;
  DeltaToken<C> token;
  tile.columns(p.input, p.k.data, pair.at(p.k, t, pair.query), p.wide, token.k);
  tile.columns(p.input, p.q.data, pair.at(p.q, t, pair.query), p.wide, token.q);
  float log;
  pair.gates(p, t, &log, &token.beta);
  token.decay[0] = ::expf(log);
  if (p.raw_v && tile.first == 0) {
    if (Tile::group_lane() == 0) {
      p.log_decay[pair.from * p.log_slot + pair.h * p.log_head + t] = log;
      p.beta[pair.from * p.beta_slot + pair.h * p.beta_head + t] = token.beta;
    }
    if (pair.first_of_query(p)) {
      bf16_t* to = p.raw_k + pair.from * p.raw_k_slot + pair.query * p.raw_k_head + t * p.raw_k_token;
#pragma unroll
      for (int i = 0; i < Tile::kElements; ++i) {
        const int32_t c = Tile::column(i / Tile::kPer) + i % Tile::kPer;
        if (c < tile.width) to[c] = from_f32<bf16_t>(token.k[i]);
      }
    }
  }
  float q_scale = p.scale;
  if (p.l2norm) {
    Tile::scale(token.k, Tile::inverse_norm(token.k));
    q_scale *= Tile::inverse_norm(token.q);
  }
  Tile::scale(token.q, q_scale);
  token.kq = Tile::dot(token.k, token.q);
  return token;
}

}  // namespace linear

template <DeltaCudaConfig C>
FI_GLOBAL_FN void gdn_decode(const GdnDecodeParams& p) {
  using namespace linear;
  using S = scalar_of_t<C.state>;
  depend_wait();
  const auto tiles = static_cast<uint32_t>(ceil_div(p.rows, C.block_rows()));
  const GdnPair pair(p, block_x() / tiles);
  DeltaTile<C> tile(static_cast<int32_t>(block_x() % tiles), p.rows, p.width);
  float v[C.rows()] = {}, o[C.rows()] = {};
  if (pair.from < 0) {
#pragma unroll 1
    for (int64_t t = 0; t < p.tokens; ++t) tile.put_values(p.out_type, p.result, pair.result_at(p, t), o);
  } else {
    tile.load(static_cast<const S*>(p.in.data) + pair.from * p.in.slot + pair.h * p.in.head, p.in.row);
#pragma unroll 1
    for (int64_t t = 0; t < p.tokens; ++t) {
      tile.values(p.input, p.v.data, pair.at(p.v, t, pair.h), v);
      const DeltaToken<C> token = gdn_token<C>(p, pair, tile, t);
      tile.step(token, v, o);
      tile.put_values(p.out_type, p.result, pair.result_at(p, t), o);
      if (p.raw_v)
        tile.put_values(DType::kBF16, p.raw_v, pair.from * p.raw_v_slot + pair.h * p.raw_v_head + t * p.raw_v_token, v);
      if (p.after.data)
        if (const int64_t at = pair.after_at(p, t); at >= 0)
          tile.store(static_cast<S*>(p.after.data) + at, p.after.row);
    }
    if (p.out.data && pair.to >= 0)
      tile.store(static_cast<S*>(p.out.data) + pair.to * p.out.slot + pair.h * p.out.head, p.out.row);
  }
  depend_launch();
}

}  // namespace flashinfer::cu
