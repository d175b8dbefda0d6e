// SPDX-License-Identifier: Apache-2.0
// Products of small bf16 matrices in scratch memory. The right operand is in cells, [k / 2][columns] of pairs of bf16;
// the left one is rows of bf16, whose pairs along k are cells as well.
#pragma once
#include "flashinfer/kernels/cpu/tile.h"

namespace flashinfer::cpu {

/// c[6][64] (+)= a[6][n cells] b[n cells][64]; leading dimensions in cells.
inline void multiply_cells(const uint32_t* a, int64_t lda, const uint32_t* b, int64_t ldb, float* c, int64_t ldc,
                           int64_t n, bool add) {
#if defined(FI_CPU_TILE_ASM) && defined(__AVX512BF16__)
  tile_6x4<true>(a, lda, b, ldb, c, ldc, n, add);
#else
  for (int r = 0; r < 6; ++r)
    for (int64_t j = 0; j < 64; j += Vec::kLanes) {
      Vec sum = add ? load(c + r * ldc + j) : zero();
      for (int64_t k = 0; k < n; ++k)
        sum = dot_pairs(sum, splat_pair(reinterpret_cast<const bf16_t*>(a + r * lda + k)),
                        load_pairs(reinterpret_cast<const bf16_t*>(b + k * ldb + j)));
      store(c + r * ldc + j, sum);
    }
#endif
}

/// c[rows][columns] (+)= a b for rows in sixes and columns in 64s. Triangle: row i of a is 0 from element i + 1 on.
template <bool Triangle = false>
inline void multiply_blocks(const uint32_t* a, int64_t lda, const uint32_t* b, float* c, int64_t rows, int64_t columns,
                            int64_t n, bool add) {
  for (int64_t j = 0; j < columns; j += 64)
    for (int64_t r = 0; r < rows; r += 6) {
      const int64_t cells = Triangle && r / 2 + 3 < n ? r / 2 + 3 : n;
      multiply_cells(a + r * lda, lda, b + j, columns, c + r * columns + j, columns, cells, add);
    }
}

/// cells[c] = (even[c], odd[c]) for c < n.
inline void join_cells(const bf16_t* even, const bf16_t* odd, int64_t n, uint32_t* cells) {
  const uint16_t *const e = reinterpret_cast<const uint16_t*>(even), *const o = reinterpret_cast<const uint16_t*>(odd);
  for (int64_t c = 0; c < n; ++c) cells[c] = e[c] | static_cast<uint32_t>(o[c]) << 16;
}
/// The same of f32 values, rounded.
inline void join_cells(const float* even, const float* odd, int64_t n, uint32_t* cells) {
#if defined(__AVX512BF16__) && defined(__AVX512BW__)
  alignas(64) static constexpr uint16_t kOrder[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const __m512i order = _mm512_load_si512(kOrder);
  for (int64_t c = 0; c < n; c += Vec::kLanes) {
    const __m512bh both = _mm512_cvtne2ps_pbh(load(odd + c).r, load(even + c).r);
    _mm512_storeu_si512(cells + c, _mm512_permutexvar_epi16(order, reinterpret_cast<__m512i>(both)));
  }
  return;
#endif
  for (int64_t c = 0; c < n; c += Vec::kLanes) {
    alignas(64) bf16_t e[Vec::kLanes], o[Vec::kLanes];
    write_tail(e, load(even + c), Vec::kLanes);
    write_tail(o, load(odd + c), Vec::kLanes);
    join_cells(e, o, Vec::kLanes, cells + c);
  }
}

}  // namespace flashinfer::cpu
