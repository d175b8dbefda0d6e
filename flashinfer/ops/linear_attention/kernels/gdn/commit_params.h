// SPDX-License-Identifier: Apache-2.0
// What the kernel that commits a replay cache needs to know. Strides are in elements.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

inline constexpr int64_t kGdnCommitWidth = 128;  // K and V

struct GdnCommitConfig {
  short width;

  static constexpr const char* kName = "flashinfer::GdnCommitConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("width", width);
  }
  friend constexpr bool operator==(const GdnCommitConfig&, const GdnCommitConfig&) = default;
};

struct GdnCommitParams {
  int64_t layers, batch, heads, value_heads;
  float* states;
  int64_t layer, slot, head, row;
  const bf16_t *raw_v, *raw_k;
  int64_t v_layer, v_slot, v_head, v_token, k_layer, k_slot, k_head, k_token;
  const float *log_decay, *beta;
  int64_t g_layer, g_slot, g_head, beta_layer, beta_slot, beta_head;
  const int32_t *slots, *accepted, *track_slots, *track_steps;  // the last two may be null
  int64_t slots_stride, accepted_stride, track_slots_stride, track_steps_stride;
  int64_t null_slot;
  bool l2norm;
  int64_t pool, tokens;  // slots; tokens of the cache
  bool wide;             // rows of raw_k are 16-byte aligned
  float* scratch;        // gdn_commit_scratch floats of this task
};
inline int64_t gdn_commit_scratch(int64_t tokens) { return 3 * kGdnCommitWidth + tokens * (32 + 3 * kGdnCommitWidth); }

}  // namespace flashinfer
