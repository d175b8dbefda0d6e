// SPDX-License-Identifier: Apache-2.0
// What the decode kernels of the gated delta rule need to know. Strides are in elements.
#pragma once
#include <stdint.h>

#include "flashinfer/core/int_math.h"
#include "flashinfer/core/scalar.h"
#include "flashinfer/ops/linear_attention/kernels/common/indices.h"

namespace flashinfer {

struct GdnDecodeConfig {
  DType state;
  bool v_innermost;  // [K, V] instead of [V, K]
  short width;       // K when it is 64 or 128, else 0: any

  static constexpr const char* kName = "flashinfer::GdnDecodeConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("state", state);
    v("v_innermost", v_innermost);
    v("width", width);
  }
  friend constexpr bool operator==(const GdnDecodeConfig&, const GdnDecodeConfig&) = default;
};

/// Rows of tokens: [batch, tokens, heads, n], n contiguous.
struct GdnRows {
  const void* data;
  int64_t batch, token, head;
};
/// States: [slots, heads, V, K] or [slots, heads, K, V], the last axis contiguous.
struct GdnStates {
  void* data;  // null: there are none
  int64_t slot, head, row;
};
/// A task is `per_task` pairs of a batch row and a value head; with `rows_in_order` a value head with all batch rows,
/// the first one first, and `in` has the states that the rows read instead of slots.
struct GdnDecodeParams {
  int64_t batch, tokens, heads, value_heads, width, rows;  // K, V
  GdnRows q, k, v, a, b;
  DType input, dt_type, out_type;
  bool l2norm, rows_in_order;
  bool dots;  // products of bf16 states with bf16 inputs by the CPU's dot instruction
  const float* a_log;
  int64_t a_log_stride, dt_stride;
  const void* dt_bias;
  float scale;
  GdnStates in, out, after;
  GdnIndices read, write;
  int64_t after_token;         // stride of a token's states; 0: `after_slots` tells the slot
  const int32_t* after_slots;  // [batch, tokens]
  int64_t after_batch, after_step;
  void* result;
  int64_t result_batch, result_token, result_head;
  // The replay cache, at the slot that a row reads; null: none.
  bf16_t *raw_v, *raw_k;    // [slots, value_heads, tokens, V], [slots, heads, tokens, K]
  float *log_decay, *beta;  // [slots, value_heads, tokens]
  int64_t raw_v_slot, raw_v_head, raw_v_token, raw_k_slot, raw_k_head, raw_k_token, log_slot, log_head, beta_slot,
      beta_head;
  int64_t pairs, per_task;
  float* scratch;  // gdn_decode_scratch floats of this task
  // On a GPU, where the host does not read indices: slots of `in` and `out`, and of `after` by slots. An index at or
  // above them is none.
  int64_t slots, after_slot_count;
  bool wide;  // rows of q and k are 16-byte aligned
};

/// Floats of a task's scratch memory.
inline int64_t gdn_decode_scratch(int64_t tokens, int64_t width, int64_t rows) {
  const int64_t k = round_up(width, 32), v = round_up(rows, 32);
  return k + tokens * (3 * k + 2 * v + 32);  // a token's description takes less than 32 floats
}

}  // namespace flashinfer
