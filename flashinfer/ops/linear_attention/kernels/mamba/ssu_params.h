// SPDX-License-Identifier: Apache-2.0
// What the kernels of state-space models are compiled for and launched with.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

struct SsuConfig {
  DType state, io;  // of the states (f32, f16, bf16, i16); of x, B, C, z, out
  bool one_decay;   // A and dt are one number a head: no exponential an element

  static constexpr const char* kName = "flashinfer::SsuConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("state", state);
    v("io", io);
    v("one_decay", one_decay);
  }
  friend constexpr bool operator==(const SsuConfig&, const SsuConfig&) = default;
};

/// A sequence of the call. Slots are -1 where there is nothing to read (the state is 0) or to write.
struct SsuRow {
  int64_t row, tokens;  // its first row of x, in units of SsuOperand::row
  int64_t read, write;  // slots of the pool; `write` takes the last state
  int64_t cache;        // row of the intermediate states
};

/// A tensor of tokens or heads. Element [r, t, h, d] is at row * r + step * t + head * h + dim * d.
struct SsuOperand {
  const void* data;  // null: absent
  int64_t row, step, head, dim;
  DType dtype;
};

/// A pool of states; strides in elements.
struct SsuPool {
  void* data;
  int64_t slot, step, head, dim;  // step: between the tokens of a row of intermediate states
  float* scale;                   // of int16 states: [slot, (step,) head, dim]
  int64_t scale_slot, scale_step, scale_head, scale_dim;
  int64_t flat_slot, flat_step;  // elements of a slot and of a step when rows are counted without gaps (random numbers)
};

/// Tokens that a kernel works on at a time: their B and C stay in the L1 and L2 caches.
inline constexpr int64_t kSsuTokens = 32;

struct SsuParams {
  const SsuRow* rows;
  const int64_t* dst;  // [sequences, dst_stride] the slot of the state after each token, -1: none; or null
  int64_t dst_stride;
  int64_t sequences, heads, dim, dstate, heads_per_group;
  int64_t units_per_task;
  bool in_order;  // sequences share slots: a task does all sequences of its heads, one after the other
  bool softplus;
  bool dots;                              // products of bf16 states with a bf16 C by the CPU's dot instruction
  SsuPool source, pool, cache, dst_pool;  // what `read`, `write`, `cache` and `dst` are slots of
  float dt_min, dt_max;                   // of dt with its bias, after softplus
  SsuOperand x, dt, z, out, b, c;         // of b and c, `head` is between groups
  SsuOperand a, d, dt_bias;               // no rows; of a, `row` is between the elements of the state
  // Stochastic rounding of f16 states; 0 rounds: to nearest even.
  uint64_t seed;
  int64_t rounds, step_elements;  // step_elements: elements of the pool, which separate the tokens' random numbers
  float* scratch;                 // of the task
};

/// Floats of SsuParams::scratch.
constexpr int64_t ssu_scratch(int64_t dim, int64_t dstate) {
  const int64_t row = dstate + 16;
  return kSsuTokens * (2 * row + 2 * dim + 2) + dim * row + 3 * row + 2 * dim + 64;
}

}  // namespace flashinfer
