// SPDX-License-Identifier: Apache-2.0
// Transposition of matrices of 4-byte elements in scratch memory.
#pragma once
#include "flashinfer/kernels/cpu/gemm_pack.h"

namespace flashinfer::cpu::linear {

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
