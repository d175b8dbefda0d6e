// SPDX-License-Identifier: Apache-2.0
// Products of f32 matrices in scratch memory, by FMA.
#pragma once
#include "flashinfer/ops/attention/kernels/cpu/tile.h"
#include "flashinfer/ops/linear_attention/kernels/common/transpose.h"

namespace flashinfer::cpu::linear {

/// How the n terms of an element are added: one after the other, or in parts of 32 terms whose sums are added. The
/// error of a chain grows with its length: over 128 terms, that of the parts is half as large, and they take a tenth
/// longer.
enum class Sums { kChain, kParts };

/// c[rows][columns] (+)= a[rows][n] b[n][columns] in parts; rows <= kMaxRows.
__attribute__((noinline)) inline void multiply_parts(int64_t rows, const float* a, int64_t lda, const float* b,
                                                     int64_t ldb, float* c, int64_t ldc, int64_t n, int64_t columns,
                                                     bool add) {
  constexpr int64_t kPart = 32, kStrip = 64;
  alignas(64) float sums[attention::kMaxRows * kStrip];
  const auto cells = [](const float* p) { return reinterpret_cast<const uint32_t*>(p); };
  for (int64_t j = 0; j < columns; j += kStrip)
    for (int64_t k = 0; k < n; k += kPart) {
      const int64_t wide = columns - j < kStrip ? columns - j : kStrip, terms = n - k < kPart ? n - k : kPart;
      attention::product_rows<false>(rows, cells(a + k), lda, cells(b + k * ldb + j), ldb, sums, kStrip, terms, wide,
                                     false);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t e = 0; e < wide; e += Vec::kLanes) {
          float* const to = c + r * ldc + j + e;
          const Vec sum = load(sums + r * kStrip + e);
          store(to, k || add ? load(to) + sum : sum);
        }
    }
}
/// c[m][columns] (+)= a[m][n] b[n][columns] of f32; columns a multiple of 32.
inline void multiply(int64_t m, const float* a, int64_t lda, const float* b, int64_t ldb, float* c, int64_t ldc,
                     int64_t n, int64_t columns, bool add, Sums sums = Sums::kChain) {
  const auto cells = [](const float* p) { return reinterpret_cast<const uint32_t*>(p); };
  for (int64_t i = 0; i < m; i += attention::kMaxRows) {
    const int64_t rows = m - i < attention::kMaxRows ? m - i : attention::kMaxRows;
    if (sums == Sums::kParts)
      multiply_parts(rows, a + i * lda, lda, b, ldb, c + i * ldc, ldc, n, columns, add);
    else
      attention::product_rows<false>(rows, cells(a + i * lda), lda, cells(b), ldb, c + i * ldc, ldc, n, columns, add);
  }
}
/// c[m][columns] += a[m][m] b[m][columns] of the lower triangle of `a`, with its diagonal or, when b is c, without:
/// then row i takes the rows above it as they have become. In blocks of rows: what lies left of the diagonal block is a
/// product. The rest goes row by row, so that no row meets a later one, whose NaN times 0 would be NaN.
inline void multiply_lower(int64_t m, const float* a, int64_t lda, const float* b, float* c, int64_t ldc,
                           int64_t columns, Sums sums = Sums::kChain) {
  constexpr int64_t kBlock = 12, L = Vec::kLanes;
  const int64_t diagonal = b == c ? 0 : 1;
  for (int64_t first = 0; first < m; first += kBlock) {
    const int64_t end = first + kBlock < m ? first + kBlock : m;
    if (first) multiply(end - first, a + first * lda, lda, b, ldc, c + first * ldc, ldc, first, columns, true, sums);
    for (int64_t j = 0; j < columns; j += 2 * L)
      for (int64_t i = first; i < end; ++i) {
        Vec x = load(c + i * ldc + j), y = load(c + i * ldc + j + L);
        for (int64_t r = first; r < i + diagonal; ++r) {
          const Vec by = splat(a[i * lda + r]);
          x = fma(by, load(b + r * ldc + j), x), y = fma(by, load(b + r * ldc + j + L), y);
        }
        store(c + i * ldc + j, x), store(c + i * ldc + j + L, y);
      }
  }
}

}  // namespace flashinfer::cpu::linear
