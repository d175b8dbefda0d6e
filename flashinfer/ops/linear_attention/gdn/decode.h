// SPDX-License-Identifier: Apache-2.0
// The gated delta rule, a token or a few at a time. Every value head h has a state S[V, K] and, for each token,
//   x = a + dt_bias,  decay = exp(-exp(A_log) softplus(x)),  beta = sigmoid(b)
//   S <- decay S;  S <- S + beta (v - S k) k^T;  o = S (scale q)
// with q and k of query head floor(h H / HV), divided by sqrt(sum of squares + 1e-6) when use_qk_l2norm. All of it in
// f32; a state is rounded to its type only where it is stored, once a call. Several tokens share the unrounded state.
//
// Shapes: q, k [B, T, H, K], v [B, T, HV, V], a, b [B, T, HV], all of one type (f32, f16, bf16); A_log [HV] f32,
// dt_bias [HV] f32 or bf16; HV is a multiple of H. output [B, T, HV, V], by default of q's type. scale is K^-0.5 when
// absent.
//
// Pools: with initial_state [P, HV, V, K] and its indices [B], row i reads slot indices[i] and writes slot
// output_state_indices[i], or the one that it read. A row that reads a negative slot has an output of zeros and writes
// nothing; a negative slot to write is passed over. Slots may be padded: only the last axis must be contiguous. Slots
// that no row writes keep their bytes. When rows share a slot, each reads it as it was before the call, and the last
// one that writes it wins.
//
// ValueError: shapes and types that do not fit together, a slot that the pool does not have, an unknown backend; on the
// CPU also NaN in A_log, dt_bias or the a and b of a row that reads a slot. On a GPU these are data.
#pragma once
#include <optional>
#include <string>
#include <utility>

#include "flashinfer/core/tensor.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// State [B, HV, K, V] f32, V innermost, updated in place. Returns (output, state).
struct GatedDeltaRuleDecode {
  TensorView q, k, v, state, A_log, a, dt_bias, b;
  std::optional<double> scale{};
  std::optional<TensorView> output{};
  bool use_qk_l2norm = true;
  std::string backend = "auto";  // a name of FlashInfer's; all are the same here
};
std::pair<Tensor, Tensor> gated_delta_rule_decode(const GatedDeltaRuleDecode& args);

/// State [B, HV, V, K] f32 or bf16, K innermost, or a pool in its place; updated in place. Returns (output, state), or
/// (output, initial_state). AssertionError: one of pool and indices without the other, several tokens with an f32 state
/// that is no pool. ValueError also: one token with intermediate_states_buffer or disable_state_update.
struct GatedDeltaRuleDecodePretranspose {
  TensorView q, k, v;
  std::optional<TensorView> state{};
  TensorView A_log, a, dt_bias, b;
  std::optional<double> scale{};
  std::optional<TensorView> output{};
  bool use_qk_l2norm = true;
  std::optional<TensorView> initial_state{}, initial_state_indices{}, output_state_indices{};
  std::optional<TensorView> intermediate_states_buffer{};  // [>= B, >= T, HV, V, K]: [i, t] = row i's state after t
  bool disable_state_update = false;
  std::string backend = "auto";
};
std::pair<Tensor, Tensor> gated_delta_rule_decode_pretranspose(const GatedDeltaRuleDecodePretranspose& args);

/// Several tokens that may still be rejected. Returns (output, initial_state). With ssm_state_indices [B, T] int32 (at
/// least two tokens, an update, no intermediate buffer) the state after token t goes to that slot, unless it is
/// negative, and none to the slot that was read. With cache_replayssm (no update, at least three tokens) what
/// gated_delta_rule_replayssm_commit needs is stored at the slot that a row reads: v, k before normalisation, ln of the
/// decay, beta. disable_state_update None warns once and means True. AssertionError: replay buffers without the flag,
/// or the flag without all four.
struct GatedDeltaRuleMtp {
  TensorView q, k, v, initial_state, initial_state_indices, A_log, a, dt_bias, b;
  std::optional<double> scale{};
  std::optional<TensorView> output{};
  std::optional<TensorView> intermediate_states_buffer{}, ssm_state_indices{};
  std::optional<bool> disable_state_update{};
  bool use_qk_l2norm = true;
  std::optional<TensorView> output_state_indices{};
  bool cache_replayssm = false;
  std::optional<TensorView> replayssm_rawv{};                 // [P, HV, T, V] bf16
  std::optional<TensorView> replayssm_rawk{};                 // [P, H, T, K] bf16
  std::optional<TensorView> replayssm_g{}, replayssm_beta{};  // [P, HV, T] f32
};
std::pair<Tensor, Tensor> gated_delta_rule_mtp(const GatedDeltaRuleMtp& args);

/// Applies the accepted tokens of a replay cache to the states of L layers: for row i with slot s = state_indices[i] >
/// null_block_id and t < accept_lens[i]
///   S <- exp(g) S;  S <- S + beta (v - S k) k^T
/// and the state after token track_steps[i] is also stored at slot track_state_indices[i], if that is above
/// null_block_id. Caches are read only. ValueError also: a slot that occurs twice, accept_lens outside [0, T], one of
/// the two track arguments alone.
struct GatedDeltaRuleReplayssmCommit {
  TensorView checkpoint_state;                             // [L, P, HV, V, K] f32, V and K 128
  TensorView rawv_cache, rawk_cache, g_cache, beta_cache;  // [L, P, HV, T, V], [L, P, H, T, K] bf16, [L, P, HV, T] f32
  TensorView state_indices, accept_lens;                   // [B] int32
  std::optional<TensorView> track_state_indices{}, track_steps{};  // [B] int32
  bool use_qk_l2norm = true;
  int64_t null_block_id = -1;
  std::string backend = "auto";
};
void gated_delta_rule_replayssm_commit(const GatedDeltaRuleReplayssmCommit& args);

}  // namespace flashinfer

#pragma GCC visibility pop
