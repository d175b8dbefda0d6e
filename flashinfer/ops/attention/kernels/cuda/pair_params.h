// SPDX-License-Identifier: Apache-2.0
// Parameters of tiles of few and of many rows in one persistent launch (pair.cuh). Freestanding.
#pragma once
#include "flashinfer/ops/attention/kernels/cuda/params.h"

namespace flashinfer {

/// How the blocks of a persistent launch take the items of two lists, of few and of many rows. An item is a tile for
/// one KV head and one part of V's columns; those of a tile follow each other, in the order of the list.
struct AttentionTurns {
  // [3]: items of few and of many rows that were taken behind `first`, and blocks that have ended; 0 before a launch,
  // and behind it.
  uint32_t* counters;
  uint64_t share;               // 2^32 times the items of few rows over all items, rounded up
  uint32_t heads;               // KV heads
  uint32_t items[2], first[2];  // of few, of many rows: all of them; those that blocks begin with, one each
};
struct AttentionPairParams {
  AttentionCudaParams few, many;
  AttentionTurns turns;
};
/// The Config of the tiles of few rows beside those of `many`, which is the kernel's.
constexpr AttentionCudaConfig few_beside(AttentionCudaConfig many) {
  many.warps_k = 4, many.wide = 0, many.held = 0;
  return many;
}
/// Bytes of shared memory in front of the words of the turns (pair.cuh), and with them.
constexpr int turns_at(const AttentionCudaConfig& many) {
  const int few = few_beside(many).shared_bytes(), own = many.shared_bytes();
  return round_up(few > own ? few : own, 16);
}
constexpr int pair_shared_bytes(const AttentionCudaConfig& many) { return turns_at(many) + 48; }

}  // namespace flashinfer
