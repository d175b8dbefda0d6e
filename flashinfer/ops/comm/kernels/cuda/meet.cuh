// SPDX-License-Identifier: Apache-2.0
// Phases of kernels that wait for other ranks' GPUs. Blocks with the same index on all ranks meet, the others do not.
#pragma once
#include "flashinfer/kernels/cuda/peers.h"
#include "flashinfer/ops/comm/kernels/cuda_params.h"

namespace flashinfer::cu {

/// Tells the other ranks' blocks with this index that phase `epoch` is written, and waits until they have told theirs.
/// memory[r]: that of rank r, which begins with its flags.
template <int kRanks>
FI_GLOBAL_FN void meet_ranks(const void* const* memory, int rank, uint32_t epoch, uint64_t limit) {
  if constexpr (kRanks > 1) {
    sync_threads();
    const uint32_t r = thread_x();
    if (r < kRanks && static_cast<int>(r) != rank) {
      const uint32_t mine = block_x() * kAllReduceRanks + static_cast<uint32_t>(rank),
                     others = block_x() * kAllReduceRanks + r;
      store_release_system(static_cast<uint32_t*>(const_cast<void*>(memory[r])) + mine, epoch);
      wait_for_epoch(static_cast<uint32_t*>(const_cast<void*>(memory[rank])) + others, epoch, limit);
    }
    sync_threads();
  }
}

/// All blocks of the rank have passed phase `epoch`, whether this launch has them or not.
FI_GLOBAL_FN void count_phases(uint32_t* phases, uint32_t epoch, uint32_t threads) {
  sync_threads();
  if (thread_x() == 0) phases[block_x()] = epoch;
  if (block_x() == 0)
    for (uint32_t b = blocks_x() + thread_x(); b < kAllReduceBlocks; b += threads) phases[b] = epoch;
}

}  // namespace flashinfer::cu
