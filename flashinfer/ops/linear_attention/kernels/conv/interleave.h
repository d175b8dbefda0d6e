// SPDX-License-Identifier: Apache-2.0
// Rows of a few elements of 16 or 32 bits, as states and filters of some taps are stored, to arrays and back, without
// AVX-512 (tap_rows.h). The compiler vectorises these loops.
#pragma once
#include <stdint.h>

namespace flashinfer::cpu {

/// part[k][i] = rows[N * i + k] for i < n.
template <int N, class W>
inline void split_rows(const W* __restrict rows, int64_t n, W* const (&part)[N]) {
  W* const __restrict p0 = part[0];
  W* const __restrict p1 = part[N > 1 ? 1 : 0];
  W* const __restrict p2 = part[N > 2 ? 2 : 0];
  W* const __restrict p3 = part[N > 3 ? 3 : 0];
  for (int64_t i = 0; i < n; ++i) {
    p0[i] = rows[N * i];
    if (N > 1) p1[i] = rows[N * i + 1];
    if (N > 2) p2[i] = rows[N * i + 2];
    if (N > 3) p3[i] = rows[N * i + 3];
  }
}

/// rows[N * i + k] = part[k][i] for i < n.
template <int N, class W>
inline void join_rows(const W* const (&part)[N], int64_t n, W* __restrict rows) {
  const W* const __restrict p0 = part[0];
  const W* const __restrict p1 = part[N > 1 ? 1 : 0];
  const W* const __restrict p2 = part[N > 2 ? 2 : 0];
  for (int64_t i = 0; i < n; ++i) {
    rows[N * i] = p0[i];
    if (N > 1) rows[N * i + 1] = p1[i];
    if (N > 2) rows[N * i + 2] = p2[i];
  }
}

}  // namespace flashinfer::cpu
