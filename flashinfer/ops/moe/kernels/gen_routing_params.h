// SPDX-License-Identifier: Apache-2.0
// Params of the order of rows in padded tiles on a GPU. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/ops/moe/kernels/cuda_params.h"

namespace flashinfer {

/// Of tokens * choices entries: `top_k` routed ones a token and the shared experts behind them. Local experts are those
/// in [offset, offset + routed), then the shared ones; `local` in all. Results as in TrtllmGenRouting.
struct MoeGenRoutingParams {
  const int32_t* routed_ids;                               // [tokens, top_k]
  int32_t *local_ids, *counts;                             // scratch: [tokens * choices], -1: elsewhere; [local]
  MoeResults topk_ids, topk_weights, row_of_entry;         // [tokens, choices]
  MoeResults token_of_row, expert_of_tile, limit_of_tile;  // [tiles * tile], [tiles] twice
  MoeResults padded_rows, used_tiles;                      // [1] each
  int32_t tokens, choices, top_k, experts, routed, offset, local, tile, tiles;
};

}  // namespace flashinfer
