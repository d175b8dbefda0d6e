// SPDX-License-Identifier: Apache-2.0
// Packed sequences token by token: a block takes a few rows of the state of one head of one sequence, which stay in
// registers from its first token to its last. Any type and size; a decay and gates of channels; several updates a
// token.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/ops/linear_attention/kernels/cuda/delta_tile.cuh"
#include "flashinfer/ops/linear_attention/kernels/cuda/packed.cuh"

namespace flashinfer::cu {
namespace linear {

template <DeltaCudaConfig C>
FI_GLOBAL_FN void store_state(const DeltaTile<C>& tile, const GdnStateTensor& t, int64_t slot, int64_t head) {
  with_states(t, [&](auto* data) { tile.store(data + slot * t.slot + head * t.head, t.row); });
}

/// Rows of k, q and gates of an update of a token, as they are in memory: those of the next one are loaded before this
/// one is computed.
template <DeltaCudaConfig C>
struct PackedInputs {
  using Tile = DeltaTile<C>;
  DeltaToken<C> token;  // with channels: decay as its logarithm, keys: beta

  FI_GLOBAL_FN void load(const GdnChunkParams& p, const Tile& tile, int64_t t, int64_t row, uint32_t h) {
    const auto heads = static_cast<uint32_t>(p.heads);
    tile.columns(p.k.type, p.k.data, packed_at(p.k, row, h, heads), p.wide, token.k);
    tile.columns(p.q.type, p.q.data, packed_at(p.q, t, h, heads), p.wide, token.q);
    if constexpr (C.channels) {
      fill(token.decay, 0.0f), fill(token.keys, 1.0f);
      if (p.gate.data) tile.columns(p.gate.type, p.gate.data, packed_at(p.gate, t, h, heads), p.wide, token.decay);
      if (p.beta.data) tile.columns(p.beta.type, p.beta.data, packed_at(p.beta, row, h, heads), p.wide, token.keys);
    }
  }
  template <int N>
  FI_GLOBAL_FN static void fill(float (&to)[N], float x) {
#pragma unroll
    for (float& e : to) e = x;
  }
  /// The rest of the inputs, and what is computed of them. `row`: the update, the first of its token or not.
  FI_GLOBAL_FN void prepare(const GdnChunkParams& p, const Tile& tile, int64_t t, int64_t row, bool first, uint32_t h,
                            float (&v)[C.rows()]) {
    const auto heads = static_cast<uint32_t>(p.heads);
    tile.values(p.v.type, p.v.data, packed_at(p.v, row, h, heads), v);
    token.beta = 1.0f;
    if constexpr (C.channels) {
      if (p.write.data) {
        float w[C.rows()];
        tile.values(p.write.type, p.write.data, packed_at(p.write, row, h, heads), w);
#pragma unroll
        for (int r = 0; r < C.rows(); ++r) v[r] *= w[r];
      }
#pragma unroll
      for (float& x : token.decay) x = ::expf(x);
    } else {
      if (p.beta.data) token.beta = element(DType::kF32, p.beta.data, packed_at(p.beta, row, h, heads));
      token.decay[0] = p.gate.data && first ? element(DType::kF32, p.gate.data, packed_at(p.gate, t, h, heads)) : 1.0f;
    }
    if (p.l2norm) {
      const float k = Tile::inverse_norm(token.k), q = Tile::inverse_norm(token.q);
#pragma unroll
      for (int i = 0; i < Tile::kElements; ++i)
        token.k[i] = rounded(p.k.type, token.k[i] * k), token.q[i] = rounded(p.q.type, token.q[i] * q);
    }
    Tile::scale(token.q, p.scale);
    token.kq = Tile::dot(token.k, token.q);
    if constexpr (C.keys) {
#pragma unroll
      for (int i = 0; i < Tile::kElements; ++i) token.keys[i] *= token.k[i];
    }
  }
};

}  // namespace linear

template <DeltaCudaConfig C>
FI_GLOBAL_FN void gdn_rows(const GdnChunkParams& p) {
  using namespace linear;
  depend_wait();
  const auto tiles = static_cast<uint32_t>(ceil_div(p.rows, C.block_rows())), heads = static_cast<uint32_t>(p.heads);
  const uint32_t unit = block_x() / tiles, h = unit % heads;
  const int64_t n = unit / heads, start = p.sequences.at(n), tokens = p.sequences.at(n + 1) - start;
  if (tokens > 0 || (p.final.data && !p.keep_empty)) {
    const int64_t slot = p.slots.data ? p.slots.at(n) : n;
    DeltaTile<C> tile(static_cast<int32_t>(block_x() % tiles), p.rows, p.width);
    if (tile.idle()) return;
    if (p.in.data && slot >= 0 && slot < p.in_slots)
      with_states(p.in, [&]<class S>(S* data) {
        tile.load(static_cast<const S*>(data) + slot * p.in.slot + h * p.in.head, p.in.row);
      });
    else
      tile.clear();
    PackedInputs<C> next;
    if (tokens > 0) next.load(p, tile, start, start * p.updates, h);
#pragma unroll 1
    for (int64_t i = 0; i < tokens; ++i) {
      const int64_t t = start + i;
      float v[C.rows()], o[C.rows()] = {};
#pragma unroll 1
      for (int64_t row = t * p.updates; row < (t + 1) * p.updates; ++row) {
        PackedInputs<C> now = next;
        const bool last = row + 1 == (t + 1) * p.updates;
        if (!last || i + 1 < tokens) next.load(p, tile, last ? t + 1 : t, row + 1, h);
        now.prepare(p, tile, t, row, row == t * p.updates, h, v);
        tile.step(now.token, v, o);
      }
      tile.put_values(p.out_type, p.out, t * p.out_token + h * p.out_head, o);
      if (p.every && static_cast<uint32_t>(i + 1) % static_cast<uint32_t>(p.every) == 0) {
        const int64_t row =
            p.checkpoint_starts.at(n) + static_cast<uint32_t>(i + 1) / static_cast<uint32_t>(p.every) - 1;
        if (row >= 0 && row < p.checkpoint_rows) store_state(tile, p.checkpoints, row, h);
      }
    }
    if (p.final.data && slot >= 0 && slot < p.final_slots) store_state(tile, p.final, slot, h);
  }
  depend_launch();
}

}  // namespace flashinfer::cu
