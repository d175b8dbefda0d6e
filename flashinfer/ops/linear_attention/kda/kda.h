// SPDX-License-Identifier: Apache-2.0
// The delta rule with a decay of each key channel (Kimi delta attention).
#pragma once
#include <optional>
#include <string>

#include "flashinfer/core/tensor.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// Not in FlashInfer, whose recurrent_kda and its relatives call it in Python. Extents: n tokens, N sequences, H query
/// and HV value heads, K key and V value width.
struct KdaRecurrence {
  TensorView q, k;                    // [n, H, K] f32|f16|bf16
  TensorView v;                       // [n, HV, V] dtype of q, HV a multiple of H
  TensorView g;                       // [n, HV, K] dtype of q: ln of the decays, or the gate's argument
  TensorView beta;                    // [n, HV] dtype of q
  TensorView cu_seqlens;              // [N + 1] int32|int64; tokens behind its end give 0
  std::optional<TensorView> A_log;    // [H] f32
  std::optional<TensorView> dt_bias;  // [H, K] f32
  std::optional<double> scale;        // 1 / sqrt(K) when absent
  bool use_qk_l2norm = true;
  bool use_gate = false;                    // ln of the decay is -e^A_log softplus(g + dt_bias), or, with
  std::optional<double> lower_bound;        // a bound below 0, lower_bound * sigmoid(e^A_log (g + dt_bias))
  bool beta_is_logit = false;               // beta is sigmoid(beta)
  std::optional<TensorView> state;          // [P, HV, V, K] f32|f16|bf16, slots at any stride. Updated
  std::optional<TensorView> source;         // [P0, HV, V, K] dtype of state: read instead of state
  std::optional<TensorView> read_indices;   // [N] slots read; negative: results 0, nothing written; absent: sequence i
  std::optional<TensorView> write_indices;  // [N] slots written; negative: none; absent: read_indices
  std::optional<TensorView> after_indices;  // [n]: the slot for the state after each token; negative: none
  std::optional<TensorView>
      after_states;                   // [P1, HV, V, K] dtype of state: what after_indices are slots of; absent: state
  bool disable_state_update = false;  // write_indices count as negative
  // With disable_state_update, both or neither; rows are those of the slot read, their tokens counted from a sequence's
  // first; the rest stays as it is:
  std::optional<TensorView> correction_cache;  // [P2, HV, T, V] f32: beta (v - S k) of the decayed state
  std::optional<TensorView> kg_cache;          // [P2, HV, T, 2 K] dtype of q: k and g as they came
  std::optional<TensorView> output;            // [n, HV, V] dtype of q
};
/// For each token: S[v, k] = S[v, k] e^g[k]; S += beta (v - S k) k^T; output = S q, with k / |k| and q / |q| * scale
/// (the squares of the norm + 1e-6). S is f32 within a call and rounded where it is stored. Without state, sequences
/// start from zeros. A sequence without tokens leaves its slot as it is. Sequences that share slots are computed in
/// their order. ValueError: shapes, dtypes and options that do not fit together, a slot outside its pool, a bound that
/// is not below 0; on the CPU also NaN in A_log, dt_bias or the g and beta of a sequence that reads a slot.
Tensor kda_recurrence(const KdaRecurrence& args);

}  // namespace flashinfer

#pragma GCC visibility pop
