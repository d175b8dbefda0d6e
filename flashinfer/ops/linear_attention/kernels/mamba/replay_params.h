// SPDX-License-Identifier: Apache-2.0
// What the kernel that replays cached tokens needs to know.
#pragma once
#include <stdint.h>

#include "flashinfer/ops/linear_attention/kernels/mamba/ssu_params.h"

namespace flashinfer {

struct ReplayConfig {
  DType state, io;  // of the states (f32, f16, bf16, int8, e4m3); of x, B, C, z, out

  static constexpr const char* kName = "flashinfer::ReplayConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("state", state);
    v("io", io);
  }
  friend constexpr bool operator==(const ReplayConfig&, const ReplayConfig&) = default;
};

struct ReplayRow {
  int64_t row, first, tokens;  // new tokens: `first` ones from row `row` of x
  int64_t read, write;         // slots of states; write takes the state after the old tokens, -1: none
  int64_t start, replay;       // the old tokens: rows of the ring of slot `read`
};
/// [slots, heads or groups, ring, n]; strides in elements.
struct ReplayRing {
  void* data;
  int64_t slot, head, token;
};

inline constexpr int64_t kReplayTokens = 32;  // at most 16 old and 16 new ones

struct ReplayParams {
  const ReplayRow* rows;
  int64_t count, heads, heads_per_group, dim, dstate, ring;
  int64_t per_task;
  bool in_order, softplus;  // in_order: sequences share slots: a task is a head, its sequences one after the other
  SsuPool state;
  ReplayRing x_cache, b_cache, dt_cache;
  SsuOperand x, dt, z, out, b, c;  // of b and c, `head` is between groups
  SsuOperand a, d, dt_bias;        // no rows; one number a head (d: an element)
  uint64_t seed;
  int64_t rounds;  // of random rounding of f16 states, 0: to nearest even
  float* scratch;
};

/// Floats of ReplayParams::scratch.
constexpr int64_t replay_scratch(int64_t dim, int64_t dstate) {
  return kReplayTokens * (2 * (dstate + 32) + 2 * (dim + 32) + 2) + dstate + dim + 64;
}

}  // namespace flashinfer
