// SPDX-License-Identifier: Apache-2.0
// What the prefill kernels of the gated delta rule need to know. Strides are in elements.
#pragma once
#include <stdint.h>

#include "flashinfer/core/int_math.h"
#include "flashinfer/core/scalar.h"
#include "flashinfer/ops/linear_attention/kernels/common/channel_chunk_params.h"

namespace flashinfer {

inline constexpr int64_t kGdnChunk = 64;  // tokens of a chunk

struct GdnChunkConfig {
  short width;  // of kernels with rows of the state in registers: K when it is 64 or 128, else 0: any

  static constexpr const char* kName = "flashinfer::GdnChunkConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("width", width);
  }
  friend constexpr bool operator==(const GdnChunkConfig&, const GdnChunkConfig&) = default;
};

/// [tokens, heads, n] or [tokens, heads].
struct GdnPacked {
  const void* data;  // null: absent
  DType type;
  int64_t token, head, heads;
};
/// [slots, heads, V, K], K contiguous.
struct GdnStateTensor {
  void* data;  // null: absent
  DType type;
  int64_t slot, head, row;
};
struct GdnOffsets {
  const void* data;
  int64_t stride;
  bool wide;

  int64_t at(int64_t i) const {
    return wide ? static_cast<const int64_t*>(data)[i * stride] : static_cast<const int32_t*>(data)[i * stride];
  }
};

/// A task is a head of a sequence.
struct GdnChunkParams {
  int64_t heads, width, rows, updates;   // K, V; updates of the state a token
  GdnPacked q, k, v, gate, beta, write;  // write: of value channels, with gates of channels
  void* out;
  DType out_type;
  int64_t out_token, out_head;
  bool l2norm, keep_empty;  // keep_empty: rows of output_state of empty sequences are the caller's
  float scale;
  GdnOffsets sequences, slots;  // slots.data null: sequence n has slot n
  GdnStateTensor in, final, checkpoints;
  GdnOffsets checkpoint_starts;
  int64_t every;   // tokens between checkpoints; 0: none
  float* scratch;  // gdn_chunk_scratch floats of this task
  // On a GPU, where the host does not read indices: slots of `in` and `final`, and rows of `checkpoints`. An index that
  // is outside is none.
  int64_t in_slots, final_slots, checkpoint_rows;
  int32_t count;  // sequences
  bool wide;      // rows of q, k, gates and keys' gates are 16-byte aligned
};

inline int64_t gdn_chunk_scratch(bool channels, int64_t width, int64_t rows) {
  const int64_t k = round_up(width, 32), v = round_up(rows, 32);
  if (channels) return channel_chunk_floats(width, rows) + k + v;
  return k * v + kGdnChunk * (3 * k + 3 * k / 2 + 3 * v + 2 * kGdnChunk + 8) + 64;
}

}  // namespace flashinfer
