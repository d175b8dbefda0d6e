// SPDX-License-Identifier: Apache-2.0
// Operands of mma.sync from bf16 matrices in shared memory, rows of kPieces 16-byte pieces (piece_index), and f32
// values as sums of two bf16, whose products are exact to about 2^-16.
#pragma once
#include "flashinfer/kernels/cuda/convert.h"
#include "flashinfer/kernels/cuda/mma.h"

namespace flashinfer::cu::linear {

/// Index of a 16-byte piece in shared rows of kPieces pieces. The 8 rows of a matrix fall into 8 different bank groups,
/// as with swizzle (mma.h); the row's bits are reversed, so that stores of whole 32 bytes of 4 neighbouring rows, and
/// of 64 of 2, meet no bank twice either.
template <uint32_t kPieces>
FI_GLOBAL_FN constexpr uint32_t piece_index(uint32_t row, uint32_t piece) {
  if constexpr (kPieces >= 8)
    return row * kPieces + (piece ^ ((row & 1u) << 2 | (row & 2u) | (row >> 2 & 1u)));
  else
    return swizzle<kPieces>(row, piece);
}
template <int kPieces>
FI_GLOBAL_FN const bf16_t* piece_at(const bf16_t* m, uint32_t row, uint32_t piece) {
  return m + piece_index<kPieces>(row, piece) * 8;
}
/// A from rows: 16 x 16 at (row, 8 piece).
template <int kPieces>
FI_GLOBAL_FN Frag4 a_rows(const bf16_t* m, uint32_t row, uint32_t piece) {
  return load_matrix4(piece_at<kPieces>(m, row + lane() / 8 % 2 * 8 + lane() % 8, piece + lane() / 16));
}
/// A from columns: A[i][j] is element (row + j, 8 piece + i).
template <int kPieces>
FI_GLOBAL_FN Frag4 a_columns(const bf16_t* m, uint32_t row, uint32_t piece) {
  return load_matrix4_transposed(piece_at<kPieces>(m, row + lane() / 16 * 8 + lane() % 8, piece + lane() / 8 % 2));
}
/// B of two neighbouring 8-column tiles from rows: B[k][n] is element (row + n, 8 piece + k).
template <int kPieces>
FI_GLOBAL_FN Frag4 b_rows(const bf16_t* m, uint32_t row, uint32_t piece) {
  return load_matrix4(piece_at<kPieces>(m, row + lane() / 16 * 8 + lane() % 8, piece + lane() / 8 % 2));
}
/// The same from columns: B[k][n] is element (row + k, 8 piece + n).
template <int kPieces>
FI_GLOBAL_FN Frag4 b_columns(const bf16_t* m, uint32_t row, uint32_t piece) {
  return load_matrix4_transposed(piece_at<kPieces>(m, row + lane() / 8 % 2 * 8 + lane() % 8, piece + lane() / 16));
}
/// Two neighbouring tiles of an accumulator += a b.
FI_GLOBAL_FN void mma_pair(Acc& left, Acc& right, Frag4 a, Frag4 b) {
  left = mma<bf16_t>(a, Frag2{{b.r[0], b.r[1]}}, left);
  right = mma<bf16_t>(a, Frag2{{b.r[2], b.r[3]}}, right);
}

FI_GLOBAL_FN float low_part(float x) { return x - to_f32(from_f32<bf16_t>(x)); }
struct Split {
  Frag4 high, low;

  /// Register i: two neighbouring elements.
  FI_GLOBAL_FN void set(int i, float x, float y) {
    high.r[i] = pack2<bf16_t>(x, y), low.r[i] = pack2<bf16_t>(low_part(x), low_part(y));
  }
};
/// Two neighbouring tiles of an accumulator as A.
FI_GLOBAL_FN Split split(const Acc& left, const Acc& right) {
  const Acc* const tile[2] = {&left, &right};
  Split s;
#pragma unroll
  for (int i = 0; i < 4; ++i) s.set(i, tile[i / 2]->r[i % 2 * 2], tile[i / 2]->r[i % 2 * 2 + 1]);
  return s;
}
/// acc[j] += the rows `row` .. + 16 of a times the rows at + 8 j .. + 8 of b, for j < tiles (an even number); K of 8
/// kPieces.
template <int kPieces, int N>
FI_GLOBAL_FN void multiply_rows(Acc (&acc)[N], const bf16_t* a, uint32_t row, const bf16_t* b, uint32_t at,
                                uint32_t tiles) {
#pragma unroll 2
  for (uint32_t k = 0; k < kPieces; k += 2) {
    const Frag4 left = a_rows<kPieces>(a, row, k);
#pragma unroll
    for (uint32_t j = 0; j < N; j += 2)
      if (j < tiles) mma_pair(acc[j], acc[j + 1], left, b_rows<kPieces>(b, at + 8 * j, k));
  }
}
/// acc += left times the rows `row` .. + 16 of m, of 8 N columns.
template <int kPieces, int N>
FI_GLOBAL_FN void add_outer(Acc (&acc)[N], const Split& left, const bf16_t* m, uint32_t row) {
#pragma unroll
  for (uint32_t j = 0; j < N; j += 2) {
    const Frag4 right = b_columns<kPieces>(m, row, j);
    mma_pair(acc[j], acc[j + 1], left.low, right);
    mma_pair(acc[j], acc[j + 1], left.high, right);
  }
}
template <int N>
FI_GLOBAL_FN void clear(Acc (&acc)[N]) {
#pragma unroll
  for (Acc& x : acc) x = Acc{};
}

}  // namespace flashinfer::cu::linear
