// SPDX-License-Identifier: Apache-2.0
// Tiles of few rows and of many in one launch: the former wait for memory, the latter for tensor cores, so that an SM
// with both waits less. Each tile is computed as in a launch of its kind alone, to the bit; registers are those of the
// kind that needs more.
//
// The launch is persistent: as many blocks as the GPU holds at once, each of which computes tiles until none is left.
// Which tile a block begins with follows from its number; each later one is taken from its list's counter, while the
// first copies of the tile before it are under way. Lists are sorted, longest tiles first, so that blocks end at nearly
// the same time. In a captured graph a list has room for more tiles than most plans make: a block that comes to one
// without rows takes no more of that list, so that all others cost nothing.
#pragma once
#include "flashinfer/kernels/cuda/atomic.h"
#include "flashinfer/ops/attention/kernels/cuda/attention.cuh"
#include "flashinfer/ops/attention/kernels/cuda/pair_params.h"

namespace flashinfer::cu {
namespace attn {

/// What a block of a persistent launch computes, in turn. It is in shared memory, at kAt, as registers would be kept
/// through the loop over keys; thread 0 writes it.
template <int kAt, int kParts>
class Turn {
 public:
  enum Kind : uint32_t { kFew, kMany, kNone };
  FI_GLOBAL_FN static uint32_t kind() { return load_shared<1>(&all()->now.kind)[0]; }
  FI_GLOBAL_FN static uint32_t tile() { return load_shared<1>(&all()->now.tile)[0]; }
  FI_GLOBAL_FN static uint32_t head() { return load_shared<1>(&all()->now.head)[0]; }
  FI_GLOBAL_FN static uint32_t part() { return load_shared<1>(&all()->now.part)[0]; }
  FI_GLOBAL_FN static uint32_t heads(const AttentionParams& p) { return static_cast<uint32_t>(p.num_kv_heads); }

  /// The first turn.
  FI_GLOBAL_FN static void begin(const AttentionTurns& t) {
    if (thread_x() == 0) {
      const uint32_t few = few_before(t, block_x());
      all()->round = block_x(), all()->ended = 0;
      if (liked(t, block_x()) == kFew)
        set_next(t, kFew, few);
      else
        set_next(t, kMany, block_x() - few);
    }
    advance();
  }
  /// Once in each turn: takes the next. `empty`: the tile has no rows, so no later one of its list has.
  FI_GLOBAL_FN static void take(const AttentionTurns& t, bool empty) {
    if (thread_x() != 0) return;
    uint32_t ended = all()->ended, kind = kNone, item = 0;
    if (empty) ended |= 1u << all()->now.kind;
    const uint32_t round = all()->round + blocks_x(), first = liked(t, round);
#pragma unroll 1
    for (uint32_t i = 0; i < 2 && kind == kNone; ++i) {
      const uint32_t of = first ^ i;
      if (ended >> of & 1) continue;
      item = t.first[of] + atomic_count(t.counters + of, 1);
      if (item < t.items[of])
        kind = of;
      else
        ended |= 1u << of;
    }
    all()->round = round, all()->ended = ended;
    set_next(t, kind, item);
  }
  /// The next turn becomes the present one.
  FI_GLOBAL_FN static void advance() {
    sync_threads();  // all threads are done with shared memory
    if (thread_x() == 0) all()->now = all()->next;
    sync_threads();
  }
  /// Behind the last turn. The last block of the launch leaves the counters as they were.
  FI_GLOBAL_FN static void end(const AttentionTurns& t) {
    if (thread_x() != 0 || atomic_add(t.counters + 2, 1u) + 1 != blocks_x()) return;
#pragma unroll
    for (uint32_t i = 0; i < 3; ++i) t.counters[i] = 0;
  }

 private:
  struct Place {
    uint32_t kind, tile, head, part;
  };
  struct All {
    Place now, next;
    // The number of its turn among all blocks', if all took turns; a bit for each list of which no more is left.
    uint32_t round, ended;
  };
  FI_GLOBAL_FN static All* all() { return reinterpret_cast<All*>(shared() + kAt); }
  /// Blocks of both kinds take turns, in proportion to their numbers: so many of the first n are of few rows.
  FI_GLOBAL_FN static uint32_t few_before(const AttentionTurns& t, uint64_t n) {
    return static_cast<uint32_t>(n * t.share >> 32);
  }
  FI_GLOBAL_FN static uint32_t liked(const AttentionTurns& t, uint32_t round) {
    return few_before(t, uint64_t{round} + 1) != few_before(t, round) ? kFew : kMany;
  }
  FI_GLOBAL_FN static void set_next(const AttentionTurns& t, uint32_t kind, uint32_t item) {
    const uint32_t columns = t.heads * kParts, tile = item / columns, column = item - tile * columns,
                   part = kParts > 1 && column >= t.heads ? 1 : 0;
    all()->next = {kind, tile, column - part * t.heads, part};
  }
};

}  // namespace attn

/// C: of the tiles of many rows; or of those of few, where the launch has no others.
template <AttentionCudaConfig C>
FI_GLOBAL_FN void attention_pair(const AttentionPairParams& p) {
  using Turn = attn::Turn<turns_at(C), C.parts()>;
  depend_wait();
  const auto ahead = [&](bool empty) { Turn::take(p.turns, empty); };
#pragma unroll 1
  for (Turn::begin(p.turns); Turn::kind() != Turn::kNone; Turn::advance())
    if (C.warps_k > 1 || Turn::kind() == Turn::kFew)
      attn::run_tile<few_beside(C), attn::NoHooks, Turn>(p.few, p.few.a, ahead);
    else if constexpr (C.warps_k == 1)
      attn::run_tile<C, attn::NoHooks, Turn>(p.many, p.many.a, ahead);
  Turn::end(p.turns);
  depend_launch();
}

}  // namespace flashinfer::cu
