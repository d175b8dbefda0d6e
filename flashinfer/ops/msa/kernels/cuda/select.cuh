// SPDX-License-Identifier: Apache-2.0
// The topk blocks of each row with the largest scores, in ascending order: a warp a row. Scores of adjoining rows
// adjoin, so that the warps of a block of threads share their sectors through L1. The least key that is chosen is found
// bit by bit.
#pragma once
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/page_table.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "flashinfer/ops/msa/kernels/cuda_params.h"

namespace flashinfer::cu {
namespace msa {
/// Larger scores have larger keys, NaN the largest; zeros of both signs have one.
FI_GLOBAL_FN uint32_t score_key(float x) {
  if (x != x) return 0xffffffffu;
  const uint32_t bits = x == 0.0f ? 0u : __builtin_bit_cast(uint32_t, x);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
}  // namespace msa

template <MsaSelectConfig C>
FI_GLOBAL_FN void msa_select(const MsaSelectParams& p) {
  depend_wait();
  const int64_t r = static_cast<int64_t>(block_x()) * (C.threads / 32) + warp(), h = block_y();
  if (r >= p.n) return;  // whole warps
  int64_t valid = p.valid.data ? strided_index(p.valid, r) : p.all_valid;
  valid = valid < 0 ? 0 : valid < p.blocks ? valid : p.blocks;
  const int64_t begin = p.begin < valid ? p.begin : valid, last = valid - p.end, end = last > begin ? last : begin;
  const int64_t most = p.topk < valid ? p.topk : valid, wanted = most - begin - (valid - end);
  const int64_t free = wanted < end - begin ? wanted : end - begin;  // blocks in [begin, end) that are chosen
  const float* const score = p.score + h * p.score_head + r * p.score_row;
  const auto key_at = [&](int64_t t) { return msa::score_key(score[t * p.score_tile]); };
  // Keys not below `least`: at least `free`.
  uint32_t least = 0;
  if (free < end - begin)
    for (uint32_t bit = 0x80000000u; bit > 0; bit /= 2) {
      int32_t n = 0;
      for (int64_t t = begin + lane(); t < end; t += 32) n += key_at(t) >= (least | bit);
      if (warp_reduce(n, Sum{}) >= free) least |= bit;
    }
  int32_t above = 0;
  for (int64_t t = begin + lane(); t < end; t += 32) above += key_at(t) > least;
  int64_t ties = free - warp_reduce(above, Sum{}), at = 0;  // of the blocks with the least key, the first ones
  int32_t* const out = p.out + r * p.out_row + h * p.out_head;
  for (int64_t first = 0; first < valid; first += 32) {
    const int64_t t = first + lane();
    const bool forced = t < begin || (t >= end && t < valid);
    const uint32_t key = t >= begin && t < end ? key_at(t) : 0;
    const bool competes = t >= begin && t < end;
    const uint32_t equal = ballot(competes && key == least), below = (1u << lane()) - 1;
    const bool chosen =
        forced || (competes && free > 0 && (key > least || (key == least && count_bits(equal & below) < ties)));
    const uint32_t all = ballot(chosen);
    const int64_t place = at + count_bits(all & below);
    if (chosen && place < p.topk) out[place] = static_cast<int32_t>(t);
    ties -= count_bits(equal), ties = ties < 0 ? 0 : ties;
    at += count_bits(all);
  }
  for (int64_t i = at + lane(); i < p.topk; i += 32) out[i] = -1;
  depend_launch();
}

}  // namespace flashinfer::cu
