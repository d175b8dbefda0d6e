// SPDX-License-Identifier: Apache-2.0
// Software prefetch for the decode kernel.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cpu/vec.h"
#include "flashinfer/ops/attention/kernels/decode_params.h"

namespace flashinfer::cpu::attention {
using namespace flashinfer::attention;

/// Cache lines of the next block, in prefetch order: four runs at a time, one line of each in turn. One core gets 16-19
/// GB/s from one run of prefetches and 22-24 from four (Zen 4, pages of 64 KB in random order), as much as a plain sum
/// over the pages. Prefetches are issued at the rate at which the loops read, so that memory never idles: bursts fill
/// the miss queue and stall. Into L2 (T1): the current block leaves no room in L1.
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
  /// Appends the lines of the runs added since the last call. Runs of one call should have the same length.
  void list() {
    const int quarter = ceil_div(used, 4);
    for (int i = 0; i < quarter; ++i) {
      const Run* r[4];
      bool even = true;
      for (int j = 0; j < 4; ++j) {
        const int at = i + j * quarter;
        r[j] = &runs[at < used ? at : used - 1];
        even &= at < used && r[j]->bytes == r[0]->bytes;
      }
      if (even)
        list_four(r[0]->at, r[1]->at, r[2]->at, r[3]->at, r[0]->bytes);
      else
        for (int j = 0; j < 4 && i + j * quarter < used; ++j)
          for (int64_t d = 0; d < r[j]->bytes && count < kMost; d += 64) lines[count++] = r[j]->at + d;
    }
    used = 0;
  }
  /// One store for four lines: memory idles while the list is built.
  FI_VEC_INLINE void list_four(const char* a, const char* b, const char* c, const char* d, int64_t bytes) {
    typedef int64_t Four __attribute__((vector_size(32)));
    Four from = {reinterpret_cast<int64_t>(a), reinterpret_cast<int64_t>(b), reinterpret_cast<int64_t>(c),
                 reinterpret_cast<int64_t>(d)};
    const int64_t most = (kMost - count) / 4, n = ceil_div(bytes, 64);
    const char** to = lines + count;
    for (int64_t i = 0; i < (n < most ? n : most); ++i, from += 64, to += 4) memcpy(to, &from, 32);
    count = static_cast<int>(to - lines);
  }
  /// Called after the last add. `idle`: any line in use, prefetched when the list is exhausted, which costs less than a
  /// branch.
  void start(const void* idle) {
    if (used > 0) list();
    for (int j = 0; j < 32; ++j) lines[count + j] = static_cast<const char*>(idle);
  }
  /// Prefetches N lines every D calls; `i`: the number of the call.
  template <int N, int D>
  FI_VEC_INLINE void share(int64_t i) {
    if constexpr (N >= D)
      issue_prefetch<N / D>();
    else if (i % (D / N) == 0)
      issue_prefetch<1>();
  }
  template <int N>
  FI_VEC_INLINE void issue_prefetch() {
    static_assert(N <= 32);
    const char* const* p = lines + at;
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) __builtin_prefetch(p[j], 0, 2);
    at = at + N < count ? at + N : count;
  }
};

}  // namespace flashinfer::cpu::attention
