// SPDX-License-Identifier: Apache-2.0
// Mamba's step for draft tokens without a state after each: the tokens since the state are kept in a ring and replayed.
#pragma once
#include <optional>
#include <string>

#include "flashinfer/core/tensor.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// Extents: P slots, b sequences, T tokens, nh heads, ng groups of heads, L rows of a ring, ds elements of a row of the
/// state. For each sequence: S = its state after the k = prev_num_accepted_tokens rows of the ring from ring_start on
/// (modulo L); then its new tokens as in selective_state_update give `out`. If k + T > W = L - T, S after the k old
/// tokens is stored; else the state stays as it is. x, B and the step (f32, with dt_bias and softplus) of new token i
/// go to row (ring_start + k + i) % L; nothing else of the ring changes, and the caller advances ring_start and k.
///
/// A, dt, dt_bias are one number a head: strides of 0 or extents of 1 behind it. int8 and e4m3 states have a scale a
/// row of ds: stored is S * largest / max |S|, to nearest even or, of e4m3 with rand_seed, up with the probability of
/// the part cut off (16 bits of Philox for each element). A sequence with pad_slot_id gives 0 and touches
/// nothing. AssertionError: W > 16, or T > W. ValueError: what does not fit together, a slot that the pool does not
/// have, ring_start outside [0, L), k outside [0, W], NaN in A, dt_bias or the dt of new and replayed tokens.
struct CheckpointingSsu {
  TensorView state;                     // [P, nh, dim, ds] f32|bf16|f16|int8|e4m3. Updated
  TensorView x_cache;                   // [P, nh, L, dim] dtype of x. Updated
  TensorView B_cache;                   // [P, ng, L, ds] dtype of x. Updated
  TensorView dt_cache;                  // [P, nh, L] f32. Updated
  TensorView ring_start;                // [P] int32
  TensorView prev_num_accepted_tokens;  // [P] int32
  TensorView x;                         // [b, T, nh, dim] f32|f16|bf16; [1, tokens, nh, dim] with cu_seqlens
  TensorView dt;                        // [b, T, nh, dim or 1]
  TensorView A;                         // [nh, dim, ds]
  TensorView B, C;                      // [b, T, ng, ds] dtype of x
  std::optional<TensorView> out;        // as x
  std::optional<TensorView> D;          // [nh, dim]
  std::optional<TensorView> z;          // as x
  std::optional<TensorView> dt_bias;    // [nh, dim or 1]
  bool dt_softplus = false;
  std::optional<TensorView> state_batch_indices;  // [b] int32|int64; absent: sequence i has slot i
  int64_t pad_slot_id = -1;
  std::optional<TensorView> state_scale;  // [P, nh, dim] f32, of int8 and e4m3 states. Updated
  std::optional<TensorView> rand_seed;    // [1] int64: f16 and e4m3 states are rounded with random bits
  int64_t philox_rounds = 10;
  std::optional<int64_t> d_split;        // without effect, as are those below max_seqlen
  std::optional<TensorView> cu_seqlens;  // [b + 1] int32
  std::optional<int64_t> max_seqlen;     // of the sequences: T; with cu_seqlens alone
  bool enable_pdl = false;
  std::optional<TensorView> cb_scaled, cumAdt_vec, cb_old;
  int64_t precompute_heads_per_cta = 0;
  std::string algorithm = "auto";
};
Tensor checkpointing_ssu(const CheckpointingSsu& args);

/// One layer of replayssm_materialize, which is Python: slot dst_slots[i] takes the state of src_slots[i] after the
/// first replay_prefix_len[i] rows of its ring from ring_start[i] on; 0 copies it as it is. A request with pad_slot_id
/// as one of the two is passed over. Not in FlashInfer.
struct ReplaySsmMaterializeLayer {
  TensorView state;      // [P, nh, dim, ds] f32|bf16|f16|int8|e4m3. Updated
  TensorView x_cache;    // [P2, nh, L, dim] f32|f16|bf16
  TensorView B_cache;    // [P2, ng, L, ds] dtype of x_cache
  TensorView dt_cache;   // [P2, nh, L] f32
  TensorView A;          // [nh] f32|f16|bf16
  TensorView src_slots;  // [b] int32|int64, as the next three
  TensorView dst_slots;
  TensorView ring_start;
  TensorView replay_prefix_len;  // at most 16
  std::optional<TensorView> state_scale;
  int64_t pad_slot_id = -1;
  std::optional<TensorView> rand_seed;
  int64_t philox_rounds = 10;
};
void replayssm_materialize_layer(const ReplaySsmMaterializeLayer& args);

}  // namespace flashinfer

#pragma GCC visibility pop
