// SPDX-License-Identifier: Apache-2.0
// Addresses for ldmatrix in swizzled tiles of shared memory (mma.h), without an exclusive-or for each.
#pragma once
#include <stdint.h>

#include "flashinfer/kernels/cuda/cu.h"

namespace flashinfer::cu {

/// Where a lane reads its row of a tile, in steps of one or two pieces. The swizzle of kPieces >= 8 flips bits of the
/// piece within its group of 8, the same ones in rows 8 apart: four addresses serve a whole tile, all others are a
/// constant away.
template <uint32_t kPieces>
struct LaneRow {
  const char* row;
  uint32_t flips;  // of the piece, in bytes
  /// `odd`: the lane reads the second piece of a step.
  FI_GLOBAL_FN LaneRow(const void* tile, uint32_t r, uint32_t odd)
      : row(static_cast<const char*>(tile) + r * kPieces * 16), flips(((r & 7) ^ odd) * 16) {
    static_assert(kPieces % 8 == 0);
  }
  /// Step i (of 4) of a group of pieces (a multiple of 8), `rows` rows further (a multiple of 8).
  FI_GLOBAL_FN const void* at(uint32_t rows, uint32_t group, uint32_t i) const {
    return row + (flips ^ i * 32) + (rows * kPieces + group) * 16;
  }
  /// Piece i, `rows` rows further (a multiple of 8).
  FI_GLOBAL_FN const void* piece(uint32_t rows, uint32_t i) const {
    return row + (flips ^ i % 8 * 16) + (rows * kPieces + i / 8 * 8) * 16;
  }
};

}  // namespace flashinfer::cu
