// SPDX-License-Identifier: Apache-2.0
// Applies the accepted tokens of a replay cache to the states of all layers: a block takes a few rows of the state of
// one value head of one layer and batch row.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/ops/linear_attention/kernels/cuda/delta_tile.cuh"
#include "flashinfer/ops/linear_attention/kernels/gdn/commit_params.h"

namespace flashinfer::cu {

/// A slot that the pool does not have is none; accepted lengths end at the cache's tokens.
template <DeltaCudaConfig C>
FI_GLOBAL_FN void gdn_commit(const GdnCommitParams& p) {
  using namespace linear;
  using Tile = DeltaTile<C>;
  constexpr uint32_t kTiles = kGdnCommitWidth / C.block_rows();
  static_assert(kGdnCommitWidth % C.block_rows() == 0 && C.width == kGdnCommitWidth);
  depend_wait();
  const uint32_t unit = block_x() / kTiles, heads = static_cast<uint32_t>(p.value_heads);
  const uint32_t pair = unit / heads, batch = static_cast<uint32_t>(p.batch);
  const int64_t h = unit % heads, i = pair % batch, layer = pair / batch;
  const int64_t query = static_cast<uint32_t>(h) * static_cast<uint32_t>(p.heads) / heads;
  const int64_t slot = p.slots[i * p.slots_stride], accepted = p.accepted[i * p.accepted_stride];
  const int64_t count = accepted < p.tokens ? accepted : p.tokens;
  if (slot > p.null_slot && slot < p.pool && count > 0) {
    int64_t track = p.null_slot, track_step = -1;
    if (p.track_slots)
      track = p.track_slots[i * p.track_slots_stride], track_step = p.track_steps[i * p.track_steps_stride];
    float* const head = p.states + layer * p.layer + h * p.head;
    Tile tile(static_cast<int32_t>(block_x() % kTiles), kGdnCommitWidth, kGdnCommitWidth);
    tile.load(static_cast<const float*>(head) + slot * p.slot, p.row);
#pragma unroll 1
    for (int64_t t = 0; t < count; ++t) {
      DeltaToken<C> token;
      float v[C.rows()], unused[C.rows()];
      tile.columns(DType::kBF16, p.raw_k, layer * p.k_layer + slot * p.k_slot + query * p.k_head + t * p.k_token,
                   p.wide, token.k);
      tile.values(DType::kBF16, p.raw_v, layer * p.v_layer + slot * p.v_slot + h * p.v_head + t * p.v_token, v);
      token.decay[0] = ::expf(p.log_decay[layer * p.g_layer + slot * p.g_slot + h * p.g_head + t]);
      token.beta = p.beta[layer * p.beta_layer + slot * p.beta_slot + h * p.beta_head + t];
      if (p.l2norm) Tile::scale(token.k, Tile::inverse_norm(token.k));
      tile.template step<false>(token, v, unused);
      if (t == track_step && track > p.null_slot && track < p.pool) tile.store(head + track * p.slot, p.row);
    }
    tile.store(head + slot * p.slot, p.row);
  }
  depend_launch();
}

}  // namespace flashinfer::cu
