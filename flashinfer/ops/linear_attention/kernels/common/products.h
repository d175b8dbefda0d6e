// SPDX-License-Identifier: Apache-2.0
// Products of f32 matrices in scratch memory, by FMA.
#pragma once
#include "flashinfer/kernels/cpu/gemm_pack.h"
#include "flashinfer/ops/attention/kernels/cpu/tile.h"

namespace flashinfer::cpu::linear {

/// c[m][columns] (+)= a[m][n] b[n][columns] of f32; columns a multiple of 32.
inline void multiply(int64_t m, const float* a, int64_t lda, const float* b, int64_t ldb, float* c, int64_t ldc,
                     int64_t n, int64_t columns, bool add) {
  const auto cells = [](const float* p) { return reinterpret_cast<const uint32_t*>(p); };
  for (int64_t i = 0; i < m; i += attention::kMaxRows) {
    const int64_t rows = m - i < attention::kMaxRows ? m - i : attention::kMaxRows;
    attention::product_rows<false>(rows, cells(a + i * lda), lda, cells(b), ldb, c + i * ldc, ldc, n, columns, add);
  }
}
/// c[m][columns] += a[m][m] b[m][columns] of the lower triangle of `a`, with its diagonal or, when b is c, without:
/// then row i takes the rows above it as they have become. In blocks of rows: what lies left of the diagonal block is a
/// product. The rest goes row by row, so that no row meets a later one, whose NaN times 0 would be NaN.
inline void multiply_lower(int64_t m, const float* a, int64_t lda, const float* b, float* c, int64_t ldc,
                           int64_t columns) {
  constexpr int64_t kBlock = 12, L = Vec::kLanes;
  const int64_t diagonal = b == c ? 0 : 1;
  for (int64_t first = 0; first < m; first += kBlock) {
    const int64_t end = first + kBlock < m ? first + kBlock : m;
    if (first) multiply(end - first, a + first * lda, lda, b, ldc, c + first * ldc, ldc, first, columns, true);
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
/// to[j][i] = from[i][j]; rows and columns multiples of 16.
inline void transpose(const float* from, int64_t from_row, int64_t rows, int64_t columns, float* to, int64_t to_row) {
#if defined(__AVX512F__)
  alignas(64) float tile[16 * 16];
  for (int64_t i = 0; i < rows; i += 16)
    for (int64_t j = 0; j < columns; j += 16) {
      cpu::detail::transpose_16x16(from + i * from_row + j, from_row * 4, tile);
      for (int64_t r = 0; r < 16; ++r) store(to + (j + r) * to_row + i, load(tile + r * 16));
    }
#else
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) to[j * to_row + i] = from[i * from_row + j];
#endif
}

}  // namespace flashinfer::cpu::linear
