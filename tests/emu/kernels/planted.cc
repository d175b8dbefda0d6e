// SPDX-License-Identifier: Apache-2.0
// Kernels for tests of the emulator: each is right with kBug = false and has one bug with kBug = true. Built as a JIT
// artifact is.
#include "flashinfer/kernels/cuda/async.h"
#include "flashinfer/kernels/cuda/atomic.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/memory.h"
#include "flashinfer/kernels/cuda/mma.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "kernels.h"

namespace flashinfer::cu {

FI_GLOBAL_FN int64_t index() { return static_cast<int64_t>(block_x()) * threads_x() + thread_x(); }

/// Reverses 128 elements.
template <bool kBug>
FI_GLOBAL_FN void missing_sync(const P& p) {
  const uint32_t i = thread_x();
  tile()[i] = p.in[i];
  if (!kBug) sync_threads();
  p.out[i] = tile()[127 - i];
}
/// Reverses within warps.
template <bool kBug>
FI_GLOBAL_FN void missing_sync_warp(const P& p) {
  const uint32_t i = thread_x();
  tile()[i] = p.in[i];
  if (!kBug) sync_warp();
  p.out[i] = tile()[i ^ 31];
}
/// A shuffle orders nothing in memory.
template <bool kBug>
FI_GLOBAL_FN void shuffle_as_barrier(const P& p) {
  const uint32_t i = thread_x();
  tile()[i] = p.in[i];
  if (kBug)
    p.out[i] = shuffle(1.0f, 0);
  else
    sync_warp();
  p.out[i] = tile()[i ^ 1];
}
/// One buffer for two rounds.
template <bool kBug>
FI_GLOBAL_FN void missing_second_sync(const P& p) {
  const uint32_t i = thread_x();
  for (int round = 0; round < 2; ++round) {
    tile()[i] = p.in[128 * round + i];
    sync_threads();
    p.out[128 * round + i] = tile()[127 - i];
    if (!kBug) sync_threads();
  }
}
template <bool kBug>
FI_GLOBAL_FN void missing_async_wait(const P& p) {
  const uint32_t i = thread_x();
  copy_async<4>(tile() + i, p.in + i);
  commit_async();
  if (!kBug) wait_async<0>();
  sync_threads();
  p.out[i] = tile()[127 - i];
  wait_async<0>();
}
template <bool kBug>
FI_GLOBAL_FN void wrong_pending_count(const P& p) {
  const uint32_t i = thread_x();
  for (int stage = 0; stage < 2; ++stage) {
    copy_async<4>(tile() + 128 * stage + i, p.in + 128 * stage + i);
    commit_async();
  }
  wait_async<kBug ? 2 : 1>();
  sync_threads();
  p.out[i] = tile()[127 - i];
  wait_async<0>();
}
/// The wait is of this thread's own copies only.
template <bool kBug>
FI_GLOBAL_FN void wait_without_sync(const P& p) {
  const uint32_t i = thread_x();
  copy_async<4>(tile() + i, p.in + i);
  commit_async();
  wait_async<0>();
  if (!kBug) sync_threads();
  p.out[i] = tile()[127 - i];
}
template <bool kBug>
FI_GLOBAL_FN void never_waited(const P& p) {
  copy_async<4>(tile() + thread_x(), p.in + thread_x());
  commit_async();
  if (!kBug) wait_async<0>();
}
template <bool kBug>
FI_GLOBAL_FN void store_into_flight(const P& p) {
  const uint32_t i = thread_x();
  copy_async<4>(tile() + i, p.in + i);
  commit_async();
  if (!kBug) wait_async<0>();
  tile()[i] = 0.0f;
  wait_async<0>();
}
template <bool kBug>
FI_GLOBAL_FN void one_too_far(const P& p) {
  const int64_t i = index();
  if (kBug ? i <= p.n : i < p.n) p.out[i] = 1.0f;
}
template <bool kBug>
FI_GLOBAL_FN void before_the_start(const P& p) {
  const int64_t i = index();
  if (i < p.n && (kBug || i > 0)) p.out[i] = p.in[i - 1];
}
template <bool kBug>
FI_GLOBAL_FN void past_shared(const P& p) {
  tile()[thread_x() + (kBug ? 1 : 0)] = p.in[thread_x()];
}
template <bool kBug>
FI_GLOBAL_FN void write_parameter(const P& p) {
  if (kBug) const_cast<P&>(p).n = 0;
}
template <bool kBug>
FI_GLOBAL_FN void skipped_barrier(const P& p) {
  tile()[thread_x()] = p.in[thread_x()];
  if (kBug && thread_x() >= 64) return;
  sync_threads();
  p.out[thread_x()] = tile()[thread_x()];
}
/// Both branches wait, at different barriers of the source.
template <bool kBug>
FI_GLOBAL_FN void diverged_barrier(const P& p) {
  const uint32_t i = thread_x();
  tile()[i] = p.in[i];
  if (kBug && i < 64) {
    sync_threads();
    p.out[i] = 1.0f;
  } else {
    sync_threads();
    p.out[i] = tile()[127 - i];
  }
}
template <bool kBug>
FI_GLOBAL_FN void deadlock(const P& p) {
  if (warp() == 0)
    barrier_sync(1, kBug ? 128 : 64);
  else if (warp() == 1)
    barrier_arrive(1, kBug ? 128 : 64);
  p.out[thread_x()] = 1.0f;
}
template <bool kBug>
FI_GLOBAL_FN void barrier_counts(const P& p) {
  if (warp() == 0)
    barrier_sync(1, 64);
  else if (warp() == 1)
    barrier_sync(1, kBug ? 96 : 64);
  p.out[thread_x()] = 1.0f;
}
template <bool kBug>
FI_GLOBAL_FN void uninitialised(const P& p) {
  const uint32_t i = thread_x();
  if (!kBug || i != 5) tile()[i] = p.in[i];
  sync_threads();
  p.out[i] = tile()[127 - i];
}
template <bool kBug>
FI_GLOBAL_FN void misaligned(const P& p) {
  const Pack<float, 4> x = load<4>(p.in + 4 * thread_x() + (kBug ? 1 : 0));
  p.out[thread_x()] = x[0] + x[3];
}
template <bool kBug>
FI_GLOBAL_FN void misaligned_async(const P& p) {
  copy_async<16>(tile() + 4 * thread_x(), p.in + 4 * thread_x() + (kBug ? 2 : 0));
  commit_async();
  wait_async<0>();
}
template <bool kBug>
FI_GLOBAL_FN void shuffle_after_exit(const P& p) {
  if (kBug && thread_x() == 127) return;
  p.out[thread_x()] = warp_reduce(p.in[thread_x()], Sum{});
}
template <bool kBug>
FI_GLOBAL_FN void shuffle_in_a_branch(const P& p) {
  const uint32_t i = thread_x();
  if (!kBug || i % 2) p.out[i] = shuffle_xor(p.in[i], 2);
  sync_warp();
}
template <bool kBug>
FI_GLOBAL_FN void mask_without_self(const P& p) {
  if (lane() < (kBug ? 17 : 16)) p.out[thread_x()] = static_cast<float>(ballot(true, 0xffffu));
}
/// Every block writes element 0.
template <bool kBug>
FI_GLOBAL_FN void blocks_race(const P& p) {
  if (thread_x() == 0) p.out[kBug ? 0 : block_x()] = static_cast<float>(block_x());
}
template <bool kBug>
FI_GLOBAL_FN void global_race(const P& p) {
  const uint32_t i = thread_x();
  p.out[i] = 1.0f;
  if (!kBug) sync_threads();
  p.out[i + 128] = p.out[127 - i];
}
template <bool kBug>
FI_GLOBAL_FN void count_without_atomic(const P& p) {
  if (thread_x() != 0) return;
  if (kBug)
    *p.counter += 1;
  else
    atomic_add(p.counter, 1u);
}
/// The last block to come sums what the others left.
template <bool kBug>
FI_GLOBAL_FN void last_block(const P& p) {
  if (thread_x() != 0) return;
  p.out[block_x()] = 1.0f;
  uint32_t before = kBug ? blocks_x() - 1 : atomic_add(p.counter, 1u);
  if (before != blocks_x() - 1) return;
  float sum = 0.0f;
  for (uint32_t b = 0; b < blocks_x(); ++b) sum += p.out[b];
  p.out[blocks_x()] = kBug ? 0.0f : sum;
}
/// Reads its neighbour's shared memory in a cluster of two.
template <bool kBug>
FI_GLOBAL_FN void cluster_race(const P& p) {
  const uint32_t i = thread_x();
  tile()[i] = p.in[i];
  if (!kBug) cluster_arrive(), cluster_wait();
  p.out[index()] = *map_shared(tile() + i, cluster_rank() ^ 1);
  cluster_arrive();
  cluster_wait();
}
template <bool kBug>
FI_GLOBAL_FN void grid_barrier(const P& p) {
  p.out[index()] = 1.0f;
  if (!kBug) sync_grid(p.counter);
  const int64_t all = static_cast<int64_t>(blocks_x()) * threads_x();
  p.out[all + index()] = p.out[all - 1 - index()];
}
template <bool kBug>
FI_GLOBAL_FN void grid_barrier_alone(const P& p) {
  if (kBug) sync_grid(p.counter);
}

/// out (16 x 8) = A (16 x 16) B (16 x 8) in bf16, from in: A row-major, then B row-major (k x n); kBug: one thing is
/// wrong.
enum class Wrong { kNothing, kSwizzle, kTransposed, kLane, kStore };
template <Wrong kWrong>
FI_GLOBAL_FN void product(const P& p) {
  bf16_t* a = reinterpret_cast<bf16_t*>(shared());  // 16 rows of 2 pieces
  bf16_t* b = a + 256;                              // 16 rows (k) of 1 piece
  const uint32_t l = lane();
  for (uint32_t i = l; i < 256; i += 32) a[swizzle<2>(i / 16, i / 8 % 2) * 8 + i % 8] = bf16_t(p.in[i]);
  for (uint32_t i = l; i < 128; i += 32) b[i] = bf16_t(p.in[256 + i]);
  sync_warp();
  const uint32_t row = l % 16, piece = l / 16;
  const Frag4 fa = load_matrix4(a + (kWrong == Wrong::kSwizzle ? row * 2 + piece : swizzle<2>(row, piece)) * 8);
  const bf16_t* at = b + l % 16 * 8;
  const Frag4 fb = kWrong == Wrong::kTransposed ? load_matrix4(at) : load_matrix4_transposed(at);
  if (kWrong == Wrong::kStore) a[l] = bf16_t(0.0f);  // no sync_warp since the other lanes' ldmatrix
  Acc c = mma<bf16_t>(fa, {{fb.r[0], fb.r[1]}}, {});
  if (kWrong == Wrong::kLane) c.r[1] = shuffle(c.r[1], l ^ 1);
  for (int i = 0; i < 4; ++i) p.out[(l / 4 + i / 2 * 8) * 8 + 2 * (l % 4) + i % 2] = c.r[i];
}
/// Programmatic dependent launch: the kernel in front may still write `in`.
template <bool kBug>
FI_GLOBAL_FN void read_too_early(const P& p) {
  if (!kBug) depend_wait();
  const float x = p.in[index()];
  depend_wait();
  p.out[index()] = x;
}

/// A sum that nothing sets to zero.
template <bool kBug>
FI_GLOBAL_FN void sum_not_set(const P& p) {
  float sum[4];
  for (int i = 0; i < (kBug ? 3 : 4); ++i) sum[i] = 0;
  for (uint32_t i = 0; i < 16; ++i) sum[(i + thread_x()) % 4] += p.in[i];
  p.out[thread_x()] = sum[0] + sum[1] + sum[2] + sum[3];
}

// ---- layouts whose counts are known ----

/// One warp reads a column of a 32 x kPitch tile, after writing its rows.
template <int kPitch>
FI_GLOBAL_FN void column(const P& p) {
  for (int r = 0; r < 32; ++r) tile()[r * kPitch + lane()] = p.in[r + lane()];
  sync_warp();
  float x = 0;
  for (int c = 0; c < 32; ++c) x += tile()[lane() * kPitch + c];
  p.out[lane()] = x;
}
/// ldmatrix from rows of 64 bf16, swizzled or not.
template <bool kSwizzled>
FI_GLOBAL_FN void matrix_rows(const P& p) {
  char* rows = shared();  // 16 rows of 8 pieces
  for (uint32_t i = lane(); i < 128; i += 32) store_shared(rows + 16 * i, Pack<char, 16>{});
  sync_warp();
  uint32_t x = 0;
  for (uint32_t k = 0; k < 8; k += 2) {
    const uint32_t row = lane() % 16, piece = k + lane() / 16;
    x += load_matrix4(rows + 16 * (kSwizzled ? swizzle<8>(row, piece) : 8 * row + piece)).r[0];
  }
  p.out[lane()] = static_cast<float>(x);
}
template <int kStride>
FI_GLOBAL_FN void strided(const P& p) {
  p.out[lane()] = p.in[lane() * kStride];
}
FI_GLOBAL_FN void wide(const P& p) { store<Hint::kOnce>(p.out + 4 * lane(), load<4>(p.in + 4 * lane())); }
/// Lane l makes l % 4 + 1 rounds: requests are matched by execution, not by time.
FI_GLOBAL_FN void uneven(const P& p) {
  float x = 0;
  for (uint32_t i = 0; i <= lane() % 4; ++i) x += p.in[32 * i + lane()];
  p.out[lane()] = x;
}
}  // namespace flashinfer::cu

using namespace flashinfer;
#define PAIR(name)                                               \
  FI_CUDA_ENTRY_NAMED(bug_##name, PlantedParams, cu::name<true>) \
  FI_CUDA_ENTRY_NAMED(right_##name, PlantedParams, cu::name<false>)
// clang-format off
PAIR(missing_sync) PAIR(missing_sync_warp) PAIR(shuffle_as_barrier) PAIR(missing_second_sync) PAIR(missing_async_wait)
PAIR(wrong_pending_count) PAIR(wait_without_sync) PAIR(never_waited) PAIR(store_into_flight) PAIR(one_too_far)
PAIR(before_the_start) PAIR(past_shared) PAIR(write_parameter) PAIR(skipped_barrier) PAIR(diverged_barrier)
PAIR(deadlock) PAIR(barrier_counts) PAIR(uninitialised) PAIR(misaligned) PAIR(misaligned_async) PAIR(shuffle_after_exit)
PAIR(shuffle_in_a_branch) PAIR(mask_without_self) PAIR(blocks_race) PAIR(global_race) PAIR(count_without_atomic)
PAIR(last_block) PAIR(cluster_race) PAIR(grid_barrier) PAIR(grid_barrier_alone) PAIR(read_too_early) PAIR(sum_not_set)
FI_CUDA_ENTRY_NAMED(product, PlantedParams, cu::product<cu::Wrong::kNothing>)
FI_CUDA_ENTRY_NAMED(product_swizzle, PlantedParams, cu::product<cu::Wrong::kSwizzle>)
FI_CUDA_ENTRY_NAMED(product_transposed, PlantedParams, cu::product<cu::Wrong::kTransposed>)
FI_CUDA_ENTRY_NAMED(product_lane, PlantedParams, cu::product<cu::Wrong::kLane>)
FI_CUDA_ENTRY_NAMED(product_store, PlantedParams, cu::product<cu::Wrong::kStore>)
FI_CUDA_ENTRY_NAMED(column_32, PlantedParams, cu::column<32>)
FI_CUDA_ENTRY_NAMED(column_33, PlantedParams, cu::column<33>)
FI_CUDA_ENTRY_NAMED(rows_plain, PlantedParams, cu::matrix_rows<false>)
FI_CUDA_ENTRY_NAMED(rows_swizzled, PlantedParams, cu::matrix_rows<true>)
FI_CUDA_ENTRY_NAMED(stride_1, PlantedParams, cu::strided<1>)
FI_CUDA_ENTRY_NAMED(stride_8, PlantedParams, cu::strided<8>)
FI_CUDA_ENTRY_NAMED(wide, PlantedParams, cu::wide)
FI_CUDA_ENTRY_NAMED(uneven, PlantedParams, cu::uneven)
