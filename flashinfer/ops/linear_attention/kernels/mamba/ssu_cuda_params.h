// SPDX-License-Identifier: Apache-2.0
// What the GPU's kernel of selective_state_update is launched with: the host does not read indices there.
#pragma once
#include "flashinfer/ops/linear_attention/kernels/common/indices.h"
#include "flashinfer/ops/linear_attention/kernels/mamba/ssu_params.h"

namespace flashinfer {

/// Indices of rows and columns, int32 or int64; data null: absent.
struct SsuIndices {
  GdnIndices rows;
  int64_t column;  // stride; 0: there is one column

  int64_t at(int64_t i, int64_t j) const {
    const int64_t place = i * rows.stride + j * column;
    return rows.wide ? static_cast<const int64_t*>(rows.data)[place] : static_cast<const int32_t*>(rows.data)[place];
  }
};

/// A slot that is `pad`, negative or at or above those of its pool is none: such a sequence is computed as if its state
/// were 0, and nothing is written.
struct SsuCudaParams {
  SsuParams call;  // without what the host makes of indices
  int64_t steps, pad, slots, cache_rows, columns;
  bool updates, dst_each_token, wide;  // wide: rows of b and c are 16-byte aligned
  SsuIndices lengths, read, dst, cache_row, accepted;
  const int64_t* seed;  // null: states are rounded to nearest even
  // Whole sequences (ssd_chunk_scan): sequence i starts from row i of `source` (zeros without it) and ends in row i of
  // `pool`, if there is one; the state before token checkpoint_token.at(i), if it is one of the sequence or the first
  // behind it, goes to slot checkpoint_slot.at(i) of `dst_pool`.
  bool whole;
  SsuIndices checkpoint_token, checkpoint_slot;
  int64_t checkpoint_slots;
};

}  // namespace flashinfer
