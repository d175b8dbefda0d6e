// SPDX-License-Identifier: Apache-2.0
// Products of matrices in scratch memory: of f32 by FMA, of bf16 by dots of pairs.
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
/// Whether dots of bf16 are faster than FMA of f32. With AMX they would need its tiles' registers, whose set-up costs
/// more than these small products.
#if defined(__AVX512BF16__) && !defined(FI_CPU_AMX)
inline constexpr bool kFastPairs = true;
#else
inline constexpr bool kFastPairs = false;
#endif
/// c[i][j] = the sum of a[i][..] b[..][j] for j <= i < m, of n cells of two bf16, whose products are exact. A few
/// elements behind the diagonal are written, too.
inline void multiply_pairs_lower(int64_t m, const float* a, int64_t lda, const float* b, int64_t ldb, float* c,
                                 int64_t ldc, int64_t n) {
  if constexpr (kFastPairs) {
    constexpr int64_t kRows = attention::kMaxRows;
    const auto cells = [](const float* p) { return reinterpret_cast<const uint32_t*>(p); };
    for (int64_t i = 0; i < m; i += kRows) {
      const int64_t rows = m - i < kRows ? m - i : kRows;
      attention::product_rows<true>(rows, cells(a + i * lda), lda, cells(b), ldb, c + i * ldc, ldc, n,
                                    round_up(i + rows, 32), false);
    }
  }
}
/// The diagonal block of multiply_lower: rows [0, Rows) of c, and of b, whose elements are in the block's columns of a.
/// Rows are in registers: without the diagonal a row waits for the one above it, but not for memory.
template <int Rows, int Vecs, bool Diagonal>
FI_VEC_INLINE void multiply_diagonal(const float* a, int64_t lda, const float* b, float* c, int64_t ldc) {
  constexpr int64_t L = Vec::kLanes;
  Vec x[Rows][Vecs];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int e = 0; e < Vecs; ++e) x[i][e] = load(c + i * ldc + e * L);
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
    Vec y[Vecs];
#pragma GCC unroll 4
    for (int e = 0; e < Vecs; ++e) y[e] = Diagonal ? load(b + r * ldc + e * L) : x[r][e];
#pragma GCC unroll 16
    for (int i = Diagonal ? r : r + 1; i < Rows; ++i) {
      const Vec by = splat(a[i * lda + r]);
#pragma GCC unroll 4
      for (int e = 0; e < Vecs; ++e) x[i][e] = fma(by, y[e], x[i][e]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int e = 0; e < Vecs; ++e) store(c + i * ldc + e * L, x[i][e]);
}
template <int Rows, bool Diagonal>
inline void multiply_diagonals(const float* a, int64_t lda, const float* b, float* c, int64_t ldc, int64_t columns) {
  for (int64_t j = 0; j < columns; j += 2 * Vec::kLanes)
    multiply_diagonal<Rows, 2, Diagonal>(a, lda, b + j, c + j, ldc);
}
/// c[m][columns] += a[m][m] b[m][columns] of the lower triangle of `a`: with its diagonal, or without, when b is c and
/// row i takes the rows above it as they have become. In blocks of rows: what lies left of the diagonal block is a
/// product. No row meets a later one, whose NaN times 0 would be NaN.
template <bool Diagonal>
inline void multiply_lower(int64_t m, const float* a, int64_t lda, const float* b, float* c, int64_t ldc,
                           int64_t columns, Sums sums = Sums::kChain) {
  constexpr int64_t kBlock = 12;
  for (int64_t first = 0; first < m; first += kBlock) {
    const int64_t end = first + kBlock < m ? first + kBlock : m;
    if (first) multiply(end - first, a + first * lda, lda, b, ldc, c + first * ldc, ldc, first, columns, true, sums);
    for (int64_t i = first, rows; i < end; i += rows) {  // the last block has fewer rows; sums are the same
      rows = end - i >= kBlock ? kBlock : end - i >= 8 ? 8 : end - i >= 4 ? 4 : 1;
      const float* const at = a + i * lda;
      float* const to = c + i * ldc;
      if (i > first) multiply(rows, at + first, lda, b + first * ldc, ldc, to, ldc, i - first, columns, true);
      const float* const from = b + i * ldc;
      switch (rows) {
        case kBlock: multiply_diagonals<kBlock, Diagonal>(at + i, lda, from, to, ldc, columns); break;
        case 8: multiply_diagonals<8, Diagonal>(at + i, lda, from, to, ldc, columns); break;
        case 4: multiply_diagonals<4, Diagonal>(at + i, lda, from, to, ldc, columns); break;
        default: multiply_diagonals<1, Diagonal>(at + i, lda, from, to, ldc, columns);
      }
    }
  }
}

}  // namespace flashinfer::cpu::linear
