// SPDX-License-Identifier: Apache-2.0
// What benchmark programs share: clocks, medians, and the limits of the machine, measured beside what is compared with
// them.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <vector>

#include "flashinfer/core/context.h"

namespace flashinfer::bench {

inline double seconds(const auto& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}
inline double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

/// Reading and copying `bytes`, a multiple of kChunk, on all threads.
inline constexpr int64_t kChunk = 65536;
inline void read_all(const void* from, int64_t bytes) {
  typedef int64_t Wide __attribute__((vector_size(64), aligned(64), may_alias));
  parallel_for(bytes / kChunk, [&](int64_t i) {
    const Wide* p = reinterpret_cast<const Wide*>(static_cast<const char*>(from) + i * kChunk);
    Wide s[4] = {};
    for (int64_t j = 0; j < kChunk / 64; j += 4)
      for (int k = 0; k < 4; ++k) s[k] ^= p[j + k];
    const Wide all = s[0] ^ s[1] ^ s[2] ^ s[3];
    asm volatile("" : : "m"(all));
  });
}

inline void copy_all(void* to, const void* from, int64_t bytes) {
  parallel_for(bytes / kChunk, [&](int64_t i) {
    std::memcpy(static_cast<char*>(to) + i * kChunk, static_cast<const char*>(from) + i * kChunk, kChunk);
  });
}

// ---- arithmetic peaks: 12 independent chains in registers, in asm, so that no compiler spills them ----
#if defined(__x86_64__)
#define FI_PEAK(MULTIPLY)                                                                                       \
  asm volatile("1:\n" MULTIPLY " %%zmm12, %%zmm13, %%zmm0\n" MULTIPLY " %%zmm12, %%zmm13, %%zmm1\n" MULTIPLY    \
               " %%zmm12, %%zmm13, %%zmm2\n" MULTIPLY " %%zmm12, %%zmm13, %%zmm3\n" MULTIPLY                    \
               " %%zmm12, %%zmm13, %%zmm4\n" MULTIPLY " %%zmm12, %%zmm13, %%zmm5\n" MULTIPLY                    \
               " %%zmm12, %%zmm13, %%zmm6\n" MULTIPLY " %%zmm12, %%zmm13, %%zmm7\n" MULTIPLY                    \
               " %%zmm12, %%zmm13, %%zmm8\n" MULTIPLY " %%zmm12, %%zmm13, %%zmm9\n" MULTIPLY                    \
               " %%zmm12, %%zmm13, %%zmm10\n" MULTIPLY " %%zmm12, %%zmm13, %%zmm11\n dec %0\n jnz 1b\n"         \
               : "+r"(n)                                                                                        \
               :                                                                                                \
               : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
                 "xmm11", "xmm12", "xmm13")
/// FLOP/s of all threads by BF16 dot products or by f32 FMAs; 0 where the CPU has no such instruction.
inline double peak(bool dot) {
  if (dot ? !__builtin_cpu_supports("avx512bf16") : !__builtin_cpu_supports("avx512f")) return 0;
  constexpr int64_t kLoops = 1 << 18;
  const int64_t parts = 4 * Context::current().executor.threads;
  const double time = seconds([&] {
    parallel_for(parts, [&](int64_t) {
      int64_t n = kLoops;
      asm volatile("vpxor %%xmm12, %%xmm12, %%xmm12\n vpxor %%xmm13, %%xmm13, %%xmm13\n" ::: "xmm12", "xmm13");
      if (dot)
        FI_PEAK("vdpbf16ps");
      else
        FI_PEAK("vfmadd231ps");
    });
  });
  return static_cast<double>(parts * kLoops) * 12.0 * (dot ? 64.0 : 32.0) / time;
}
#undef FI_PEAK
#else
inline double peak(bool) { return 0; }
#endif
inline double dot_peak() { return peak(true); }
inline double fma_peak() { return peak(false); }

}  // namespace flashinfer::bench
