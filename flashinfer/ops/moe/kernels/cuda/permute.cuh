// SPDX-License-Identifier: Apache-2.0
// Which rows of which experts a batch needs: entries of this rank, and a counting sort by expert in which each block
// places the entries of one expert. It has no atomic operation, so rows have the same order in every run.
#pragma once
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "flashinfer/ops/moe/kernels/cuda/numbers.cuh"

namespace flashinfer::cu {

/// put(i, k) for the k-th of the `count` entries i in [0, n) that mine(i) names, in their order. All threads of the
/// block take part; `words`: C.threads / 32 of shared memory, free again afterwards.
template <int kThreads, class Mine, class Put>
FI_GLOBAL_FN void place_in_order(int32_t n, int32_t count, int32_t* words, Mine mine, Put put) {
  constexpr uint32_t kWarps = kThreads / 32;
  int32_t next = 0;
  for (int32_t start = 0; start < n && next < count; start += kThreads) {
    const int32_t i = start + static_cast<int32_t>(thread_x());
    const bool named = i < n && mine(i);
    const uint32_t all = ballot(named);
    int32_t place = next + count_bits(all & ((1u << lane()) - 1));
    if (lane() == 0) words[warp()] = count_bits(all);
    sync_threads();
#pragma unroll
    for (uint32_t w = 0; w < kWarps; ++w) {
      place += w < warp() ? words[w] : 0;
      next += words[w];
    }
    sync_threads();
    if (named) put(i, place);
  }
}

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
    place_in_order<C.threads>(
        p.entries, count, words, [&](int32_t i) { return p.ids[i] == e; },
        [&](int32_t i, int32_t k) {
          const int32_t row = first + k;
          p.row_of[i] = row, p.entry_of[row] = i, p.expert_of[row] = e, p.token_of[row] = i / p.choices;
          moe_put_id(p.row_out, i, 0, row);
        });
  }
  depend_launch();
}

}  // namespace flashinfer::cu
