// SPDX-License-Identifier: Apache-2.0
// Copies of many rows into pages. glibc's memcpy of a row of 2 KB goes backwards when source and destination lie alike
// within 4 KB, as rows and pages of powers of two do: 0.47 of the rate of large copies, where a plain loop reaches 1.0
// and stores that pass the caches 1.2.
#pragma once
#include <cstdint>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace flashinfer::ops {

/// Rows that together exceed this are not wanted in the caches: half of what a server core's share of L3 holds.
inline constexpr int64_t kStreamBytes = int64_t{16} << 20;

class RowCopy {
 public:
  /// `total`: bytes of the whole operation.
  explicit RowCopy(int64_t total) : stream_(total >= kStreamBytes) {}
  void operator()(char* to, const char* from, int64_t n) const {
    int64_t i = 0;
#if defined(__SSE2__)
    if (stream_ && reinterpret_cast<uintptr_t>(to) % 16 == 0) {
      for (; i + 64 <= n; i += 64)
        for (int64_t j = i; j < i + 64; j += 16)
          _mm_stream_si128(reinterpret_cast<__m128i*>(to + j),
                           _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + j)));
    }
    for (; i + 64 <= n; i += 64) {
      __m128i x[4];
      for (int j = 0; j < 4; ++j) x[j] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i) + j);
      for (int j = 0; j < 4; ++j) _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i) + j, x[j]);
      asm volatile("" ::: "memory");  // else the compiler makes a call of memcpy of the loop
    }
#endif
    if (i < n) std::memcpy(to + i, from + i, static_cast<size_t>(n - i));
  }
  /// After the last row of a task: stores that pass the caches become visible in no order by themselves.
  void finish() const {
#if defined(__SSE2__)
    if (stream_) _mm_sfence();
#endif
  }

 private:
  bool stream_;
};

}  // namespace flashinfer::ops
