// SPDX-License-Identifier: Apache-2.0
// Rows of three 16-bit elements, as the states of filters of width 4 are stored, to three arrays and back: 32 rows take
// 6 shuffles of two vectors (vpermt2w with AVX-512).
#pragma once
#include <stdint.h>
#include <string.h>

namespace flashinfer::cpu {

using Words32 = uint16_t __attribute__((vector_size(64)));
inline Words32 load_words(const void* p) {
  Words32 v;
  memcpy(&v, p, sizeof v);
  return v;
}

/// part[k][i] = rows[3 * i + k] for i < n.
inline void split_rows_of_3(const uint16_t* rows, int64_t n, uint16_t* const (&part)[3]) {
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const Words32 a = load_words(rows + 3 * i), b = load_words(rows + 3 * i + 32), c = load_words(rows + 3 * i + 64);
#pragma GCC unroll 3
    for (int k = 0; k < 3; ++k) {
      Words32 first, second;
#pragma GCC unroll 32
      for (int j = 0; j < 32; ++j) {
        const int from = 3 * j + k;
        first[j] = static_cast<uint16_t>(from < 64 ? from : 0);
        second[j] = static_cast<uint16_t>(from < 64 ? j : from - 32);
      }
      const Words32 r = __builtin_shuffle(__builtin_shuffle(a, b, first), c, second);
      memcpy(part[k] + i, &r, sizeof r);
    }
  }
  for (; i < n; ++i)
    for (int k = 0; k < 3; ++k) part[k][i] = rows[3 * i + k];
}

/// rows[3 * i + k] = part[k][i] for i < n.
inline void join_rows_of_3(const uint16_t* const (&part)[3], int64_t n, uint16_t* rows) {
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const Words32 a = load_words(part[0] + i), b = load_words(part[1] + i), c = load_words(part[2] + i);
#pragma GCC unroll 3
    for (int m = 0; m < 3; ++m) {
      Words32 first, second;
#pragma GCC unroll 32
      for (int j = 0; j < 32; ++j) {
        const int at = 32 * m + j, row = at / 3, k = at % 3;
        first[j] = static_cast<uint16_t>(k == 1 ? 32 + row : row);
        second[j] = static_cast<uint16_t>(k == 2 ? 32 + row : j);
      }
      const Words32 r = __builtin_shuffle(__builtin_shuffle(a, b, first), c, second);
      memcpy(rows + 3 * i + 32 * m, &r, sizeof r);
    }
  }
  for (; i < n; ++i)
    for (int k = 0; k < 3; ++k) rows[3 * i + k] = part[k][i];
}

}  // namespace flashinfer::cpu
