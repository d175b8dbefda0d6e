// SPDX-License-Identifier: Apache-2.0
// What the kernel of the delta rule with a decay of each key channel (KDA) needs to know. Strides are in elements.
#pragma once
#include <stdint.h>

#include "flashinfer/core/int_math.h"
#include "flashinfer/core/scalar.h"
#include "flashinfer/ops/linear_attention/kernels/common/channel_chunk_params.h"
#include "flashinfer/ops/linear_attention/kernels/common/indices.h"

namespace flashinfer {

struct KdaConfig {
  DType state;
  bool one_block;  // every sequence has fewer than kChannelChunk tokens and a state: rows go from pool to pool
  short width;     // K when it is 64 or 128, else 0: any
  short caches;    // 1: corrections, keys and gates of the tokens are stored

  static constexpr const char* kName = "flashinfer::KdaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("state", state);
    v("one_block", one_block);
    v("width", width);
    v("caches", caches);
  }
  friend constexpr bool operator==(const KdaConfig&, const KdaConfig&) = default;
};

/// [tokens, heads, n], n contiguous.
struct KdaRows {
  const void* data;
  int64_t token, head;
};
struct KdaStates {
  void* data;
  int64_t slot, head, row;
};
struct KdaSequence {
  int64_t first, tokens;
  int64_t read, write;  // slots; -1: none
  bool skip;            // no state to read: results are 0, nothing is written
};
enum class KdaGate : int { kNone, kSoftplus, kBounded };

struct KdaParams {
  const KdaSequence* sequences;
  int64_t count, heads, value_heads, width, rows;  // K, V
  KdaRows q, k, v, g, beta, out;
  DType input, out_type;
  bool l2norm, beta_is_logit, in_order;
  KdaGate gate;
  const float *a_log, *dt_bias;  // [heads], [heads, K]
  int64_t a_log_stride;
  float scale, lower_bound;
  KdaStates in, state, after;  // `in.data` null: sequences start from zeros
  const int64_t* after_slots;  // [tokens]: the slot of `after` for the state after a token, -1: none; or null
  KdaStates corrections, kg;   // [slots, heads, tokens, V] f32, [slots, heads, tokens, 2 K] of `input`; row: of a token
  int64_t per_task;
  float* scratch;
};

/// On a GPU, where the host does not read indices: tokens sequences.at(n) .. sequences.at(n + 1) are sequence n, which
/// starts from slot read.at(n) (below 0: results are 0, nothing is written) and ends in write.at(n). Without write.data
/// that is the slot that was read. An index at or above the slots of its pool is none.
struct KdaCudaParams {
  KdaParams call;                  // without what the host makes of indices
  int64_t tokens;                  // of q; results behind the last sequence are 0
  bool updates, wide, wide_cache;  // rows of q, k, g and dt_bias, and both halves of kg's, are 16-byte aligned
  bool chunks;                     // sequences of at least kChannelCudaTokens tokens have a kernel of their own
  GdnIndices sequences, read, write, after;  // after.data null: no states after tokens
  int64_t in_slots, state_slots, after_slots;
  int64_t cache_slots, cache_tokens;  // of `corrections` and `kg`; 0: there are none. What is beyond them is left out
};

/// Floats of a task's scratch memory.
inline int64_t kda_scratch(bool one_block, int64_t width, int64_t rows) {
  const int64_t k = round_up(width, 32), v = round_up(rows, 32);
  return k + kChannelChunk * (4 * k + 2 * v + 32) + (one_block ? 0 : channel_chunk_floats(width, rows));
}

}  // namespace flashinfer
