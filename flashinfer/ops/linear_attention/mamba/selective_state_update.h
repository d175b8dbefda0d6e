// SPDX-License-Identifier: Apache-2.0
// The step of Mamba's state-space layers: one or several tokens of each sequence, with states in a pool.
#pragma once
#include <optional>
#include <string>

#include "flashinfer/core/tensor.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// Extents: P slots, b sequences, T tokens, nh heads, ng groups of heads, ds elements of a row of the state.
struct SelectiveStateUpdate {
  TensorView state;  // [P, nh, dim, ds] f32|f16|bf16|int16, slots at any stride; [P, dim, ds]: one head. Updated
  TensorView x;     // [b, nh, dim] f32|f16|bf16; [b, dim]: one head; [b, T, nh, dim]; [tokens, nh, dim] with cu_seqlens
  TensorView dt;    // the shape of x, dim may be 1; any strides. One number a head is fastest, of A and dt_bias, too
  TensorView A;     // [nh, dim, ds] f32, any strides, extents may be 1; at most 0 for a state that does not grow
  TensorView B, C;  // [b, (T,) ng, ds] dtype of x; head h uses group h * ng / nh
  TensorView D;     // [nh, dim] dtype of dt, any strides, extents may be 1
  std::optional<TensorView> z;                    // the shape and dtype of x
  std::optional<TensorView> dt_bias;              // as D, of any float
  bool dt_softplus = false;                       // softplus of dt + dt_bias (above 20: itself)
  std::optional<TensorView> state_batch_indices;  // [b] or [b, columns] int32|int64; absent: sequence i has slot i
  int64_t pad_slot_id = -1;                       // slot of a padded sequence: computed as if its state were 0
  std::optional<TensorView> state_scale;          // int16 states: [P, nh, dim] f32 decode scales. Updated
  std::optional<TensorView> out;                  // as x
  bool disable_state_update = false;              // nothing is written to the pool
  std::optional<TensorView> intermediate_states_buffer;  // [n, >= T, nh, dim, ds]: the state after each token
  std::optional<TensorView> intermediate_state_indices;  // [b] its rows; absent: the sequences' slots
  std::optional<TensorView> intermediate_state_scales;   // [n, >= T, nh, dim] f32, of int16 states
  std::optional<TensorView> rand_seed;                   // [1] int64: f16 states are rounded with random bits
  int64_t philox_rounds = 10;                            // of the generator
  int64_t cache_steps = 0;                            // longest sequence; at least 1 with cu_seqlens or several tokens
  std::string algorithm = "auto";                     // a hint for GPUs
  std::optional<TensorView> dst_state_batch_indices;  // one token: [b] the slot written; several: [b, T], one a token
  std::optional<TensorView> cu_seqlens;               // [b + 1]: sequences of different lengths, one after the other
  std::optional<TensorView> num_accepted_tokens;      // [b]: sequence i starts from column max(it - 1, 0) of its slots
  std::string backend = "auto";
};
/// For each token, with dt' = dt + dt_bias (softplus of it): S = S e^(A dt') + dt' x B; y = sum over ds of S C, + D x,
/// times silu(z). y reads S in f32; S is rounded when it is stored, after the last token. int16: a row of ds elements
/// is stored as S * 32767 / max |S|, to nearest even.
///
/// Random rounding of f16 states: element e of the destination (counted without gaps) after token t takes the low 13
/// bits of word e' % 4 of Philox4x32(key rand_seed, counter e' / 4), e' = e + t * P * nh * dim * ds.
///
/// Sequences that share a slot are computed one after the other, in their order. ValueError: shapes, dtypes and options
/// that do not fit together; a slot outside the pool that is not pad_slot_id; on the CPU also NaN in dt_bias, in the dt
/// of a sequence with a slot, or in an A that does not differ along ds. TypeError: a seed that is not int64.
Tensor selective_state_update(const SelectiveStateUpdate& args);

}  // namespace flashinfer

#pragma GCC visibility pop
