// SPDX-License-Identifier: Apache-2.0
// Rows of experts in padded tiles on a GPU, after the routing: local experts, their numbers of rows, then the rows.
// Each block places the entries of one expert in their order, without atomic operations.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/moe/kernels/cuda/permute.cuh"
#include "flashinfer/ops/moe/kernels/gen_routing_params.h"

namespace flashinfer::cu {

template <MoeCudaConfig C>
FI_GLOBAL_FN void moe_gen_choices(const MoeGenRoutingParams& p) {
  depend_wait();
  const auto i = static_cast<int32_t>(block_x() * static_cast<uint32_t>(C.threads) + thread_x());
  if (i < p.tokens * p.choices) {
    const int32_t t = i / p.choices, j = i - t * p.choices;
    int32_t id = p.experts + j - p.top_k, local = p.routed + j - p.top_k;
    if (j < p.top_k) {
      id = p.routed_ids[t * p.top_k + j];
      local = id >= p.offset && id < p.offset + p.routed ? id - p.offset : -1;
    } else {
      moe_put(p.topk_weights, t, j, 1.0f);
    }
    p.local_ids[i] = local;
    moe_put_id(p.topk_ids, t, j, local < 0 ? -1 : id);
  }
  depend_launch();
}

/// Block e: the entries of local expert e.
template <MoeCudaConfig C>
FI_GLOBAL_FN void moe_gen_counts(const MoeGenRoutingParams& p) {
  depend_wait();
  const auto e = static_cast<int32_t>(block_x());
  int32_t own = 0;
  for (auto i = static_cast<int32_t>(thread_x()); i < p.tokens * p.choices; i += C.threads) own += p.local_ids[i] == e;
  own = block_reduce<C.threads>(own, Sum{}, reinterpret_cast<int32_t*>(shared()));
  if (thread_x() == 0) p.counts[e] = own;
  depend_launch();
}

/// Block e: tiles and rows of local expert e; the last block what belongs to none.
template <MoeCudaConfig C>
FI_GLOBAL_FN void moe_gen_rows(const MoeGenRoutingParams& p) {
  auto* const words = reinterpret_cast<int32_t*>(shared());
  depend_wait();
  const auto e = static_cast<int32_t>(block_x()), thread = static_cast<int32_t>(thread_x());
  const int32_t entries = p.tokens * p.choices;
  int32_t before = 0;
  for (int32_t i = thread; i < e; i += C.threads) before += ceil_div(p.counts[i], p.tile);
  const int32_t first = block_reduce<C.threads>(before, Sum{}, words);
  const auto entry = [&](int32_t i, int32_t row) { moe_put_id(p.row_of_entry, i / p.choices, i % p.choices, row); };
  if (e == p.local) {
    for (int32_t i = thread; i < entries; i += C.threads)
      if (p.local_ids[i] < 0) entry(i, -1);
    for (int32_t i = first + thread; i < p.tiles; i += C.threads)
      moe_put_id(p.expert_of_tile, i, 0, -1), moe_put_id(p.limit_of_tile, i, 0, 0);
    for (int32_t r = first * p.tile + thread; r < p.tiles * p.tile; r += C.threads)
      moe_put_id(p.token_of_row, r, 0, -1);
    if (thread == 0) moe_put_id(p.used_tiles, 0, 0, first), moe_put_id(p.padded_rows, 0, 0, first * p.tile);
  } else {
    const int32_t count = p.counts[e], used = ceil_div(count, p.tile), start = first * p.tile;
    for (int32_t i = thread; i < used; i += C.threads) {
      moe_put_id(p.expert_of_tile, first + i, 0, e);
      moe_put_id(p.limit_of_tile, first + i, 0, start + (i + 1 < used ? (i + 1) * p.tile : count));
    }
    for (int32_t r = count + thread; r < used * p.tile; r += C.threads) moe_put_id(p.token_of_row, start + r, 0, -1);
    place_in_order<C.threads>(
        entries, count, words, [&](int32_t i) { return p.local_ids[i] == e; },
        [&](int32_t i, int32_t k) {
          entry(i, start + k);
          moe_put_id(p.token_of_row, start + k, 0, i / p.choices);
        });
  }
  depend_launch();
}

}  // namespace flashinfer::cu
