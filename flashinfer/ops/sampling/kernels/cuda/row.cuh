// SPDX-License-Identifier: Apache-2.0
// The passes of sample_row.h by a cluster of blocks (one, or several where a few long rows would leave SMs idle): a
// warp processes statistics blocks of 1024 elements, lane l the CPU's lanes 2l and 2l + 1, so that sums have the CPU's
// order. What a warp finds it stores in the shared memory of every block of the cluster, so that all of them take the
// same steps without asking each other. Sequential parts (adding up blocks, the scan inside one block) run on one
// thread of each block, from shared memory. Every pass begins and ends with a barrier: no thread reads what it
// overwrites, and its results are visible to all threads.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cuda/atomic.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/convert.h"
#include "flashinfer/kernels/cuda/exact.h"
#include "flashinfer/kernels/cuda/memory.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "flashinfer/ops/sampling/kernels/params.h"
#include "flashinfer/ops/sampling/kernels/sample_row.h"

// The passes are called: inlined at each use, they took NVRTC ten times as long, and spilled. Loops that do not wait
// for many loads of global memory are not unrolled (NVRTC's default is fourfold): a bf16 sampler then takes NVRTC 1.5 s
// instead of 2.0.

namespace flashinfer::cu {
using cpu::Above, cpu::BlockStats, cpu::kStatsBlock, cpu::stats_blocks;

/// A row processed by the blocks of a cluster, of kThreads each.
template <int kThreads>
struct RowPasses {
  static constexpr int kWarps = kThreads / 32, kBins = 2048;

  /// kBins words of shared memory; also the values of one statistics block.
  FI_GLOBAL_FN static uint32_t* bins() { return reinterpret_cast<uint32_t*>(shared()); }
  /// 2 + kWarps * kSampleBlocks words behind them: one thread's result, each warp's count.
  FI_GLOBAL_FN static uint64_t* slots() { return reinterpret_cast<uint64_t*>(shared() + kSharedBins); }

  FI_GLOBAL_FN static uint32_t blocks_of_row() { return cluster_blocks(); }
  /// Warp of the cluster, of kWarps * blocks_of_row().
  FI_GLOBAL_FN static uint32_t warp_of_row() { return cluster_rank() * kWarps + warp(); }
  /// Barrier of the threads that share the row.
  FI_GLOBAL_FN static void sync_row() {
    if (blocks_of_row() > 1)
      sync_cluster();
    else
      sync_threads();
  }
  /// Stores a value that all lanes of the warp have in every block.
  template <class V>
  FI_GLOBAL_FN static void tell(V* p, V value) {
    if (lane() < blocks_of_row()) store_peer(p, lane(), value);
  }

  template <class T>
  FI_GLOBAL_FN static float element(const T* x, int64_t i) {
    return to_f32(in_global(x)[i]);
  }

  FI_GLOBAL_FN static float next(sampling::Uniforms& u) { return uniform(u.seed, u.subsequence, u.offset++); }
  FI_CALLED_FN static float uniform(uint64_t seed, uint64_t subsequence, uint64_t offset) {
    return cpu::philox_uniform(seed, subsequence, offset);
  }

  /// f() evaluated by one thread, returned to all of the block.
  template <class F>
  FI_GLOBAL_FN auto by_one(F f) const {
    using V = decltype(f());
    static_assert(sizeof(V) <= 16);
    sync_threads();
    if (thread_x() == 0) *reinterpret_cast<V*>(slots()) = f();
    sync_threads();
    return *reinterpret_cast<const V*>(slots());
  }
  /// The sum over the warps of `n`, in every thread.
  FI_GLOBAL_FN int64_t sum_of_warps(int64_t n, int64_t& before) const {
    uint64_t* const of = slots() + 2;
    tell(of + warp_of_row(), static_cast<uint64_t>(n));
    sync_row();
    int64_t all = 0;
#pragma unroll 1
    for (uint32_t w = 0; w < kWarps * blocks_of_row(); ++w) {
      if (w == warp_of_row()) before = all;
      all += static_cast<int64_t>(of[w]);
    }
    sync_row();
    return all;
  }

  FI_GLOBAL_FN static int64_t length(int64_t n, int64_t b) {
    return n - b * kStatsBlock < kStatsBlock ? n - b * kStatsBlock : kStatsBlock;
  }
  /// each(i, x[i]) for two neighbours a lane and 64 elements a step, in order. All lanes participate.
  template <int kUnroll = 8, class T, class F>
  FI_GLOBAL_FN static void pairs(const T* x, int64_t n, F each) {
    if (n == kStatsBlock && reinterpret_cast<uintptr_t>(x) % (2 * sizeof(T)) == 0) {
#pragma unroll kUnroll
      for (int g = 0; g < kStatsBlock / 64; ++g) {
        const int at = g * 64 + static_cast<int>(lane()) * 2;
        const Pack<T, 2> v = load<2>(x + at);
        each(at, to_f32(v[0]), 0);
        each(at + 1, to_f32(v[1]), 1);
      }
      return;
    }
#pragma unroll 2
    for (int at = static_cast<int>(lane()) * 2; at < n; at += 64) {
      each(at, to_f32(x[at]), 0);
      if (at + 1 < n) each(at + 1, to_f32(x[at + 1]), 1);
    }
  }
  /// Lane sums to one sum, in the order of kernels/cpu/lanes.h.
  FI_GLOBAL_FN static float join(float even, float odd) { return warp_reduce(even, Sum{}) + warp_reduce(odd, Sum{}); }
  /// f(b) for the statistics blocks, by whole warps.
  template <class F>
  FI_GLOBAL_FN static void each_block(int64_t n, F f) {
    for (int64_t b = warp_of_row(); b < stats_blocks(n); b += kWarps * blocks_of_row()) f(b);
  }

  FI_CALLED_FN void copy(float* to, const float* from, int64_t n) const {
    to = in_shared(to), from = in_shared(from);
    sync_threads();
#pragma unroll 1
    for (int64_t i = thread_x(); i < n; i += kThreads) to[i] = from[i];
    sync_threads();
  }
  FI_CALLED_FN float top_of(const float* tops, int64_t blocks) const {
    tops = in_shared(tops);
    float t = -kInf;
#pragma unroll 1
    for (int64_t b = lane(); b < blocks; b += 32) t = tops[b] > t ? tops[b] : t;
    return warp_reduce(t, Max{});
  }
  FI_CALLED_FN double total(const float* sums, int64_t blocks) const {
    sums = in_shared(sums);
    return by_one([&] {
      double t = 0;
      for (int64_t b = 0; b < blocks; ++b) t += static_cast<double>(sums[b]);
      return t;
    });
  }

  template <class T>
  FI_CALLED_FN void block_stats(const T* x, int64_t n, const BlockStats& s) const {
    x = in_global(x);
    float *const tops = in_shared(s.tops), *const sums = in_shared(s.sums);
    sync_row();
    each_block(n, [&](int64_t b) {
      float top = -kInf, sum[2] = {0.0f, 0.0f};
      pairs(x + b * kStatsBlock, length(n, b), [&](int, float v, int odd) {
        top = v > top ? v : top;
        sum[odd] += 0.0f > v ? 0.0f : v;  // keeps a NaN
      });
      top = warp_reduce(top, Max{});
      const float all = join(sum[0], sum[1]);
      tell(tops + b, top), tell(sums + b, all);
    });
    sync_row();
  }

  template <class T>
  FI_CALLED_FN Above above(const T* x, int64_t n, float value, const float* tops, float* sums) const {
    x = in_global(x), tops = in_shared(tops), sums = in_shared(sums);
    int64_t count = 0, before = 0;
    sync_row();
    each_block(n, [&](int64_t b) {
      float sum[2] = {0.0f, 0.0f};
      int found = 0;
      if (tops[b] > value)
        pairs(x + b * kStatsBlock, length(n, b), [&](int, float v, int odd) {
          found += v > value;
          sum[odd] += v > value && v > 0.0f ? v : 0.0f;
        });
      const float all = join(sum[0], sum[1]);
      count += warp_reduce(found, Sum{});
      tell(sums + b, all);
    });
    count = sum_of_warps(count, before);
    return {count, total(sums, stats_blocks(n))};
  }

  /// Scans the blocks, then the elements of the one that contains the target.
  template <class T>
  FI_CALLED_FN int64_t draw(const T* x, int64_t n, const float* sums, float low, double target) const {
    x = in_global(x), sums = in_shared(sums);
    struct Found {
      double before;
      int block, reached;
    };
    const Found found = by_one([&] {
      Found f{0, -1, 0};
      for (int b = 0; b < static_cast<int>(stats_blocks(n)); ++b) {
        if (!(sums[b] > 0.0f)) continue;
        f.block = b;
        f.reached = f.before + static_cast<double>(sums[b]) > target;
        if (f.reached) break;
        f.before += static_cast<double>(sums[b]);
      }
      return f;
    });
    if (found.block < 0) return -1;
    const int64_t begin = found.block * kStatsBlock;
    const int len = static_cast<int>(length(n, found.block));
    float* tile = reinterpret_cast<float*>(bins());
    for (int i = static_cast<int>(thread_x()); i < len; i += kThreads) tile[i] = to_f32(x[begin + i]);
    return by_one([&] {
      double before = found.before;
      int64_t last = -1;
      for (int i = 0; i < len; ++i) {
        const float v = tile[i];
        if (!(v > low)) continue;
        last = begin + i;
        before += static_cast<double>(v);
        if (found.reached && before > target) break;
      }
      return last;
    });
  }

  /// A warp has adjacent blocks: it counts the elements it keeps, gets its offset, and writes.
  template <class T>
  FI_CALLED_FN int64_t collect(const T* x, int64_t n, float bound, const float* tops, float* values,
                               uint32_t* positions) const {
    x = in_global(x), tops = in_shared(tops), values = in_global(values), positions = in_global(positions);
    const int64_t blocks = stats_blocks(n), share = ceil_div(blocks, kWarps * blocks_of_row());
    const int64_t first = warp_of_row() * share, last = first + share < blocks ? first + share : blocks;
    int kept = 0;
#pragma unroll 1
    for (int64_t b = first; b < last; ++b)
      if (!(tops[b] < bound)) pairs(x + b * kStatsBlock, length(n, b), [&](int, float v, int) { kept += v >= bound; });
    int64_t at = 0;
    const int64_t all = sum_of_warps(warp_reduce(kept, Sum{}), at);
#pragma unroll 1
    for (int64_t b = first; b < last; ++b) {
      if (tops[b] < bound) continue;
      const int64_t begin = b * kStatsBlock;
      const int len = static_cast<int>(length(n, b));
#pragma unroll 1
      for (int i = static_cast<int>(lane()); i - static_cast<int>(lane()) < len; i += 32) {
        const float v = i < len ? to_f32(x[begin + i]) : 0.0f;
        const uint32_t keep = ballot(i < len && v >= bound);
        const uint32_t below = keep & ((1u << lane()) - 1u);
        if (keep >> lane() & 1u) {
          values[at + count_bits(below)] = v;
          positions[at + count_bits(below)] = static_cast<uint32_t>(begin + i);
        }
        at += count_bits(keep);
      }
    }
    sync_row();
    return all;
  }

  template <class T>
  FI_CALLED_FN int64_t first_top(const T* x, int64_t n) const {
    x = in_global(x);
    uint64_t best = 0;
    for (int64_t i = cluster_rank() * kThreads + thread_x(); i < n; i += kThreads * blocks_of_row()) {
      const uint64_t key = cpu::element_key(to_f32(x[i]), i, false);
      best = key > best ? key : best;
    }
    return cpu::key_index(largest(best), false);
  }
  /// The largest key of all threads.
  FI_GLOBAL_FN uint64_t largest(uint64_t key) const {
#pragma unroll
    for (uint32_t d = 16; d > 0; d /= 2) {
      const uint64_t low = shuffle_xor_bits(static_cast<uint32_t>(key), d);
      const uint64_t high = shuffle_xor_bits(static_cast<uint32_t>(key >> 32), d);
      const uint64_t other = high << 32 | low;
      key = other > key ? other : key;
    }
    uint64_t* const of = slots() + 2;
    tell(of + warp_of_row(), key);
    sync_row();
#pragma unroll 1
    for (uint32_t w = 0; w < kWarps * blocks_of_row(); ++w) key = of[w] > key ? of[w] : key;
    sync_row();
    return key;
  }

  /// The k-th largest by the digits of its key, 11 + 11 + 10 bits, from the top. NaN is excluded; with fewer than k
  /// others, the least.
  template <class T>
  FI_CALLED_FN float kth_value(const T* x, int64_t n, const BlockStats& s, int64_t k, float*, uint32_t*) const {
    const float value = kth_value(in_global(x), n, in_shared(s.tops), k);
    sync_row();
    return value;
  }
  template <class T>
  FI_GLOBAL_FN float kth_value(const T* x, int64_t n, const float* tops, int64_t k) const {
    uint32_t prefix = 0, mask = 0;
#pragma unroll 1
    for (int pass = 0; pass < 3; ++pass) {
      const int shift = pass == 0 ? 21 : pass == 1 ? 10 : 0;
      const uint32_t digits = shift ? 2047u : 1023u;
      sync_threads();
#pragma unroll 1
      for (int i = static_cast<int>(thread_x()); i < kBins; i += kThreads) bins()[i] = 0;
      sync_threads();
      each_block(n, [&](int64_t b) {
        if (cpu::value_key(tops[b]) < prefix) return;
        pairs<4>(x + b * kStatsBlock, length(n, b), [&](int, float v, int) {
          const uint32_t key = cpu::value_key(v);
          if (key != 0 && (key & mask) == prefix) atomic_count(&bins()[key >> shift & digits], 1);
        });
      });
      add_bins();
      const Digit d = digit_of(k);
      if (d.bin < 0) return -kInf;  // all NaN
      k = d.left;
      prefix |= static_cast<uint32_t>(d.bin) << shift;
      mask |= digits << shift;
    }
    return cpu::key_value(prefix);
  }
  /// The bins of all blocks become their sum: each block adds up its share of them.
  FI_GLOBAL_FN void add_bins() const {
    const int blocks = static_cast<int>(blocks_of_row()), share = kBins / blocks;  // a power of two
    if (blocks == 1) return;
    sync_row();
#pragma unroll 1
    for (int i = static_cast<int>(thread_x()); i < share; i += kThreads) {
      uint32_t* const bin = bins() + static_cast<int>(cluster_rank()) * share + i;
      uint32_t all = 0;
#pragma unroll 1
      for (int r = 0; r < blocks; ++r) all += load_peer(bin, static_cast<uint32_t>(r));
#pragma unroll 1
      for (int r = 0; r < blocks; ++r) store_peer(bin, static_cast<uint32_t>(r), all);
    }
    sync_row();
  }
  struct Digit {
    int64_t left;  // the rank within the bin
    int bin;       // -1: all are empty
  };
  /// The bin of the k-th largest, or the lowest that is not empty. Warps add up their share, then one thread scans.
  FI_GLOBAL_FN Digit digit_of(int64_t k) const {
    constexpr int kShare = kBins / kWarps;
    sync_threads();
    uint32_t mine = 0;
#pragma unroll 1
    for (int i = static_cast<int>(lane()); i < kShare; i += 32)
      mine += bins()[warp() * kShare + static_cast<uint32_t>(i)];
    const int32_t of_warp = warp_reduce(static_cast<int32_t>(mine), Sum{});
    if (lane() == 0) slots()[2 + warp()] = static_cast<uint64_t>(of_warp);
    return by_one([&] {
      int w = kWarps - 1, lowest = -1;
#pragma unroll 1
      for (int i = kWarps - 1; i >= 0; --i) lowest = slots()[2 + i] ? i : lowest;
      if (lowest < 0) return Digit{0, -1};
#pragma unroll 1
      for (; w > lowest && static_cast<int64_t>(slots()[2 + w]) < k; --w) k -= static_cast<int64_t>(slots()[2 + w]);
      Digit d{k, -1};
#pragma unroll 1
      for (int b = w * kShare + kShare - 1; b >= w * kShare; --b) {
        if (!bins()[b]) continue;
        d = {k, b};
        if (static_cast<int64_t>(bins()[b]) >= k) return d;
        k -= static_cast<int64_t>(bins()[b]);
      }
      d.left = static_cast<int64_t>(bins()[d.bin]);  // fewer than k: the least of all
      return d;
    });
  }

  /// softmax_row.h: exponentials of blocks relative to their own maximum, then a factor for each block.
  template <class T>
  FI_CALLED_FN void softmax(const T* x, float* y, int64_t n, const BlockStats& s, float* factors) const {
    x = in_global(x), y = in_global(y), factors = in_shared(factors);
    float *const tops = in_shared(s.tops), *const sums = in_shared(s.sums);
    sync_row();
    each_block(n, [&](int64_t b) {
      const T* from = x + b * kStatsBlock;
      float* to = y + b * kStatsBlock;
      float top = -kInf, sum[2] = {0.0f, 0.0f};
      pairs(from, length(n, b), [&](int, float v, int) { top = v > top ? v : top; });
      top = warp_reduce(top, Max{});
      const float shift = top > -kInf ? top : 0.0f;
      pairs<2>(from, length(n, b), [&](int at, float v, int odd) {
        const float e = exp_exact(add_rn(v, -shift));
        to[at] = e;
        sum[odd] = add_rn(sum[odd], e);
      });
      const float all = join(sum[0], sum[1]);
      tell(tops + b, top), tell(sums + b, all);
    });
    sync_row();
    const int64_t blocks = stats_blocks(n);
    const float top = top_of(tops, blocks);
#pragma unroll 1
    for (int64_t b = thread_x(); b < blocks; b += kThreads)
      factors[b] = tops[b] > -kInf ? exp_exact(add_rn(tops[b], -top)) : 0.0f;
    const float inverse = by_one([&] {
      double sum = 0;
      for (int64_t b = 0; b < blocks; ++b)
        if (sums[b] != 0.0f)  // NaN too
          sum = add_rn(sum,
                       mul_rn(static_cast<double>(sums[b]), tops[b] > -kInf ? static_cast<double>(factors[b]) : 1.0));
      return sum == 0 ? 0.0f : static_cast<float>(1.0 / sum);
    });
    each_block(n, [&](int64_t b) {
      const float f = mul_rn(factors[b], inverse);
      if (f == 1.0f) return;
      float* to = y + b * kStatsBlock;
      pairs(to, length(n, b), [&](int at, float v, int) { to[at] = mul_rn(v, f); });
    });
    sync_row();
  }
};

}  // namespace flashinfer::cu
