// SPDX-License-Identifier: Apache-2.0
// What the kernels around the recurrence of a fused KDA decode step need to know. Strides are in elements.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

struct KdaFusedConfig {
  DType dtype;  // of inputs and outputs

  static constexpr const char* kName = "flashinfer::KdaFusedConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
  }
  friend constexpr bool operator==(const KdaFusedConfig&, const KdaFusedConfig&) = default;
};

struct KdaFusedRow {
  int64_t first, tokens;
  int64_t slot;  // of the inputs before; -1: the sequence is passed over
  int64_t at;    // the position of the oldest of these
};

inline constexpr int64_t kKdaFusedChannels = 128;  // of a task of the convolution

struct KdaFusedParams {
  const KdaFusedRow* rows;  // sequences
  int64_t count, tokens, channels;
  // The convolution: x [tokens, 3 channels], weight [3, 4, channels], out [tokens, 3 channels] without gaps.
  const void* x;
  int64_t x_row;
  const float* weight;
  void* state;
  int64_t state_slot, state_channel, state_token;
  void* out;
  // The norm: result [tokens, heads, width], in place; gate [tokens, heads, width].
  void* result;
  int64_t result_row, result_head, heads, width;
  const void* gate;
  int64_t gate_row, gate_head;
  const float* norm_weight;
  const bool* active;  // [tokens]
  float eps;
  int64_t per_task;
};

}  // namespace flashinfer
