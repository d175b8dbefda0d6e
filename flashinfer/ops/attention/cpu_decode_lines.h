// SPDX-License-Identifier: Apache-2.0
// Software prefetch for the decode kernel.
#pragma once
#include "flashinfer/kernels/cpu/vec.h"
#include "flashinfer/ops/attention/params_decode.h"

namespace flashinfer::cpu::attention {
using namespace flashinfer::attention;

/// Memory that the next block will read, as runs of lines. Asked for at the rate at which the loops read, so that memory never
/// idles: bursts fill the miss queue and stall. To L2 (T1): the current block leaves no room in L1.
struct Lines {
  struct Run {
    const char *at, *end;
  };
  Run runs[2 * kBlockKeys + 1];
  const char *at = nullptr, *end = nullptr;
  int64_t step = 0;  // 0 when there is nothing left: then one line is asked for again and again, which costs less than a branch
  int next = 0, count = 0;

  void clear() { next = count = 0; }
  void add(const void* p, int64_t bytes) {
    const char* c = static_cast<const char*>(p);
    if (count && runs[count - 1].end == c) runs[count - 1].end = c + bytes;
    else runs[count++] = {c, c + bytes};
  }
  /// After the last add. `idle`: any line that is in use anyway.
  void start(const void* idle) {
    runs[count] = {static_cast<const char*>(idle), nullptr};
    turn();
  }
  FI_VEC_INLINE void turn() {
    at = runs[next].at, end = runs[next].end;
    step = next == count ? 0 : 64;
    if (next == count) end = at + (int64_t{1} << 40);
    else ++next;
  }
  template <int N>
  FI_VEC_INLINE void ask() {
    if (__builtin_expect(end - at >= N * 64, 1)) {
#pragma GCC unroll 16
      for (int i = 0; i < N; ++i) __builtin_prefetch(at + i * 64, 0, 2);
      at += N * step;
      return;
    }
#pragma GCC unroll 1
    for (int i = 0; i < N; ++i) {  // no call: it would spill all accumulators
      if (at >= end) turn();
      __builtin_prefetch(at, 0, 2);
      at += step;
    }
  }
};

}  // namespace flashinfer::cpu::attention
