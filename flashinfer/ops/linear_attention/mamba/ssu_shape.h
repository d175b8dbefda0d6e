// SPDX-License-Identifier: Apache-2.0
// The forms of selective_state_update's arguments, brought to one: what its launch, its checks and its reference read.
#pragma once
#include "flashinfer/op/call.h"
#include "flashinfer/ops/linear_attention/mamba/selective_state_update.h"

namespace flashinfer::ops::linear_attention {

struct SsuForm {
  TensorView state;          // [P, nh, dim, ds]
  TensorView x, dt, z, out;  // [rows, T, nh, dim]; packed sequences: [1, tokens, nh, dim]
  TensorView b, c;           // [rows, T, ng, ds]
  TensorView a, d, dt_bias;  // [nh, dim, ds], [nh, dim]
  int64_t sequences = 0, heads = 0, dim = 0, dstate = 0, groups = 0, slots = 0;
  int64_t steps = 0;    // tokens of the longest sequence
  bool packed = false;  // cu_seqlens
};
/// ValueError that names the argument and both shapes.
SsuForm ssu_form(const SelectiveStateUpdate& a);

/// What a sequence does; -1: none.
struct SsuSequence {
  int64_t row, first, tokens;  // its tokens are [row, first .. first + tokens)
  int64_t read, write, cache;  // slots of the pool, row of the intermediate states
};
SsuSequence ssu_sequence(const SelectiveStateUpdate& a, const SsuForm& f, int64_t i);
/// The slot that takes the state after token t of sequence i, -1: none. For dst_state_batch_indices [b, T] only.
int64_t ssu_dst(const SelectiveStateUpdate& a, int64_t i, int64_t t);
bool ssu_dst_each_token(const SelectiveStateUpdate& a);
/// What the op's table cannot say; throws.
void check(const SelectiveStateUpdate& a);

}  // namespace flashinfer::ops::linear_attention
