// SPDX-License-Identifier: Apache-2.0
// Software prefetch for the decode kernel.
#pragma once
#include "flashinfer/kernels/cpu/vec.h"
#include "flashinfer/ops/attention/params_decode.h"

namespace flashinfer::cpu::attention {
using namespace flashinfer::attention;

/// Lines that the next block will read, in the order in which they are asked for: four runs at a time, one line of each in turn.
/// One core gets 16-19 GB/s from one run of prefetches and 22-24 from four (Zen 4, pages of 64 KB in random order), as much as the
/// page sum. They are asked for at the rate at which the loops read, so that memory never idles: bursts fill the miss queue and
/// stall. To L2 (T1): the current block leaves no room in L1.
struct Lines {
  static constexpr int kMost = 2048, kRuns = 4 * kBlockKeys;
  const char* lines[kMost + 32];
  struct Run {
    const char* at;
    int64_t bytes;
  };
  Run runs[kRuns];
  int at = 0, count = 0, used = 0;

  void clear() { at = count = used = 0; }
  void add(const void* p, int64_t bytes) { runs[used++] = {static_cast<const char*>(p), bytes}; }
  /// After the last add. `idle`: any line in use, asked for when nothing is left, which costs less than a branch.
  void start(const void* idle) {
    const int quarter = (used + 3) / 4;
    for (int i = 0; i < quarter; ++i) {
      const char* from[4];
      int64_t bytes = 0;
      for (int j = 0; j < 4; ++j) {
        const Run& run = runs[i + j * quarter < used ? i + j * quarter : used - 1];
        from[j] = run.at;
        bytes = run.bytes > bytes ? run.bytes : bytes;
      }
      for (int64_t d = 0; d < bytes && count < kMost; d += 64, count += 4)
        for (int j = 0; j < 4; ++j) lines[count + j] = from[j] + d;
    }
    for (int j = 0; j < 32; ++j) lines[count + j] = static_cast<const char*>(idle);
  }
  /// N lines every D calls; `i` counts the calls.
  template <int N, int D>
  FI_VEC_INLINE void share(int64_t i) {
    if constexpr (N >= D) ask<N / D>();
    else if (i % (D / N) == 0) ask<1>();
  }
  template <int N>
  FI_VEC_INLINE void ask() {
    static_assert(N <= 32);
    const char* const* p = lines + at;
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) __builtin_prefetch(p[j], 0, 2);
    at = at + N < count ? at + N : count;
  }
};

}  // namespace flashinfer::cpu::attention
