// SPDX-License-Identifier: Apache-2.0
// Parallel loops over memory that one thread should read in order.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>

#include "flashinfer/core/context.h"

namespace flashinfer {
namespace detail {

/// Remaining indices of a range: its own thread takes the first, other threads the last.
class alignas(64) IndexRange {
 public:
  void assign(int64_t begin, int64_t end) { left_.store(pack(begin, end), std::memory_order_relaxed); }
  /// Takes an index into *i; false when the range is empty.
  bool take(bool first, int64_t* i) {
    uint64_t s = left_.load(std::memory_order_relaxed);
    for (;;) {
      const int64_t begin = static_cast<int64_t>(s >> 32), end = static_cast<int64_t>(s & 0xffffffff);
      if (begin >= end) return false;
      *i = first ? begin : end - 1;
      if (left_.compare_exchange_weak(s, first ? pack(begin + 1, end) : pack(begin, end - 1),
                                      std::memory_order_relaxed))
        return true;
    }
  }

 private:
  static uint64_t pack(int64_t begin, int64_t end) {
    return static_cast<uint64_t>(begin) << 32 | static_cast<uint64_t>(end);
  }
  std::atomic<uint64_t> left_{0};
};

}  // namespace detail

/// Runs f(i) for i in [0, n) as parallel_for does, but every thread processes its own contiguous range in order, so
/// that the data prefetched at one index is read next by the same thread. Idle threads steal from the ends of other
/// ranges, which are not prefetched yet. Tasks may therefore be small (a claim costs some ns), and threads end
/// together.
template <class F>
void parallel_for_ordered(int64_t n, F&& f) {
  constexpr int64_t kMostThreads = 64;
  const int64_t threads = Context::current().executor.threads;
  if (n <= threads || threads > kMostThreads || n > INT64_C(0xffffffff)) return parallel_for(n, f);
  std::array<detail::IndexRange, kMostThreads> ranges;
  for (int64_t t = 0; t < threads; ++t) ranges[static_cast<size_t>(t)].assign(n * t / threads, n * (t + 1) / threads);
  parallel_for(threads, [&](int64_t t) {
    for (int64_t turn = 0, i = 0; turn < threads; ++turn)
      while (ranges[static_cast<size_t>((t + turn) % threads)].take(turn == 0, &i)) f(i);
  });
}

}  // namespace flashinfer
