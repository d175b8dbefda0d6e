// SPDX-License-Identifier: Apache-2.0
// Exact top-k on a GPU, for any k and row length, with the CPU's results bit for bit: a cluster of blocks a row (one,
// or several where a few long rows would leave SMs idle), each block a part of it. The key of rank k is found by digits
// of 11 bits (three passes, the second and third from L2 or L1), then a pass writes what reaches it in order of
// position. k = 1 is one pass. All blocks have the sums of the blocks' bins, and take the same steps.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/common/select_types.h"
#include "flashinfer/kernels/cuda/atomic.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/page_table.h"
#include "flashinfer/kernels/cuda/rows.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "flashinfer/ops/topk/kernels/cuda_params.h"

namespace flashinfer::cu {

/// Shared memory: the bins (of this block, and of all of them) and, once they are not needed, the keys to sort; then
/// what warps and blocks exchange.
struct TopKShared {
  uint32_t *bins, *sums;
  uint64_t* keys;
  uint32_t* counts;     // [32] of warps
  uint32_t* found;      // digit, elements above it, elements of it
  uint64_t* of_blocks;  // [kTopKBlocks]
};
/// Barrier of the threads that share the row.
FI_GLOBAL_FN void sync_row() {
  if (cluster_blocks() > 1)
    sync_cluster();
  else
    sync_threads();
}
/// The part of a row of n elements that this block processes: whole steps of the block's threads.
struct TopKPart {
  int64_t begin, end;
};
template <TopKCudaConfig C, class T>
FI_GLOBAL_FN TopKPart part_of(int64_t n) {
  const int64_t step = int64_t{C.threads} * kPiece<T>, blocks = cluster_blocks();
  const int64_t size = blocks == 1 ? n : round_up(ceil_div(n, blocks), step);
  const int64_t begin = cluster_rank() * size, end = begin + size;
  return {begin < n ? begin : n, end < n ? end : n};
}
FI_GLOBAL_FN TopKShared top_k_shared() {
  char* const s = shared();
  uint32_t* const bins = reinterpret_cast<uint32_t*>(s);
  return {bins,
          cluster_blocks() > 1 ? bins + kTopKBins : bins,
          reinterpret_cast<uint64_t*>(s),
          reinterpret_cast<uint32_t*>(s + kTopKSharedKeys * 8),
          reinterpret_cast<uint32_t*>(s + kTopKSharedKeys * 8 + 128),
          reinterpret_cast<uint64_t*>(s + kTopKSharedKeys * 8 + 160)};
}

/// f(key, index) for the pieces of the block's part of a row; `wide`: they are aligned.
template <TopKCudaConfig C, class T, class F>
FI_GLOBAL_FN void each_key(const T* x, const TopKPart& part, bool wide, F f) {
  constexpr int N = kPiece<T>;
  const int64_t n = part.end;
  for (int64_t at = part.begin + static_cast<int64_t>(thread_x()) * N; at < n; at += C.threads * N) {
    float v[N];
    if (wide && at + N <= n)
      load_piece<true, N>(x, at, n, v);
    else
      load_piece<false, N>(x, at, n, v);
#pragma unroll
    for (int i = 0; i < N; ++i)
      if (at + i < n) f(cpu::value_key(v[i]), at + i);
  }
}
/// Sum over the threads before this one, and over all of them. Two barriers.
template <TopKCudaConfig C>
FI_GLOBAL_FN uint32_t sum_before(uint32_t x, uint32_t* counts, uint32_t& all) {
  uint32_t sum = x;
#pragma unroll
  for (uint32_t d = 1; d < 32; d *= 2) {
    const uint32_t other = shuffle_bits(sum, (lane() - d) & 31u);
    if (lane() >= d) sum += other;
  }
  if (lane() == 31) counts[warp()] = sum;
  sync_threads();
  uint32_t before = 0;
  all = 0;
#pragma unroll 1
  for (uint32_t w = 0; w < C.threads / 32; ++w) {
    const uint32_t of_warp = counts[w];
    if (w < warp()) before += of_warp;
    all += of_warp;
  }
  sync_threads();
  return before + sum - x;
}

/// The key of rank k: `above` elements have larger keys, `equal` this one. before: of them, in front of this block's
/// part.
struct KeyOfRank {
  uint32_t key;
  int64_t above, equal, above_before, equal_before;
};
/// s.sums: the bins of all blocks, each of which adds up its share of them. The caller's bins are complete.
template <TopKCudaConfig C>
FI_GLOBAL_FN void add_bins(const TopKShared& s) {
  const uint32_t blocks = cluster_blocks(), share = kTopKBins / blocks;  // a power of two
  sync_row();
  if (blocks == 1) return;
#pragma unroll 1
  for (uint32_t i = cluster_rank() * share + thread_x(); i < (cluster_rank() + 1) * share; i += C.threads) {
    uint32_t all = 0;
#pragma unroll 1
    for (uint32_t b = 0; b < blocks; ++b) all += load_peer(s.bins + i, b);
#pragma unroll 1
    for (uint32_t b = 0; b < blocks; ++b) store_peer(s.sums + i, b, all);
  }
  sync_row();
}
template <TopKCudaConfig C, class T>
FI_GLOBAL_FN KeyOfRank key_of_rank(const T* x, int64_t n, bool wide, int64_t k, const TopKShared& s) {
  KeyOfRank r{0, 0, n, 0, 0};
  const TopKPart part = part_of<C, T>(n);
  uint32_t own_above = 0;  // of this block's part
  constexpr int kShift[3] = {21, 10, 0}, kBits[3] = {11, 11, 10};
#pragma unroll 1
  for (int pass = 0; pass < 3; ++pass) {
    const int shift = kShift[pass], bits = kBits[pass];
    const uint32_t fixed = pass == 0 ? 0u : 0xffffffffu << (shift + bits);
    for (uint32_t i = thread_x(); i < kTopKBins; i += C.threads) s.bins[i] = 0;
    sync_threads();
    each_key<C>(x, part, wide, [&](uint32_t key, int64_t) {
      if ((key & fixed) == r.key) atomic_count(s.bins + (key >> shift & ((1u << bits) - 1)), 1);
    });
    add_bins<C>(s);
    // From the largest digit down: a thread sums neighbouring bins, the block scans the sums.
    constexpr uint32_t kMine = kTopKBins / C.threads;
    uint32_t mine = 0, all;
    const uint32_t top = kTopKBins - 1 - thread_x() * kMine;
#pragma unroll
    for (uint32_t i = 0; i < kMine; ++i) mine += s.sums[top - i];
    uint32_t before = sum_before<C>(mine, s.counts, all);
    const uint32_t wanted = static_cast<uint32_t>(k - r.above);  // 1 ...
    if (before < wanted && wanted <= before + mine) {
#pragma unroll 1
      for (uint32_t i = 0; i < kMine; ++i) {
        const uint32_t of_bin = s.sums[top - i];
        if (wanted <= before + of_bin) {
          s.found[0] = top - i, s.found[1] = before, s.found[2] = of_bin;
          break;
        }
        before += of_bin;
      }
    }
    sync_threads();
    r.key |= s.found[0] << shift;
    r.above += s.found[1], r.equal = s.found[2];
    if (cluster_blocks() > 1) {
      uint32_t higher = 0;
#pragma unroll
      for (uint32_t i = 0; i < kMine; ++i) higher += top - i > s.found[0] ? s.bins[top - i] : 0u;
      sum_before<C>(higher, s.counts, all);
      own_above += all;
    }
  }
  if (cluster_blocks() > 1) {
    const uint64_t own = static_cast<uint64_t>(own_above) << 32 | s.bins[s.found[0]];
    if (thread_x() < cluster_blocks()) store_peer(s.of_blocks + cluster_rank(), thread_x(), own);
    sync_row();
#pragma unroll 1
    for (uint32_t b = 0; b < cluster_rank(); ++b)
      r.above_before += s.of_blocks[b] >> 32, r.equal_before += s.of_blocks[b] & 0xffffffffu;
  }
  sync_threads();
  return r;
}

/// f(rank, index, value) for the k elements of rank key or above, rank counting them in order of position: those of the
/// block's part.
template <TopKCudaConfig C, class T, class F>
FI_GLOBAL_FN void each_chosen(const T* x, int64_t row_size, bool wide, int64_t k, bool large, const KeyOfRank& least,
                              const TopKShared& s, F f) {
  constexpr int N = kPiece<T>;
  const int64_t wanted = k - least.above, skipped = large ? least.equal - wanted : 0;  // among the equal ones
  int64_t above = least.above_before, equal = least.equal_before;                      // in front of this chunk
  const TopKPart part = part_of<C, T>(row_size);
  const int64_t n = part.end;
  for (int64_t base = part.begin; base < n; base += C.threads * N) {
    const int64_t at = base + static_cast<int64_t>(thread_x()) * N;
    float v[N];
    if (wide && at + N <= n)
      load_piece<true, N>(x, at, n, v);
    else
      load_piece<false, N>(x, at, n, v);
    uint32_t mine = 0, all;  // above, equal in the upper half: a chunk has fewer than 2^16 elements
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const uint32_t key = cpu::value_key(v[i]);
      if (at + i < n) mine += key > least.key ? 1u : key == least.key ? 0x10000u : 0u;
    }
    const uint32_t before = sum_before<C>(mine, s.counts, all);
    int64_t higher = above + (before & 0xffffu), same = equal + (before >> 16);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const uint32_t key = cpu::value_key(v[i]);
      const bool real = at + i < n, more = real && key > least.key, tie = real && key == least.key;
      const bool chosen = more || (tie && same >= skipped && same < skipped + wanted);
      if (chosen) {
        const int64_t ties = same <= skipped ? 0 : same - skipped < wanted ? same - skipped : wanted;
        f(higher + ties, at + i, v[i]);
      }
      higher += more, same += tie;
    }
    above += all & 0xffffu, equal += all >> 16;
  }
}

/// Descending, by pairs (bitonic); size is a power of two. `keys`: shared or global memory, of this block alone.
template <TopKCudaConfig C>
FI_GLOBAL_FN void sort_keys(uint64_t* keys, uint32_t size) {
  for (uint32_t run = 2; run <= size; run *= 2)
    for (uint32_t step = run / 2; step > 0; step /= 2) {
      sync_threads();
      for (uint32_t i = thread_x(); i < size / 2; i += C.threads) {
        const uint32_t low = i / step * (2 * step) + i % step, high = low + step;
        const uint64_t a = keys[low], b = keys[high];
        if ((a < b) == ((low & run) == 0)) keys[low] = b, keys[high] = a;
      }
    }
  sync_threads();
}

struct LargerKey {  // 64 bits travel as a double
  FI_GLOBAL_FN double operator()(double a, double b) const {
    return __builtin_bit_cast(uint64_t, a) < __builtin_bit_cast(uint64_t, b) ? b : a;
  }
};
template <TopKCudaConfig C, class T>
FI_GLOBAL_FN void top_one(const TopKCudaParams& p, const T* x, int64_t row, const TopKShared& s) {
  uint64_t best = 0;
  each_key<C>(x, part_of<C, T>(p.d), C.aligned != 0, [&](uint32_t key, int64_t i) {
    const uint64_t one =
        static_cast<uint64_t>(key) << 32 | (p.large ? static_cast<uint32_t>(i) : ~static_cast<uint32_t>(i));
    best = one > best ? one : best;
  });
  best = __builtin_bit_cast(uint64_t, block_reduce<C.threads>(__builtin_bit_cast(double, best), LargerKey{},
                                                              reinterpret_cast<double*>(s.keys)));
  if (cluster_blocks() > 1) {
    sync_row();  // all blocks have begun
    if (thread_x() == 0) store_peer(s.of_blocks + cluster_rank(), 0, best);
    sync_row();
#pragma unroll 1
    for (uint32_t b = 0; b < cluster_blocks() && cluster_rank() == 0; ++b)
      best = s.of_blocks[b] > best ? s.of_blocks[b] : best;
  }
  if (thread_x() == 0 && cluster_rank() == 0) {
    const int64_t at = cpu::key_index(best, p.large != 0);
    p.indices[row * p.indices_stride] = at;
    static_cast<T*>(p.values)[row * p.values_stride] = x[at];
  }
}

template <TopKCudaConfig C, class T>
FI_GLOBAL_FN void top_k_row(const TopKCudaParams& p, const T* x, int64_t row, const TopKShared& s) {
  const KeyOfRank least = key_of_rank<C>(x, p.d, C.aligned != 0, p.k, s);
  T* const values = static_cast<T*>(p.values) + row * p.values_stride;
  int64_t* const indices = p.indices + row * p.indices_stride;
  if (!p.sorted) {
    each_chosen<C>(x, p.d, C.aligned != 0, p.k, p.large != 0, least, s, [&](int64_t rank, int64_t i, float) {
      indices[rank] = i;
      values[rank] = x[i];
    });
    return;
  }
  // The first block sorts, in its shared memory or in global memory.
  const auto sorted = [&](uint64_t* keys, auto put) {
    const uint32_t size = static_cast<uint32_t>(p.keys_size);
    each_chosen<C>(x, p.d, C.aligned != 0, p.k, p.large != 0, least, s,
                   [&](int64_t rank, int64_t i, float v) { put(keys + rank, cpu::element_key(v, i, p.large != 0)); });
    sync_row();
    if (cluster_rank() != 0) return;
    for (uint32_t i = static_cast<uint32_t>(p.k) + thread_x(); i < size; i += C.threads) keys[i] = 0;
    sort_keys<C>(keys, size);
    for (int64_t i = thread_x(); i < p.k; i += C.threads) {
      const int64_t at = cpu::key_index(keys[i], p.large != 0);
      indices[i] = at;
      values[i] = x[at];
    }
  };
  if (p.keys_size <= kTopKSharedKeys)
    sorted(s.keys, [](uint64_t* key, uint64_t value) { store_peer(key, 0, value); });
  else
    sorted(p.keys + row * p.keys_size, [](uint64_t* key, uint64_t value) { *key = value; });
}

FI_GLOBAL_FN int64_t index_or(const StridedIndices& a, int64_t i, int64_t absent) {
  return a.data ? strided_index(a, i) : absent;
}
/// Window and table of a row. The host has not checked them: windows are cut to the row, and what is not in the table
/// is -1.
struct TopKWindow {
  int64_t start, length, offset, table, table_start;  // table: row, -1: none
};
FI_GLOBAL_FN TopKWindow top_k_window(const TopKCudaParams& p, int64_t row) {
  TopKWindow w{index_or(p.starts, row, 0), 0, index_or(p.offsets, row, 0), -1, 0};
  if (w.start < 0 || w.start > p.d) w.start = p.d;
  const uint32_t r = static_cast<uint32_t>(row), next = static_cast<uint32_t>(p.next_n);
  const int64_t tokens = strided_index(p.lengths, r / next) - p.next_n + r % next + 1;
  const int64_t length = tokens <= 0 ? 0 : p.ratio == 1 ? tokens : tokens / p.ratio;
  w.length = length < p.d - w.start ? length : p.d - w.start;
  if (p.page_table) {
    w.table = index_or(p.batch, row, row);
    if (w.table >= p.table_rows) w.table = -1;
    w.table_start = index_or(p.table_starts, row, 0);
  }
  return w;
}
template <TopKCudaConfig C, class T>
FI_GLOBAL_FN void transform_row(const TopKCudaParams& p, const T* row_data, int64_t row, const TopKShared& s) {
  const TopKWindow w = top_k_window(p, row);
  const T* const x = row_data + w.start;
  int32_t* const out = p.output + row * p.output_stride;
  const auto put = [&](int64_t rank, int64_t at) {
    int64_t y = at < 0 ? -1 : at + w.offset;
    if (p.page_table && at >= 0) {
      const int64_t column = w.table_start + (at >> p.page_shift);
      const bool real = w.table >= 0 && column >= 0 && column < p.table_columns;
      y = real ? (static_cast<int64_t>(p.page_table[w.table * p.table_stride + column]) << p.page_shift) +
                     (at & ((int64_t{1} << p.page_shift) - 1))
               : -1;
    }
    out[rank] = static_cast<int32_t>(y);
    if (p.raw) p.raw[row * p.raw_stride + rank] = static_cast<int32_t>(at);
    if (p.values) static_cast<T*>(p.values)[row * p.values_stride + rank] = at < 0 ? from_f32<T>(0.0f) : x[at];
  };
  if (w.length > p.k) {
    const bool wide = C.aligned != 0 && w.start % kPiece<T> == 0;
    const KeyOfRank least = key_of_rank<C>(x, w.length, wide, p.k, s);
    each_chosen<C>(x, w.length, wide, p.k, p.large != 0, least, s,
                   [&](int64_t rank, int64_t i, float) { put(rank, i); });
    return;
  }
  if (cluster_rank() != 0) return;
  for (int64_t i = thread_x(); i < p.k; i += C.threads) put(i, i < w.length ? i : -1);
}

template <TopKCudaConfig C>
FI_GLOBAL_FN void top_k(const TopKCudaParams& p) {
  using T = scalar_of_t<C.dtype>;
  depend_wait();
  const int64_t row = block_x() / cluster_blocks();
  const T* const x = static_cast<const T*>(p.input) + row * p.input_stride;
  const TopKShared s = top_k_shared();
  if (p.output)
    transform_row<C>(p, x, row, s);
  else if (p.k == 1)
    top_one<C>(p, x, row, s);
  else
    top_k_row<C>(p, x, row, s);
  depend_launch();
}

}  // namespace flashinfer::cu
