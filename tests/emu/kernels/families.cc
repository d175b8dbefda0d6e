// SPDX-License-Identifier: Apache-2.0
// More planted bugs (planted.cc), by what they break: the order of memory, who is alive, what was written, who meets
// whom, the bounds of local arrays.
#include "flashinfer/kernels/cuda/async.h"
#include "flashinfer/kernels/cuda/atomic.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/memory.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "kernels.h"

namespace flashinfer::cu {

template <bool kBug>
FI_GLOBAL_FN void relaxed_flag(const P& p) {
  last_sums(
      p, [&] { kBug ? static_cast<void>(atomic_count(p.counter, 1)) : static_cast<void>(atomic_add(p.counter, 1u)); });
}
template <bool kBug>
FI_GLOBAL_FN void fence_left_out(const P& p) {
  last_sums(p, [&] {
    if (!kBug) fence();
    atomic_count(p.counter, 1);
  });
}
/// A fence of the block orders nothing for other blocks.
template <bool kBug>
FI_GLOBAL_FN void narrow_fence(const P& p) {
  last_sums(p, [&] {
    kBug ? fence_block() : fence();
    atomic_count(p.counter, 1);
  });
}
/// What is stored after the release is not released.
template <bool kBug>
FI_GLOBAL_FN void released_too_early(const P& p) {
  if (thread_x() != 0) return;
  if (!kBug) p.out[block_x()] = 1.0f;
  const uint32_t before = atomic_add(p.counter, 1u);
  if (kBug) p.out[block_x()] = 1.0f;
  if (before != blocks_x() - 1) return;
  float sum = 0.0f;
  for (uint32_t b = 0; b + 1 < blocks_x(); ++b) sum += p.out[b] + p.out[(b + 1) % blocks_x()];
  p.out[blocks_x()] = sum;
}
/// A load without a fence after it acquires nothing.
template <bool kBug>
FI_GLOBAL_FN void relaxed_load(const P& p) {
  if (thread_x() != 0) return;
  p.out[block_x()] = 1.0f;
  fence();
  atomic_count(p.counter, 1);
  if (load_relaxed(p.counter) != blocks_x()) return;
  if (!kBug) fence();
  float sum = 0.0f;
  for (uint32_t b = 0; b < blocks_x(); ++b) sum += p.out[b];
  p.out[blocks_x()] = sum;
}
/// Warp 1 waits for a flag of warp 0.
template <bool kBug>
FI_GLOBAL_FN void flag_in_block(const P& p) {
  uint32_t* const flag = words() + 64;
  if (thread_x() == 0) *flag = 0;
  sync_threads();
  if (thread_x() == 0) {
    tile()[0] = p.in[0];
    kBug ? store_relaxed(flag, 1u) : store_release(flag, 1u);
  } else if (thread_x() == 32) {
    while (load_acquire(flag) == 0) {
    }
    p.out[0] = tile()[0];
  }
}
/// Waits for a word that no thread sets.
template <bool kBug>
FI_GLOBAL_FN void endless_spin(const P& p) {
  if (thread_x() == 0 && !kBug) store_release(p.counter, 1u);
  while (load_acquire(p.counter) == 0) {
  }
  p.out[linear()] = 1.0f;
}
template <bool kBug>
FI_GLOBAL_FN void endless_volatile(const P& p) {
  if (thread_x() == 0 && !kBug) *p.counter = 1;
  sync_threads();
  while (*static_cast<volatile uint32_t*>(p.counter) == 0) {
  }
  p.out[linear()] = 1.0f;
}
/// With a barrier in each round.
template <bool kBug>
FI_GLOBAL_FN void endless_rounds(const P& p) {
  if (thread_x() == 0 && !kBug) store_release(p.counter, 1u);
  do {
    sync_threads();
  } while (load_acquire(p.counter) == 0);
}
/// Words of which one is never set, read by one instruction.
template <bool kBug>
FI_GLOBAL_FN void endless_poll(const P& p) {
  uint32_t* const flags = reinterpret_cast<uint32_t*>(p.out);
  const uint32_t n = static_cast<uint32_t>(p.n / 200);
  for (uint32_t i = 0; i < n && thread_x() == 0; ++i) store_relaxed(flags + i, 0u);
  sync_threads();
  for (uint32_t i = kBug ? 1 : 0; i < n && thread_x() == 0; ++i) store_release(flags + i, 1u);
  for (uint32_t set = 0; set < n;) {
    set = 0;
    for (uint32_t i = 0; i < n; ++i) set += load_acquire(flags + i);
  }
}
/// The same, read by eight instructions.
template <bool kBug>
FI_GLOBAL_FN void endless_words(const P& p) {
  uint32_t* const flags = reinterpret_cast<uint32_t*>(p.out);
  for (uint32_t i = 0; i < 8 && thread_x() == 0; ++i) flags[i] = kBug && i == 5 ? 0 : 1;
  sync_threads();
  const volatile uint32_t* const f = flags;
  while ((f[0] & f[1] & f[2] & f[3] & f[4] & f[5] & f[6] & f[7]) == 0) {
  }
}
/// Neither atomic nor volatile: the load is made once.
template <bool kBug>
FI_GLOBAL_FN void endless_plain(const P& p) {
  if (thread_x() == 0) *p.counter = kBug ? 0u : 1u;
  sync_threads();
  while (*p.counter == 0) {
  }
  p.out[linear()] = 1.0f;
}
/// Without any access: a number that stays even.
template <bool kBug>
FI_GLOBAL_FN void endless_registers(const P& p) {
  const uint32_t step = static_cast<uint32_t>(p.n) + (kBug ? 0u : 1u);  // n is even
  uint32_t x = step * 2;
  while ((x & 1u) == 0) x = x / 2 * 2 * step + step;
  p.out[linear()] = static_cast<float>(x);
}
template <bool kBug>
FI_GLOBAL_FN void endless_lock(const P& p) {
  if (lane() != 0) return;
  while (atomic_cas(p.counter, 0u, 1u) != 0) {
  }
  input(p)[0] += 1.0f;
  if (!kBug) atomic_cas(p.counter, 1u, 0u);
}

// ---- clusters ----

template <bool kBug>
FI_GLOBAL_FN void wait_without_arrive(const P& p) {
  tile()[thread_x()] = p.in[thread_x()];
  if (!kBug) cluster_arrive();
  cluster_wait();
  p.out[linear()] = *map_shared(tile() + thread_x(), cluster_rank() ^ 1);
  cluster_arrive();
  cluster_wait();
}
template <bool kBug>
FI_GLOBAL_FN void arrive_twice(const P& p) {
  cluster_arrive();
  if (kBug) cluster_arrive();
  cluster_wait();
  p.out[linear()] = 1.0f;
}
/// Its neighbour may have returned.
template <bool kBug>
FI_GLOBAL_FN void returned_block(const P& p) {
  tile()[thread_x()] = p.in[thread_x()];
  cluster_arrive();
  cluster_wait();
  p.out[linear()] = *map_shared(tile() + thread_x(), cluster_rank() ^ 1);
  if (!kBug) cluster_arrive(), cluster_wait();
}
/// One block reads, the other returns at once.
template <bool kBug>
FI_GLOBAL_FN void returned_early(const P& p) {
  tile()[thread_x()] = p.in[thread_x()];
  cluster_arrive();
  cluster_wait();
  if (cluster_rank() == 0) p.out[linear()] = *map_shared(tile() + thread_x(), 1);
  if (!kBug || cluster_rank() == 0) cluster_arrive();
  if (!kBug) cluster_wait();
}
/// Its neighbour may not have begun.
template <bool kBug>
FI_GLOBAL_FN void block_not_begun(const P& p) {
  if (!kBug) cluster_arrive(), cluster_wait();
  *map_shared(tile() + thread_x(), cluster_rank() ^ 1) = p.in[thread_x()];
  cluster_arrive();
  cluster_wait();
  p.out[linear()] = tile()[thread_x()];
}

// ---- programmatic dependent launch ----

/// All threads return before the wait: the kernel behind waits for this one alone.
template <bool kBug>
FI_GLOBAL_FN void broken_chain(const P& p) {
  if (kBug && p.n > 0) return;
  depend_wait();
  p.out[linear()] = 1.0f;
}
template <bool kBug>
FI_GLOBAL_FN void launch_without_wait(const P& p) {
  if (!kBug) depend_wait();
  depend_launch();
  if (!kBug) p.out[linear()] = 1.0f;
}
/// One thread waits for all, and a barrier follows.
template <bool kBug>
FI_GLOBAL_FN void one_waits(const P& p) {
  if (thread_x() == 0) depend_wait();
  if (!kBug) sync_threads();
  p.out[linear()] = 1.0f;
}

// ---- cp.async ----

/// Another thread writes what is still being copied.
template <bool kBug>
FI_GLOBAL_FN void source_overwritten(const P& p) {
  const uint32_t i = thread_x();
  copy_async<4>(tile() + i, p.in + i);
  commit_async();
  if (!kBug) wait_async<0>();
  sync_threads();
  input(p)[127 - i] = 0.0f;
  wait_async<0>();
}
template <bool kBug>
FI_GLOBAL_FN void own_source_overwritten(const P& p) {
  const uint32_t i = thread_x();
  copy_async<4>(tile() + i, p.in + i);
  commit_async();
  if (!kBug) wait_async<0>();
  input(p)[i] = 0.0f;
  wait_async<0>();
}
/// The barriers order the write and the issue, but not the copy, which ends with the wait.
template <bool kBug>
FI_GLOBAL_FN void source_between_barriers(const P& p) {
  const uint32_t i = thread_x();
  for (int stage = 0; stage < 2; ++stage) {
    copy_async<4>(tile() + 128 * stage + i, p.in + 128 * stage + i);
    commit_async();
  }
  wait_async<kBug ? 1 : 0>();
  sync_threads();
  input(p)[255 - i] = 0.0f;
  sync_threads();
  wait_async<0>();
}
/// Only the thread that waits knows that its copy has ended.
template <bool kBug>
FI_GLOBAL_FN void source_after_wait(const P& p) {
  const uint32_t i = thread_x();
  copy_async<4>(tile() + i, p.in + i);
  commit_async();
  sync_threads();
  wait_async<0>();
  if (!kBug) sync_threads();
  input(p)[127 - i] = 0.0f;
}

// ---- memory that nothing wrote ----

template <bool kBug>
FI_GLOBAL_FN void unwritten(const P& p) {
  if (!kBug || thread_x() != 5) p.out[thread_x()] = 1.0f;
  p.out[128 + thread_x()] = p.out[thread_x()];
}
template <bool kBug>
FI_GLOBAL_FN void unwritten_source(const P& p) {
  if (!kBug) p.out[thread_x()] = 1.0f;
  copy_async<4>(tile() + thread_x(), p.out + thread_x());
  commit_async();
  wait_async<0>();
}
template <bool kBug>
FI_GLOBAL_FN void unwritten_sum(const P& p) {
  if (thread_x() != 0) return;
  if (!kBug) p.out[0] = 0.0f;
  atomic_add(p.out, 1.0f);
}
/// A wide load of which half was stored.
template <bool kBug>
FI_GLOBAL_FN void half_written(const P& p) {
  for (uint32_t i = 0; i < (kBug ? 2 : 4); ++i) p.out[4 * thread_x() + i] = 1.0f;
  const Pack<float, 4> x = load<4>(p.out + 4 * thread_x());
  p.out[512 + thread_x()] = x[0];
}
template <bool kBug>
FI_GLOBAL_FN void unwritten_count(const P& p) {
  if (thread_x() == 0 && !kBug) words()[0] = 0;
  sync_threads();
  atomic_count(words(), 1);
}

// ---- barriers ----

template <bool kBug>
FI_GLOBAL_FN void two_groups(const P& p) {
  const uint32_t i = thread_x(), group = warp() / 2;
  tile()[i] = p.in[i];
  barrier_sync(kBug ? 1 : 1 + group, 64);
  p.out[i] = tile()[64 * group + 63 - i % 64];
}
/// The second arrival may be counted in the first phase.
template <bool kBug>
FI_GLOBAL_FN void arrive_ahead(const P& p) {
  for (int round = 0; round < 2; ++round) {
    if (warp() == 0) {
      tile()[32 * round + lane()] = p.in[lane()];
      barrier_arrive(1, 64);
      if (!kBug) barrier_sync(2, 64);
    } else {
      barrier_sync(1, 64);
      p.out[lane()] = tile()[32 * round + 31 - lane()];
      if (!kBug) barrier_arrive(2, 64);
    }
  }
}
/// Eight warps read; the last of them is not waited for before the tile is filled again.
template <bool kBug>
FI_GLOBAL_FN void left_out_reader(const P& p) {
  if (warp() == 0) tile()[lane()] = p.in[lane()];
  sync_threads();
  p.out[thread_x()] = tile()[lane()];
  if (!kBug || warp() < 7) barrier_sync(1, kBug ? 224 : 256);
  if (warp() == 0) tile()[lane()] = p.in[32 + lane()];
}
/// One warp's atomics are not waited for.
template <bool kBug>
FI_GLOBAL_FN void left_out_atomic(const P& p) {
  if (thread_x() == 0) words()[0] = 0;
  sync_threads();
  atomic_count(words(), 1);
  if (!kBug || warp() != 3) barrier_sync(1, kBug ? 224 : 256);
  if (thread_x() == 0) p.out[0] = static_cast<float>(words()[0]);
}
/// The last block that counts changes what all have read, the one that does not count too.
template <bool kBug>
FI_GLOBAL_FN void left_out_block(const P& p) {
  if (thread_x() != 0) return;
  p.out[block_x()] = p.in[0];
  if (kBug && block_x() == 2) return;
  if (atomic_add(p.counter, 1u) == blocks_x() - (kBug ? 2 : 1)) input(p)[0] = 0.0f;
}

// ---- local arrays ----

template <bool kBug>
FI_GLOBAL_FN void local_index(const P& p) {
  float x[4] = {1, 2, 3, 4};
  x[thread_x() % (kBug ? 5 : 4)] = p.in[0];
  p.out[thread_x()] = x[(thread_x() + 1) % 4];
}
template <bool kBug>
FI_GLOBAL_FN void pack_index(const P& p) {
  Pack<float, 4> x = load<4>(p.in);
  p.out[thread_x()] = x[static_cast<int>(thread_x() % 4) - (kBug ? 1 : 0)];
}
/// The address of a local variable means nothing to another thread.
template <bool kBug>
FI_GLOBAL_FN void lent_local(const P& p) {
  float mine = p.in[thread_x()];
  float** const at = reinterpret_cast<float**>(shared());
  at[thread_x()] = &mine;
  sync_threads();
  p.out[thread_x()] = *at[kBug ? thread_x() ^ 1 : thread_x()];
  sync_threads();
}

/// Writes 16 bytes of each page of 4 KB, then all threads the last element.
template <bool kBug>
FI_GLOBAL_FN void far_race(const P& p) {
  for (int64_t i = thread_x(); i < p.n / 1024; i += threads_x()) store(p.out + 1024 * i, Pack<float, 4>{});
  sync_threads();
  if (kBug || thread_x() == 0) p.out[p.n - 1] = 2.0f;
}
}  // namespace flashinfer::cu

using namespace flashinfer;
#define PAIR(name)                                               \
  FI_CUDA_ENTRY_NAMED(bug_##name, PlantedParams, cu::name<true>) \
  FI_CUDA_ENTRY_NAMED(right_##name, PlantedParams, cu::name<false>)
// clang-format off
PAIR(relaxed_flag) PAIR(fence_left_out) PAIR(narrow_fence) PAIR(released_too_early) PAIR(relaxed_load) PAIR(flag_in_block)
PAIR(endless_spin) PAIR(endless_volatile) PAIR(endless_rounds) PAIR(endless_lock)
PAIR(endless_poll) PAIR(endless_words) PAIR(endless_registers) PAIR(endless_plain)
PAIR(wait_without_arrive) PAIR(arrive_twice) PAIR(returned_block) PAIR(returned_early) PAIR(block_not_begun)
PAIR(broken_chain) PAIR(launch_without_wait) PAIR(one_waits)
PAIR(source_overwritten) PAIR(own_source_overwritten) PAIR(source_between_barriers) PAIR(source_after_wait)
PAIR(unwritten) PAIR(unwritten_source) PAIR(unwritten_sum) PAIR(half_written) PAIR(unwritten_count)
PAIR(two_groups) PAIR(arrive_ahead) PAIR(left_out_reader) PAIR(left_out_atomic) PAIR(left_out_block)
PAIR(local_index) PAIR(pack_index) PAIR(lent_local) PAIR(far_race)
