// SPDX-License-Identifier: Apache-2.0
// More planted bugs (families.cc): flags that are right only in one order of the threads, waits that depend on other
// blocks, and wrappers that are given what they do not take.
#include "flashinfer/kernels/cuda/async.h"
#include "flashinfer/kernels/cuda/atomic.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/memory.h"
#include "flashinfer/kernels/cuda/mma.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "kernels.h"

namespace flashinfer::cu {

// ---- flags ----

/// Loads the flag, but does not wait for it.
template <bool kBug>
FI_GLOBAL_FN void flag_not_tested(const P& p) {
  uint32_t* const flag = flags();
  if (thread_x() == 0) {
    tile()[0] = p.in[0];
    store_release(flag, 1u);
  } else if (thread_x() == 32) {
    do {
    } while (load_acquire(flag) == 0 && !kBug);
    p.out[0] = tile()[0];
  }
}
template <bool kBug>
FI_GLOBAL_FN void flag_of_block_not_tested(const P& p) {
  if (thread_x() != 0) return;
  if (block_x() == 0) {
    p.out[0] = 1.0f;
    store_release(p.counter, 1u);
  } else if (load_acquire(p.counter) != 0 || kBug) {
    p.out[block_x()] = p.out[0];
  }
}
/// The flag that it waits for is not the one that is released.
template <bool kBug>
FI_GLOBAL_FN void other_flag(const P& p) {
  uint32_t* const flag = flags();
  if (thread_x() == 0) {
    tile()[0] = p.in[0];
    store_release(flag + (kBug ? 1 : 0), 1u);
    if (kBug) store_relaxed(flag, 1u);
  } else if (thread_x() == 32) {
    while (load_acquire(flag) == 0) {
    }
    p.out[0] = tile()[0];
  }
}
/// Handed on by a second thread, which releases nothing.
template <bool kBug>
FI_GLOBAL_FN void handed_on(const P& p) {
  uint32_t* const flag = flags();
  if (thread_x() == 0) {
    tile()[0] = p.in[0];
    store_release(flag, 1u);
  } else if (thread_x() == 32) {
    while (load_acquire(flag) == 0) {
    }
    kBug ? store_relaxed(flag + 1, 1u) : store_release(flag + 1, 1u);
  } else if (thread_x() == 64) {
    while (load_acquire(flag + 1) == 0) {
    }
    p.out[0] = tile()[0];
  }
}
/// Each sets its flag and then looks at the other's: without a fence between, neither need see the other.
template <bool kBug>
FI_GLOBAL_FN void both_enter(const P& p) {
  uint32_t* const flag = flags();
  if (thread_x() % 32 != 0 || warp() > 1) return;
  store_release(flag + warp(), 1u);
  const bool enter = load_acquire(flag + (warp() ^ 1)) == 0;
  if (kBug ? enter : warp() == 0) p.out[0] = static_cast<float>(warp());
}
/// A compare-and-swap that fails stores nothing, and so releases nothing.
template <bool kBug>
FI_GLOBAL_FN void failed_swap(const P& p) {
  uint32_t* const flag = flags();
  if (thread_x() == 0) {
    store_release(flag, 1u);
    tile()[0] = p.in[0];
    atomic_cas(flag, kBug ? 7u : 1u, 2u);
  } else if (thread_x() == 32) {
    for (int i = 0; kBug ? i < 100 : load_acquire(flag) != 2; ++i) load_acquire(flag);
    p.out[0] = tile()[0];
  }
}
/// Atomics of 4 and 8 bytes on the same memory are none to each other.
template <bool kBug>
FI_GLOBAL_FN void mixed_sizes(const P& p) {
  if (thread_x() == 0) p.out[0] = p.out[1] = 0.0f;
  sync_threads();
  uint32_t* const at = reinterpret_cast<uint32_t*>(p.out);
  if (thread_x() == 32) atomic_add(at + 1, 1u);
  if (thread_x() == 64)
    kBug ? static_cast<void>(load_acquire(reinterpret_cast<uint64_t*>(at))) : static_cast<void>(load_acquire(at + 1));
}
/// An atomic on a block's own memory orders nothing between blocks.
template <bool kBug>
FI_GLOBAL_FN void own_counter(const P& p) {
  flags();
  if (thread_x() != 0) return;
  if (block_x() == 0) p.out[0] = 1.0f;
  atomic_add(words() + 64, 1u);
  if (block_x() == 1) p.out[1] = kBug ? p.out[0] : 1.0f;
}

// ---- waits ----

/// For the block before, which need not run at the same time: it does in the order of blocks.
template <bool kBug>
FI_GLOBAL_FN void block_before(const P& p) {
  if (thread_x() != 0) return;
  uint32_t* const flag = reinterpret_cast<uint32_t*>(const_cast<float*>(p.in));
  if (kBug && block_x() > 0)
    while (load_acquire(flag + block_x() - 1) != 99u) {
    }
  store_release(flag + block_x(), 99u);
}
/// For all blocks; without the bug each takes its number when it begins, and waits for those that have begun before.
template <bool kBug>
FI_GLOBAL_FN void blocks_before(const P& p) {
  if (thread_x() != 0) return;
  uint32_t* const flag = reinterpret_cast<uint32_t*>(const_cast<float*>(p.in));
  const uint32_t number = kBug ? block_x() : atomic_add(p.counter, 1u);
  if (number > 0)
    while (load_acquire(flag + number - 1) != 99u) {
    }
  store_release(flag + number, 99u);
}
template <bool kBug>
FI_GLOBAL_FN void endless_votes(const P& p) {
  uint32_t n = 0;
  while (ballot(kBug || n < 3)) ++n;
  p.out[linear()] = static_cast<float>(n);
}
template <bool kBug>
FI_GLOBAL_FN void endless_barriers(const P& p) {
  int64_t i = 0;
  do sync_threads();
  while (++i != (kBug ? p.n - p.n - 1 : 3));
  p.out[linear()] = static_cast<float>(i);
}

template <bool kBug>
FI_GLOBAL_FN void endless_parameter(const P& p) {
  while (*static_cast<const volatile int64_t*>(&p.n) > (kBug ? 0 : 1 << 20)) {
  }
  p.out[linear()] = 1.0f;
}

// ---- barriers ----

/// Barrier 0 for some warps, while the others come to sync_threads.
template <bool kBug>
FI_GLOBAL_FN void barrier_zero(const P& p) {
  tile()[thread_x()] = p.in[thread_x()];
  if (warp() < 2) barrier_sync(kBug ? 0 : 1, 64);
  sync_threads();
  p.out[thread_x()] = tile()[127 - thread_x()];
}
template <bool kBug>
FI_GLOBAL_FN void barrier_for_none(const P& p) {
  barrier_sync(3, kBug ? 0 : 128);
  p.out[thread_x()] = 1.0f;
}
/// Warps are counted, not lanes.
template <bool kBug>
FI_GLOBAL_FN void half_warps(const P& p) {
  if (!kBug || lane() < 16) barrier_sync(1, kBug ? 64 : 128);
  p.out[thread_x()] = 1.0f;
}
template <bool kBug>
FI_GLOBAL_FN void arrival_left(const P& p) {
  if (warp() == 0) barrier_arrive(2, 64);
  if (!kBug && warp() == 1) barrier_sync(2, 64);
  p.out[thread_x()] = 1.0f;
}
template <bool kBug>
FI_GLOBAL_FN void arrive_without_wait(const P& p) {
  p.out[linear()] = 1.0f;
  cluster_arrive();
  if (!kBug) cluster_wait();
}
template <bool kBug>
FI_GLOBAL_FN void grid_counter_in_use(const P& p) {
  if (kBug && linear() == 0) *p.counter = 7;
  sync_grid(p.counter);
  p.out[linear()] = 1.0f;
}
template <bool kBug>
FI_GLOBAL_FN void two_grid_counters(const P& p) {
  sync_grid(kBug && block_x() == 1 ? reinterpret_cast<uint32_t*>(const_cast<float*>(p.in)) : p.counter);
  p.out[linear()] = 1.0f;
}

// ---- lanes that a user's code left apart ----

/// A product behind a loop that each lane leaves in its own round.
template <bool kBug>
FI_GLOBAL_FN void apart_at_product(const P& p) {
  float x = 0;
  for (uint32_t i = 0; i <= lane(); ++i) x += p.in[i];
  lanes_apart();
  if (!kBug) sync_warp();
  p.out[lane()] = mma<bf16_t>(Frag4{}, Frag2{}, Acc{{x, 0, 0, 0}}).r[0];
}
/// Halves of the warp that are together, each alone.
template <bool kBug>
FI_GLOBAL_FN void apart_in_halves(const P& p) {
  store_shared(shared() + 16 * lane(), Pack<char, 16>{});
  sync_warp();
  lanes_apart();
  sync_warp(!kBug ? kFullMask : lane() < 16 ? 0xffffu : 0xffff0000u);
  p.out[lane()] = static_cast<float>(load_matrix4(shared() + 16 * lane()).r[0]);
}
template <bool kBug>
FI_GLOBAL_FN void apart_at_barrier(const P& p) {
  tile()[thread_x()] = p.in[thread_x()];
  lanes_apart();
  if (!kBug) sync_warp();
  sync_threads();
  p.out[thread_x()] = tile()[thread_x() ^ 32];
}
/// A shuffle waits for the lanes of its mask, and says nothing of where they go on.
template <bool kBug>
FI_GLOBAL_FN void apart_behind_shuffle(const P& p) {
  lanes_apart();
  const float x = shuffle(p.in[lane()], lane() ^ 1);
  if (!kBug) sync_warp();
  p.out[lane()] = mma<bf16_t>(Frag4{}, Frag2{}, Acc{{x, 0, 0, 0}}).r[0];
}

// ---- what wrappers take ----

/// The address of the neighbour's shared memory is computed, not mapped.
template <bool kBug>
FI_GLOBAL_FN void computed_address(const P& p) {
  tile()[thread_x()] = p.in[thread_x()];
  sync_cluster();
  const int64_t apart = (map_shared(shared(), 1) - map_shared(shared(), 0)) * (cluster_rank() == 0 ? 1 : -1);
  char* const at = shared() + 4 * thread_x();
  p.out[linear()] = *reinterpret_cast<float*>(kBug ? at + apart : map_shared(at, cluster_rank() ^ 1));
  sync_cluster();
}
template <bool kBug>
FI_GLOBAL_FN void copy_to_neighbour(const P& p) {
  sync_cluster();
  copy_async<4>(kBug ? map_shared(tile() + thread_x(), cluster_rank() ^ 1) : tile() + thread_x(), p.in + thread_x());
  commit_async();
  wait_async<0>();
  sync_cluster();
}
template <bool kBug>
FI_GLOBAL_FN void matrix_of_neighbour(const P& p) {
  store_shared(shared() + 16 * lane(), Pack<char, 16>{});
  sync_cluster();
  char* const at = shared() + 16 * lane();
  p.out[linear()] = static_cast<float>(load_matrix4(kBug ? map_shared(at, cluster_rank() ^ 1) : at).r[0]);
  sync_cluster();
}
template <bool kBug>
FI_GLOBAL_FN void matrix_of_global(const P& p) {
  store_shared(shared() + 16 * lane(), Pack<char, 16>{});
  sync_warp();
  const void* const at = kBug ? static_cast<const void*>(p.in + 4 * lane()) : shared() + 16 * lane();
  p.out[lane()] = static_cast<float>(load_matrix4(at).r[0]);
}
template <bool kBug>
FI_GLOBAL_FN void more_than_a_copy(const P& p) {
  copy_async<16>(tile() + 4 * thread_x(), p.in + 4 * thread_x(), kBug ? 20 : 16);
  commit_async();
  wait_async<0>();
}
template <bool kBug>
FI_GLOBAL_FN void load_of_shared(const P& p) {
  store_shared(tile() + 4 * thread_x(), Pack<float, 4>{});
  p.out[thread_x()] = kBug ? load<4>(tile() + 4 * thread_x())[0] : load_shared<4>(tile() + 4 * thread_x())[0];
}
template <bool kBug>
FI_GLOBAL_FN void store_to_shared(const P&) {
  if (kBug)
    store(tile() + 4 * thread_x(), Pack<float, 4>{});
  else
    store_shared(tile() + 4 * thread_x(), Pack<float, 4>{});
}
template <bool kBug>
FI_GLOBAL_FN void taken_for_shared(const P& p) {
  in_shared(kBug ? p.out : tile())[thread_x()] = 1.0f;
}
template <bool kBug>
FI_GLOBAL_FN void taken_for_global(const P& p) {
  in_global(kBug ? tile() : p.out)[thread_x()] = 1.0f;
}
/// The mask leaves out the lane that is read.
template <bool kBug>
FI_GLOBAL_FN void lane_out_of_mask(const P& p) {
  if (lane() >= 16) return;
  p.out[lane()] = static_cast<float>(shuffle_bits(lane(), lane() + (kBug ? 16 : 0), 0xffffu));
}
template <bool kBug>
FI_GLOBAL_FN void lane_32(const P& p) {
  p.out[lane()] = shuffle(p.in[lane()], (lane() + 1) % (kBug ? 33 : 32));
}
template <bool kBug>
FI_GLOBAL_FN void through_pointer(const P& p) {
  float x[4] = {1, 2, 3, 4};
  const float* const at = x + thread_x() % 4;
  p.out[thread_x()] = at[kBug ? 1 : 0] + x[thread_x() % 2];
}
template <bool kBug>
FI_GLOBAL_FN void byte_of_words(const P& p) {
  uint32_t x[4] = {1, 2, 3, 4};
  x[thread_x() % 4] = 9;
  p.out[thread_x()] = reinterpret_cast<const uint8_t*>(x)[thread_x() % (kBug ? 17 : 16)];
}
}  // namespace flashinfer::cu

using namespace flashinfer;
#define PAIR(name)                                               \
  FI_CUDA_ENTRY_NAMED(bug_##name, PlantedParams, cu::name<true>) \
  FI_CUDA_ENTRY_NAMED(right_##name, PlantedParams, cu::name<false>)
// clang-format off
PAIR(flag_not_tested) PAIR(flag_of_block_not_tested) PAIR(other_flag) PAIR(handed_on) PAIR(both_enter) PAIR(failed_swap)
PAIR(mixed_sizes) PAIR(own_counter) PAIR(block_before) PAIR(blocks_before) PAIR(endless_votes) PAIR(endless_barriers)
PAIR(endless_parameter) PAIR(barrier_zero) PAIR(barrier_for_none) PAIR(half_warps) PAIR(arrival_left) PAIR(arrive_without_wait)
PAIR(apart_at_product) PAIR(apart_in_halves) PAIR(apart_at_barrier) PAIR(apart_behind_shuffle)
PAIR(grid_counter_in_use) PAIR(two_grid_counters) PAIR(computed_address) PAIR(copy_to_neighbour)
PAIR(matrix_of_neighbour) PAIR(matrix_of_global) PAIR(more_than_a_copy) PAIR(load_of_shared) PAIR(store_to_shared)
PAIR(taken_for_shared) PAIR(taken_for_global) PAIR(lane_out_of_mask) PAIR(lane_32) PAIR(through_pointer)
PAIR(byte_of_words)
