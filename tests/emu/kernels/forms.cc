// SPDX-License-Identifier: Apache-2.0
// More planted bugs of the families of families.cc, in other forms.
#include "flashinfer/kernels/cuda/async.h"
#include "flashinfer/kernels/cuda/atomic.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/memory.h"
#include "flashinfer/kernels/cuda/mma.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "kernels.h"

namespace flashinfer::cu {

// ---- flags ----

template <bool kBug>
FI_GLOBAL_FN void counted_relaxed(const P& p) {
  uint32_t* const flag = flags();
  if (thread_x() == 0) {
    tile()[0] = p.in[0];
    if (!kBug) fence_block();
    atomic_count(flag, 1);
  } else if (thread_x() == 32) {
    wait_for(flag, 1);
    p.out[0] = tile()[0];
  }
}
/// A relaxed atomic that reads and writes continues what was released before; a relaxed store does not.
template <bool kBug>
FI_GLOBAL_FN void release_cut_off(const P& p) {
  uint32_t* const flag = flags();
  if (thread_x() == 0) {
    tile()[0] = p.in[0];
    store_release(flag, 1u);
  } else if (thread_x() == 64) {
    while (load_relaxed(flag) == 0) {
    }
    kBug ? store_relaxed(flag, 2u) : static_cast<void>(atomic_count(flag, 1));
  } else if (thread_x() == 32) {
    wait_for(flag, 2);
    p.out[0] = tile()[0];
  }
}
/// The fence comes after the flag.
template <bool kBug>
FI_GLOBAL_FN void late_fence(const P& p) {
  last_sums(p, [&] {
    if (!kBug) fence();
    atomic_count(p.counter, 1);
    if (kBug) fence();
  });
}
/// The fence comes before the flag is loaded.
template <bool kBug>
FI_GLOBAL_FN void early_fence(const P& p) {
  uint32_t* const flag = flags();
  if (thread_x() == 0) {
    tile()[0] = p.in[0];
    store_release(flag, 1u);
  } else if (thread_x() == 32) {
    if (kBug) fence_block();
    while (load_relaxed(flag) == 0) {
    }
    if (!kBug) fence_block();
    p.out[0] = tile()[0];
  }
}
/// Two threads write; the third waits for one. `look` gives the number of those that have written.
template <bool kBug, class Look>
FI_GLOBAL_FN void wait_for_one_of_two(const P& p, Look look) {
  uint32_t* const flag = flags();
  if (lane() != 0) return;
  if (warp() < 2) {
    tile()[warp()] = p.in[warp()];
    atomic_add(flag, 1u);
  } else {
    while (look(flag) < (kBug ? 1 : 2)) {
    }
    p.out[0] = tile()[0] + tile()[1];
  }
}
template <bool kBug>
FI_GLOBAL_FN void one_of_two(const P& p) {
  wait_for_one_of_two<kBug>(p, [](uint32_t* flag) { return load_acquire(flag); });
}
/// With atomics that change nothing in place of loads.
template <bool kBug>
FI_GLOBAL_FN void one_of_two_added(const P& p) {
  wait_for_one_of_two<kBug>(p, [](uint32_t* flag) { return atomic_add(flag, 0u); });
}
template <bool kBug>
FI_GLOBAL_FN void one_of_two_swapped(const P& p) {
  wait_for_one_of_two<kBug>(p, [](uint32_t* flag) { return atomic_cas(flag, 77u, 77u); });
}
/// Who comes second reads what the first has written; the number is not looked at.
template <bool kBug>
FI_GLOBAL_FN void number_not_tested(const P& p) {
  uint32_t* const flag = flags();
  if (thread_x() == 0) {
    tile()[0] = p.in[0];
    atomic_add(flag, 1u);
  } else if (thread_x() == 32) {
    const uint32_t before = atomic_add(flag, 1u);
    if (kBug || before == 1) p.out[0] = tile()[0];
  }
}
/// The other way round: the later thread writes.
template <bool kBug>
FI_GLOBAL_FN void number_of_writer(const P& p) {
  uint32_t* const flag = flags();
  if (thread_x() == 32) {
    tile()[0] = p.in[0];
    atomic_add(flag, 1u);
  } else if (thread_x() == 0) {
    if (kBug) tile()[0] = 3.0f;
    const uint32_t before = atomic_add(flag, 1u);
    if (!kBug && before == 1) p.out[0] = tile()[0];
  }
}
template <bool kBug>
FI_GLOBAL_FN void number_read(const P& p, uint32_t writer) {
  if (thread_x() != 0) return;
  if (block_x() == writer) input(p)[0] = 1.0f;
  const uint32_t before = atomic_add(p.counter, 1u);
  if (block_x() != writer && (kBug || before == 1)) p.out[0] = p.in[0];
}
template <bool kBug>
FI_GLOBAL_FN void number_of_block(const P& p) {
  number_read<kBug>(p, 0);
}
template <bool kBug>
FI_GLOBAL_FN void number_of_block_before(const P& p) {
  number_read<kBug>(p, 1);
}
/// The last but one reads too.
template <bool kBug>
FI_GLOBAL_FN void last_two_sum(const P& p) {
  if (thread_x() != 0) return;
  input(p)[block_x()] = 1.0f;
  const uint32_t before = atomic_add(p.counter, 1u);
  if (before + (kBug ? 2 : 1) < blocks_x()) return;
  float sum = 0.0f;
  for (uint32_t b = 0; b < blocks_x(); ++b) sum += p.in[b];
  p.out[before] = sum;
}
/// A lock that one of two threads does not take.
template <bool kBug>
FI_GLOBAL_FN void half_locked(const P& p) {
  uint32_t* const lock = flags();
  if (lane() != 0) return;
  const bool takes = !kBug || warp() == 0;
  if (takes)
    while (atomic_cas(lock, 0u, 1u) != 0) {
    }
  input(p)[0] += 1.0f;
  if (takes) store_release(lock, 0u);
}
/// Two locks, each thread with its own.
template <bool kBug>
FI_GLOBAL_FN void own_lock(const P& p) {
  uint32_t* const lock = flags() + (kBug ? warp() : 0);
  if (lane() != 0) return;
  while (atomic_cas(lock, 0u, 1u) != 0) {
  }
  input(p)[0] += 1.0f;
  atomic_cas(lock, 1u, 0u);
}
/// Released by a relaxed store.
template <bool kBug>
FI_GLOBAL_FN void lock_relaxed(const P& p) {
  uint32_t* const lock = flags();
  if (lane() != 0) return;
  while (atomic_cas(lock, 0u, 1u) != 0) {
  }
  tile()[0] = p.in[warp()];
  kBug ? store_relaxed(lock, 0u) : store_release(lock, 0u);
}

// ---- never ends ----

/// Each waits for the other first.
template <bool kBug>
FI_GLOBAL_FN void both_wait(const P& p) {
  uint32_t* const flag = flags();
  if (lane() != 0) return;
  if (!kBug || warp() == 2) store_release(flag + warp(), 1u);
  wait_for(flag + (warp() ^ 1), 1);
  if (kBug) store_release(flag + warp(), 1u);
  p.out[warp()] = 1.0f;
}
/// Counts its tries.
template <bool kBug>
FI_GLOBAL_FN void counted_tries(const P& p) {
  uint32_t* const flag = flags();
  if (thread_x() == 32 && !kBug) store_release(flag, 1u);
  if (thread_x() != 0) return;
  while (load_acquire(flag) == 0) atomic_count(flag + 1, 1);
  p.out[0] = 1.0f;
}
/// Looks through all of the input again and again for what is not there.
template <bool kBug>
FI_GLOBAL_FN void endless_search(const P& p) {
  if (thread_x() != 0) return;
  const volatile float* const in = p.in;
  int64_t i = 0;
  while (in[i] != (kBug ? 99.0f : 3.0f)) i = (i + 1) % p.n;
  p.out[0] = static_cast<float>(i);
}
/// Two locks in two orders.
template <bool kBug>
FI_GLOBAL_FN void crossed_locks(const P& p) {
  uint32_t* const lock = flags();
  if (lane() != 0) return;
  const uint32_t first = kBug ? warp() : 0;
  const auto take = [](uint32_t* l) {
    while (atomic_cas(l, 0u, 1u) != 0) {
    }
  };
  take(lock + first);
  if (kBug) {  // both have their first
    atomic_add(p.counter, 1u);
    while (load_acquire(p.counter) < 2) {
    }
  }
  take(lock + (first ^ 1));
  p.out[warp()] = 1.0f;
  atomic_cas(lock + (first ^ 1), 1u, 0u);
  atomic_cas(lock + first, 1u, 0u);
}
template <bool kBug>
FI_GLOBAL_FN void block_skips_grid(const P& p) {
  if (!kBug || block_x() == 0) sync_grid(p.counter);
  p.out[linear()] = 1.0f;
}

// ---- clusters ----

/// Written between arrive and wait: the arrival does not hold it.
template <bool kBug>
FI_GLOBAL_FN void written_after_arrive(const P& p) {
  if (!kBug) tile()[thread_x()] = p.in[thread_x()];
  cluster_arrive();
  if (kBug) tile()[thread_x()] = p.in[thread_x()];
  cluster_wait();
  p.out[linear()] = load_peer(tile() + thread_x(), cluster_rank() ^ 1);
  sync_cluster();
}
/// Read between arrive and wait.
template <bool kBug>
FI_GLOBAL_FN void read_before_wait(const P& p) {
  tile()[thread_x()] = p.in[thread_x()];
  sync_cluster();
  if (!kBug) p.out[linear()] = load_peer(tile() + thread_x(), cluster_rank() ^ 1);
  cluster_arrive();
  if (kBug) p.out[linear()] = load_peer(tile() + thread_x(), cluster_rank() ^ 1);
  cluster_wait();
}
template <bool kBug>
FI_GLOBAL_FN void block_barrier_for_cluster(const P& p) {
  tile()[thread_x()] = p.in[thread_x()];
  sync_cluster();
  store_peer(tile() + 128 + thread_x(), cluster_rank() ^ 1, tile()[thread_x()]);
  kBug ? sync_threads() : sync_cluster();
  p.out[linear()] = tile()[128 + thread_x()];
  sync_cluster();
}
/// The next round's store does not wait for the neighbour's read.
template <bool kBug>
FI_GLOBAL_FN void peer_refilled(const P& p) {
  for (int round = 0; round < 2; ++round) {
    if (!kBug || round == 0) sync_cluster();
    store_peer(tile() + thread_x(), cluster_rank() ^ 1, p.in[thread_x()]);
    sync_cluster();
    p.out[linear()] = tile()[thread_x()];
  }
  sync_cluster();
}
/// The block that is written to has returned, or may have.
template <bool kBug>
FI_GLOBAL_FN void written_to_returned(const P& p) {
  sync_cluster();
  if (cluster_rank() == 1) store_peer(tile() + thread_x(), 0, p.in[thread_x()]);
  if (!kBug) sync_cluster();
}
template <bool kBug>
FI_GLOBAL_FN void rank_too_large(const P& p) {
  tile()[thread_x()] = p.in[thread_x()];
  sync_cluster();
  p.out[linear()] = load_peer(tile() + thread_x(), (cluster_rank() + 1) % (cluster_blocks() + (kBug ? 1 : 0)));
  sync_cluster();
}
/// One warp comes to the wait without its arrival.
template <bool kBug>
FI_GLOBAL_FN void warp_without_arrival(const P& p) {
  if (!kBug || warp() != 1) cluster_arrive();
  cluster_wait();
  p.out[linear()] = 1.0f;
}

// ---- programmatic dependent launch ----

template <bool kBug>
FI_GLOBAL_FN void copy_before_wait(const P& p) {
  if (!kBug) depend_wait();
  copy_async<4>(tile() + thread_x(), p.in + thread_x());
  commit_async();
  depend_wait();
  wait_async<0>();
  p.out[thread_x()] = tile()[thread_x()];
}
template <bool kBug>
FI_GLOBAL_FN void atomic_before_wait(const P& p) {
  if (!kBug) depend_wait();
  if (thread_x() == 0) atomic_count(p.counter, 1);
  if (kBug) depend_wait();
}
/// A shuffle from the lane that has waited orders no memory.
template <bool kBug>
FI_GLOBAL_FN void wait_by_shuffle(const P& p) {
  if (lane() == 0) depend_wait();
  const uint32_t n = shuffle_bits(lane() == 0 ? 7u : 0u, 0);
  if (!kBug) sync_warp();
  p.out[linear()] = static_cast<float>(n);
}
template <bool kBug>
FI_GLOBAL_FN void warp_not_told(const P& p) {
  if (warp() == 0) depend_wait();
  if (kBug ? warp() < 2 : true) barrier_sync(1, kBug ? 64 : 96);
  p.out[linear()] = 1.0f;
}
/// Only the blocks with work wait, and there are none.
template <bool kBug>
FI_GLOBAL_FN void no_work_no_wait(const P& p) {
  if (!kBug) depend_wait();
  for (int64_t i = linear(); i < p.n - 1000; i += 64) {
    depend_wait();
    p.out[i] = 1.0f;
  }
}

// ---- cp.async ----

template <bool kBug>
FI_GLOBAL_FN void source_added_to(const P& p) {
  copy_async<4>(tile() + thread_x(), p.in + thread_x());
  commit_async();
  if (!kBug) wait_async<0>();
  atomic_add(input(p) + thread_x(), 1.0f);
  wait_async<0>();
}
/// The last four bytes of a copy of 16.
template <bool kBug>
FI_GLOBAL_FN void end_of_source(const P& p) {
  copy_async<16>(tile() + 4 * thread_x(), p.in + 4 * thread_x());
  commit_async();
  if (!kBug) wait_async<0>();
  sync_threads();
  if (thread_x() < 32) input(p)[4 * (thread_x() ^ 1) + 3] = 0.0f;
  wait_async<0>();
}
/// The next stage is copied to where the one before still flies.
template <bool kBug>
FI_GLOBAL_FN void target_copied_twice(const P& p) {
  copy_async<4>(tile() + thread_x(), p.in + thread_x());
  commit_async();
  if (!kBug) wait_async<0>();
  copy_async<4>(tile() + thread_x(), p.in + 128 + thread_x());
  commit_async();
  wait_async<0>();
  p.out[thread_x()] = tile()[thread_x()];
}
/// The last group was not closed.
template <bool kBug>
FI_GLOBAL_FN void group_not_closed(const P& p) {
  copy_async<4>(tile() + thread_x(), p.in + thread_x());
  if (!kBug) commit_async();
  wait_async<0>();
  p.out[thread_x()] = tile()[thread_x()];
}
/// A copy of no bytes fills its target with zeros, later.
template <bool kBug>
FI_GLOBAL_FN void zeros_in_flight(const P& p) {
  copy_async<4>(tile() + thread_x(), p.in, 0);
  commit_async();
  if (!kBug) wait_async<0>();
  p.out[thread_x()] = tile()[thread_x()];
  wait_async<0>();
}
/// The stage that is read is the one in flight.
template <bool kBug>
FI_GLOBAL_FN void wrong_stage(const P& p) {
  for (uint32_t stage = 0; stage < 2; ++stage) {
    copy_async<4>(tile() + 64 * stage + thread_x(), p.in + 64 * stage + thread_x());
    commit_async();
  }
  wait_async<1>();
  sync_threads();
  p.out[thread_x()] = tile()[64 * (kBug ? 1 : 0) + (thread_x() ^ 1)];
  wait_async<0>();
}
/// The tile is refilled while the other threads still read it.
template <bool kBug>
FI_GLOBAL_FN void refilled_too_early(const P& p) {
  for (uint32_t round = 0; round < 2; ++round) {
    copy_async<4>(tile() + thread_x(), p.in + 64 * round + thread_x());
    commit_async();
    wait_async<0>();
    sync_threads();
    p.out[64 * round + thread_x()] = tile()[63 - thread_x()];
    if (!kBug) sync_threads();
  }
}

// ---- memory that nothing wrote ----

/// A block that has no work leaves its sum out.
template <bool kBug>
FI_GLOBAL_FN void idle_block(const P& p) {
  if (thread_x() != 0) return;
  if (!kBug || block_x() != 1) p.out[block_x()] = 1.0f;
  if (atomic_add(p.counter, 1u) + 1 != blocks_x()) return;
  float sum = 0.0f;
  for (uint32_t b = 0; b < blocks_x(); ++b) sum += p.out[b];
  p.out[blocks_x()] = sum;
}
template <bool kBug>
FI_GLOBAL_FN void flag_not_set_up(const P& p) {
  uint32_t* const flag = reinterpret_cast<uint32_t*>(p.out);
  if (thread_x() == 0 && !kBug) store_relaxed(flag, 0u);
  sync_threads();
  if (thread_x() == 0) p.out[1] = static_cast<float>(load_acquire(flag));
}
/// Halves of a word, of which one was stored.
template <bool kBug>
FI_GLOBAL_FN void half_a_word(const P& p) {
  uint16_t* const at = reinterpret_cast<uint16_t*>(p.out) + 2 * thread_x();
  at[0] = 1;
  if (!kBug) at[1] = 1;
  p.out[128 + thread_x()] = static_cast<float>(at[1]);
}
/// Rows of padding that a tile does not fill.
template <bool kBug>
FI_GLOBAL_FN void row_not_filled(const P& p) {
  char* const row = shared() + 16 * lane();
  if (!kBug || lane() < 30) store_shared(row, Pack<char, 16>{});
  sync_warp();
  p.out[lane()] = static_cast<float>(load_matrix4(row).r[0]);
}
template <bool kBug>
FI_GLOBAL_FN void peer_not_filled(const P& p) {
  if (!kBug || cluster_rank() == 0) tile()[thread_x()] = p.in[thread_x()];
  sync_cluster();
  p.out[linear()] = load_peer(tile() + thread_x(), cluster_rank() ^ 1);
  sync_cluster();
}

// ---- barriers ----

/// Each pair of warps changes the barrier with the round, to that of the other pair.
template <bool kBug>
FI_GLOBAL_FN void barriers_by_turns(const P& p) {
  const uint32_t i = thread_x(), group = warp() / 2;
  for (uint32_t round = 0; round < 2; ++round) {
    tile()[128 * round + i] = p.in[i];
    barrier_sync(1 + (kBug ? (group + round) % 2 : group), 64);
    p.out[i] = tile()[128 * round + (i ^ 32)];
  }
}
/// One barrier for two pairs of warps that have one warp in common.
template <bool kBug>
FI_GLOBAL_FN void pairs_overlap(const P& p) {
  const uint32_t i = thread_x();
  tile()[i] = p.in[i];
  if (warp() < 2) barrier_sync(1, 64);
  if (warp() > 0) barrier_sync(kBug ? 1 : 2, 64);
  p.out[i] = tile()[warp() == 0 ? i : i ^ (warp() == 2 ? 96 : 0)];
}
/// The arrival that hands the tile back comes before the read.
template <bool kBug>
FI_GLOBAL_FN void handed_back_early(const P& p) {
  for (int round = 0; round < 2; ++round) {
    if (warp() == 0) {
      if (round > 0) barrier_sync(2, 64);
      tile()[lane()] = p.in[lane()];
      barrier_arrive(1, 64);
    } else {
      barrier_sync(1, 64);
      if (kBug && round == 0) barrier_arrive(2, 64);
      p.out[lane()] = tile()[31 - lane()];
      if (!kBug && round == 0) barrier_arrive(2, 64);
    }
  }
}
/// The mask leaves out a lane that reads.
template <bool kBug>
FI_GLOBAL_FN void lane_left_out(const P& p) {
  tile()[lane()] = p.in[lane()];
  if (!kBug || lane() < 31) sync_warp(kBug ? 0x7fffffffu : kFullMask);
  p.out[lane()] = tile()[31 - lane()];
}
/// Two halves, each together.
template <bool kBug>
FI_GLOBAL_FN void halves_apart(const P& p) {
  tile()[lane()] = p.in[lane()];
  sync_warp(!kBug ? kFullMask : lane() < 16 ? 0xffffu : 0xffff0000u);
  p.out[lane()] = tile()[(lane() + 16) % 32];
}
/// A vote as a barrier.
template <bool kBug>
FI_GLOBAL_FN void vote_for_barrier(const P& p) {
  tile()[lane()] = p.in[lane()];
  const uint32_t all = ballot(true);
  if (!kBug) sync_warp();
  p.out[lane()] = tile()[31 - lane()] + static_cast<float>(all);
}
/// One thread too few takes part in the last round.
template <bool kBug>
FI_GLOBAL_FN void barrier_in_loop(const P& p) {
  for (uint32_t i = thread_x(); i < (kBug ? 190 : 192); i += threads_x()) {
    tile()[thread_x()] = p.in[i];
    sync_threads();
    p.out[i] = tile()[63 - thread_x()];
    sync_threads();
  }
}

// ---- copies by the compiler's functions ----

template <bool kBug>
FI_GLOBAL_FN void copied_to_others(const P& p) {
  if (thread_x() == 0) memcpy(tile(), p.in, 64 * sizeof(float));
  if (!kBug) sync_threads();
  p.out[thread_x()] = tile()[thread_x()];
}
template <bool kBug>
FI_GLOBAL_FN void copied_past_the_end(const P& p) {
  const uint64_t bytes = static_cast<uint64_t>(p.n - linear() * 500) * sizeof(float);
  memcpy(p.out + linear() * 500, p.in, kBug ? bytes + 4 : bytes - 2000 * (1 - linear()));
}
template <bool kBug>
FI_GLOBAL_FN void cleared_by_one(const P& p) {
  if (thread_x() == 0) memset(tile(), 0, (kBug ? 63 : 64) * sizeof(float));
  sync_threads();
  p.out[thread_x()] = tile()[thread_x()];
}

// ---- local arrays ----

template <bool kBug>
FI_GLOBAL_FN void wide_load_of_local(const P& p) {
  alignas(16) float x[4] = {1, 2, 3, 4};
  x[thread_x() % 4] = p.in[0];
  const Pack<float, 4> y = *reinterpret_cast<const Pack<float, 4>*>(x + (kBug ? thread_x() % 2 * 4 : 0));
  p.out[thread_x()] = y[thread_x() % 4];
}
template <bool kBug>
FI_GLOBAL_FN void backwards(const P& p) {
  float x[4] = {p.in[0], p.in[1], p.in[2], p.in[3]};
  float sum = 0;
  for (int i = 3; i >= (kBug ? -1 : 0); --i) sum += x[i] * p.in[thread_x()];
  p.out[thread_x()] = sum;
}
}  // namespace flashinfer::cu

using namespace flashinfer;
#define PAIR(name)                                               \
  FI_CUDA_ENTRY_NAMED(bug_##name, PlantedParams, cu::name<true>) \
  FI_CUDA_ENTRY_NAMED(right_##name, PlantedParams, cu::name<false>)
// clang-format off
PAIR(counted_relaxed) PAIR(release_cut_off) PAIR(late_fence) PAIR(early_fence) PAIR(one_of_two) PAIR(one_of_two_added)
PAIR(one_of_two_swapped) PAIR(number_not_tested) PAIR(number_of_writer) PAIR(number_of_block) PAIR(number_of_block_before)
PAIR(last_two_sum) PAIR(half_locked) PAIR(own_lock) PAIR(lock_relaxed)
PAIR(both_wait) PAIR(counted_tries) PAIR(endless_search) PAIR(crossed_locks) PAIR(block_skips_grid)
PAIR(written_after_arrive) PAIR(read_before_wait) PAIR(block_barrier_for_cluster) PAIR(peer_refilled)
PAIR(written_to_returned) PAIR(rank_too_large) PAIR(warp_without_arrival)
PAIR(copy_before_wait) PAIR(atomic_before_wait) PAIR(wait_by_shuffle) PAIR(warp_not_told) PAIR(no_work_no_wait)
PAIR(source_added_to) PAIR(end_of_source) PAIR(target_copied_twice) PAIR(group_not_closed) PAIR(zeros_in_flight)
PAIR(wrong_stage) PAIR(refilled_too_early)
PAIR(idle_block) PAIR(flag_not_set_up) PAIR(half_a_word) PAIR(row_not_filled) PAIR(peer_not_filled)
PAIR(barriers_by_turns) PAIR(pairs_overlap) PAIR(handed_back_early) PAIR(lane_left_out) PAIR(halves_apart)
PAIR(vote_for_barrier) PAIR(barrier_in_loop)
PAIR(wide_load_of_local) PAIR(backwards) PAIR(copied_to_others) PAIR(copied_past_the_end) PAIR(cleared_by_one)
