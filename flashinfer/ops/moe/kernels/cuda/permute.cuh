// SPDX-License-Identifier: Apache-2.0
// Which rows of which experts a batch needs: entries of this rank, and a counting sort by expert in which each block
// places the entries of one expert. It has no atomic operation, so rows have the same order in every run.
#pragma once
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "flashinfer/ops/moe/kernels/cuda/numbers.cuh"

namespace flashinfer::cu {

template <MoeCudaConfig C>
FI_GLOBAL_FN void moe_choices(const MoeChoicesParams& p) {
  depend_wait();
  const int32_t at = static_cast<int32_t>(block_x() * static_cast<uint32_t>(C.threads) + thread_x());
  if (at < p.tokens * p.choices) {
    const int32_t t = at / p.choices, j = at % p.choices;
    int64_t id = p.local + j - p.given, most = p.local + p.choices - p.given;
    float weight = 1.0f;
    if (j < p.given) {
      int64_t named = moe_integer(p.from, t, j);
      if (p.from_weights.p) {
        weight = moe_number(p.from_weights, t, j, 1.0f);
      } else {
        bf16_t w;
        w.bits = static_cast<uint16_t>(named & 0xffff);
        weight = to_f32(w), named >>= 16;
      }
      moe_put_id(p.replay, t, j, static_cast<int32_t>(named));
      id = named - p.offset, most = p.local;
    }
    p.ids[at] = id >= 0 && id < most ? static_cast<int32_t>(id) : -1;
    p.weights[at] = weight;
    moe_put(p.weights_out, t, j, weight);
  }
  depend_launch();
}

/// Block e: expert e; the last block the entries of none.
template <MoeCudaConfig C>
FI_GLOBAL_FN void moe_permute(const MoePermuteParams& p) {
  constexpr uint32_t kWarps = C.threads / 32;
  auto* const words = reinterpret_cast<int32_t*>(shared());
  depend_wait();
  const auto e = static_cast<int32_t>(block_x());
  const auto thread = static_cast<int32_t>(thread_x());
  if (e == p.experts) {
    for (int32_t i = thread; i < p.entries; i += C.threads)
      if (p.ids[i] < 0) p.row_of[i] = -1, moe_put_id(p.row_out, i, 0, -1);
  } else {
    int32_t before = 0, own = 0;
    for (int32_t i = thread; i < p.entries; i += C.threads) {
      const int32_t id = p.ids[i];
      before += id >= 0 && id < e, own += id == e;
    }
    const int32_t first = block_reduce<C.threads>(before, Sum{}, words),
                  count = block_reduce<C.threads>(own, Sum{}, words);
    if (thread == 0) {
      p.offsets[e] = first;
      if (e + 1 == p.experts) p.offsets[p.experts] = first + count;
    }
    int32_t next = first;
    for (int32_t start = 0; start < p.entries && next < first + count; start += C.threads) {
      const int32_t i = start + thread;
      const bool mine = i < p.entries && p.ids[i] == e;
      const uint32_t all = ballot(mine);
      int32_t place = 0, of_warp = 0;
#pragma unroll
      for (uint32_t b = 0; b < 32; ++b) {
        const int32_t one = static_cast<int32_t>(all >> b & 1u);
        of_warp += one, place += b < lane() ? one : 0;
      }
      if (lane() == 0) words[warp()] = of_warp;
      sync_threads();
      int32_t of_block = 0;
#pragma unroll
      for (uint32_t w = 0; w < kWarps; ++w) {
        place += w < warp() ? words[w] : 0;
        of_block += words[w];
      }
      sync_threads();
      if (mine) {
        const int32_t row = next + place;
        p.row_of[i] = row, p.entry_of[row] = i, p.expert_of[row] = e, p.token_of[row] = i / p.choices;
        moe_put_id(p.row_out, i, 0, row);
      }
      next += of_block;
    }
  }
  depend_launch();
}

}  // namespace flashinfer::cu
