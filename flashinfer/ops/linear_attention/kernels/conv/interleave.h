// SPDX-License-Identifier: Apache-2.0
// Rows of a few elements of 16 or 32 bits, as states and filters of some taps are stored, to arrays and back. 64 bytes
// of each array take N - 1 shuffles of two vectors (vpermt2w and vpermt2d with AVX-512); Clang has no
// __builtin_shuffle.
#pragma once
#include <stdint.h>
#include <string.h>

namespace flashinfer::cpu {

/// The word of this size.
template <int Bytes>
struct WordOf {
  using type = uint32_t;
};
template <>
struct WordOf<2> {
  using type = uint16_t;
};

#if !defined(__clang__)
template <class W>
struct Words {
  typedef W Vector __attribute__((vector_size(64)));
  static constexpr int kLanes = 64 / static_cast<int>(sizeof(W));
  static Vector load(const W* p) {
    Vector v;
    memcpy(&v, p, sizeof v);
    return v;
  }
  /// Lane j: lane `from(j)` of the N vectors side by side.
  template <int N, class From>
  static inline __attribute__((always_inline)) Vector gather(const Vector (&v)[N], From from) {
    Vector r = v[0];
#pragma GCC unroll 4
    for (int i = 1; i < N; ++i) {
      Vector lanes;
#pragma GCC unroll 32
      for (int j = 0; j < kLanes; ++j) {
        const int at = from(j);
        const bool first = i == 1 && at < kLanes;
        lanes[j] = static_cast<W>(first ? at : at / kLanes == i ? at % kLanes + kLanes : j);
      }
      r = __builtin_shuffle(r, v[i], lanes);
    }
    return r;
  }
};
#endif

/// part[k][i] = rows[N * i + k] for i < n.
template <int N, class W>
inline void split_rows(const W* rows, int64_t n, W* const (&part)[N]) {
  int64_t i = 0;
#if !defined(__clang__)
  using V = Words<W>;
  for (; i + V::kLanes <= n; i += V::kLanes) {
    typename V::Vector v[N];
#pragma GCC unroll 4
    for (int k = 0; k < N; ++k) v[k] = V::load(rows + N * i + k * V::kLanes);
#pragma GCC unroll 4
    for (int k = 0; k < N; ++k) {
      const typename V::Vector r = V::gather(v, [k](int j) { return N * j + k; });
      memcpy(part[k] + i, &r, sizeof r);
    }
  }
#endif
  for (; i < n; ++i)
    for (int k = 0; k < N; ++k) part[k][i] = rows[N * i + k];
}

/// rows[N * i + k] = part[k][i] for i < n.
template <int N, class W>
inline void join_rows(const W* const (&part)[N], int64_t n, W* rows) {
  int64_t i = 0;
#if !defined(__clang__)
  using V = Words<W>;
  for (; i + V::kLanes <= n; i += V::kLanes) {
    typename V::Vector v[N];
#pragma GCC unroll 4
    for (int k = 0; k < N; ++k) v[k] = V::load(part[k] + i);
#pragma GCC unroll 4
    for (int m = 0; m < N; ++m) {
      const typename V::Vector r = V::gather(v, [m](int j) {
        const int at = V::kLanes * m + j;
        return at % N * V::kLanes + at / N;
      });
      memcpy(rows + N * i + m * V::kLanes, &r, sizeof r);
    }
  }
#endif
  for (; i < n; ++i)
    for (int k = 0; k < N; ++k) rows[N * i + k] = part[k][i];
}

}  // namespace flashinfer::cpu
