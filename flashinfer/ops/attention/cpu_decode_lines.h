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
  int next = 0, count = 0;

  void clear() { at = end = nullptr, next = count = 0; }
  void add(const void* p, int64_t bytes) {
    const char* c = static_cast<const char*>(p);
    if (count && runs[count - 1].end == c) runs[count - 1].end = c + bytes;
    else runs[count++] = {c, c + bytes};
  }
  template <int N>
  FI_VEC_INLINE void ask() {
    if (__builtin_expect(end - at >= N * 64, 1)) {
#pragma GCC unroll 16
      for (int i = 0; i < N; ++i) __builtin_prefetch(at + i * 64, 0, 2);
      at += N * 64;
      return;
    }
    refill(N);
  }
  __attribute__((noinline)) void refill(int n) {
    for (; n > 0; --n) {
      if (at >= end) {
        if (next >= count) return;
        at = runs[next].at, end = runs[next].end, ++next;
      }
      __builtin_prefetch(at, 0, 2);
      at += 64;
    }
  }
};

}  // namespace flashinfer::cpu::attention
