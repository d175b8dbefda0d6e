// SPDX-License-Identifier: Apache-2.0
// Dispatch of an expert all-to-all between GPUs: one launch finds where each token's rows go, the next writes them into
// the memory of the ranks that read them. All ranks launch as many blocks, so that who has passed a launch knows that
// all rows for it are there.
#pragma once
#include "flashinfer/kernels/cuda/memory.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "flashinfer/ops/comm/kernels/cuda/meet.cuh"
#include "flashinfer/ops/comm/kernels/moe_a2a_cuda_params.h"

namespace flashinfer::cu {

/// The places of the tokens with an expert of rank block_x(), in the order of the tokens. Entries of ids that are no
/// expert belong to block 0.
template <MoeA2aCudaConfig C>
FI_GLOBAL_FN void moe_plan(const MoePlanCudaParams& p) {
  constexpr uint32_t kWarps = C.threads / 32;
  const int rank = static_cast<int>(block_x());
  const int32_t first = rank * p.base + (rank < p.more ? rank : p.more),
                last = first + p.base + (rank < p.more ? 1 : 0);
  const bool active = p.active >> rank & 1;
  uint32_t* const counts = reinterpret_cast<uint32_t*>(shared());  // of the warps
  uint32_t before = 0;                                             // tokens of this rank
  for (int64_t begin = 0; begin < p.tokens; begin += C.threads) {
    const int64_t t = begin + thread_x();
    int chosen = -1;
    for (int k = 0; t < p.tokens && k < p.top_k; ++k) {
      const int32_t id = p.ids[t * p.top_k + k];
      const bool own = id >= first && id < last;
      if (own && active && chosen < 0)
        chosen = k;
      else if (own || (rank == 0 && (id < 0 || id >= p.num_experts)))
        p.places[t * p.top_k + k] = kMoeNoPlace;
    }
    const uint32_t with = ballot(chosen >= 0);
    if (lane() == 0) counts[warp()] = static_cast<uint32_t>(count_bits(with));
    sync_threads();
    uint32_t slot = before + static_cast<uint32_t>(count_bits(with & ((1u << lane()) - 1)));
#pragma unroll
    for (uint32_t w = 0; w < kWarps; ++w) {
      if (w < warp()) slot += counts[w];
      before += counts[w];
    }
    if (chosen >= 0) p.places[t * p.top_k + chosen] = static_cast<uint32_t>(rank) << kMoePlaceBits | slot;
    sync_threads();  // the counts were read
  }
  if (thread_x() == 0) p.sent[rank] = static_cast<int32_t>(before);
}

template <class Unit>
FI_GLOBAL_FN void send_row(const MoeSendCudaParams& p, const MoePayload& payload, int64_t token, uint32_t of_team) {
  const int64_t units = payload.bytes / static_cast<int64_t>(sizeof(Unit));
  const Unit* const from = reinterpret_cast<const Unit*>(payload.rows + token * payload.bytes);
  for (int64_t i = of_team; i < units; i += p.team) {
    const Pack<Unit, 1> x = load<1, Hint::kOnce>(from + i);
    for (int k = 0; k < p.top_k; ++k) {
      const uint32_t place = p.places[token * p.top_k + k];
      if (place == kMoeNoPlace) continue;
      char* const memory = static_cast<char*>(const_cast<void*>(p.source[place >> kMoePlaceBits]));
      const int64_t row = p.meet.rank * p.runtime_max + (place & ((1u << kMoePlaceBits) - 1));
      store(reinterpret_cast<Unit*>(memory + kAllReduceFlagBytes + payload.at + row * payload.bytes) + i, x);
    }
  }
}

template <MoeA2aCudaConfig C>
FI_GLOBAL_FN void moe_send(const MoeSendCudaParams& p) {
  Meeting<kMoeA2aRanks> ranks(p.source, p.meet);
  // Always: which call ran before is unknown where this one is replayed, and others may still read what that one sent.
  ranks.meet(1);
  if (ranks.ok()) {
    const uint32_t team = thread_x() / static_cast<uint32_t>(p.team), teams = C.threads / static_cast<uint32_t>(p.team),
                   of_team = thread_x() - team * static_cast<uint32_t>(p.team);
    for (int64_t t = int64_t{block_x()} * teams + team; t < p.tokens; t += int64_t{blocks_x()} * teams)
      for (int i = 0; i < p.payloads; ++i) {
        const MoePayload& payload = p.payload[i];
        const uint64_t bits = reinterpret_cast<uintptr_t>(payload.rows) | static_cast<uint64_t>(payload.bytes);
        if (bits % 16 == 0)
          send_row<Words>(p, payload, t, of_team);
        else if (bits % 4 == 0)
          send_row<uint32_t>(p, payload, t, of_team);
        else
          send_row<unsigned char>(p, payload, t, of_team);
      }
    if (block_x() == 0) {
      const auto of = [&](int r, int64_t at) {
        return reinterpret_cast<int32_t*>(static_cast<char*>(const_cast<void*>(p.source[r])) + kAllReduceFlagBytes +
                                          at);
      };
      for (int r = static_cast<int>(thread_x()); r < p.ranks; r += C.threads) {
        if ((p.active >> r & 1) != 0)
          of(r, p.counts_at)[p.meet.rank] = p.sent[r];
        else
          of(p.meet.rank, p.counts_at)[r] = 0;  // nothing comes from there
      }
      for (int r = 0; p.stats && r < p.ranks; ++r)
        for (int i = static_cast<int>(thread_x()); i < p.stats_n && (p.active >> r & 1) != 0; i += C.threads)
          of(r, p.stats_at)[p.meet.rank * p.stats_n + i] = p.stats[i];
    }
  }
  ranks.meet(2);
  ranks.end(C.threads);
}

/// Rows of ids that hold no token. Blocks (x, rank).
template <MoeA2aCudaConfig C>
FI_GLOBAL_FN void moe_sanitize(const MoeSanitizeCudaParams& p) {
  const int64_t first = p.counts[block_y()] * p.top_k, last = p.rows * p.top_k;
  int32_t* const ids = p.ids + block_y() * last;
  for (int64_t i = first + int64_t{block_x()} * C.threads + thread_x(); i < last; i += int64_t{blocks_x()} * C.threads)
    ids[i] = p.invalid;
}

}  // namespace flashinfer::cu
