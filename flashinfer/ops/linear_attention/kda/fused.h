// SPDX-License-Identifier: Apache-2.0
// The token-mixing part of a layer with Kimi delta attention for one token of each row, or draft tokens.
#pragma once
#include <optional>
#include <string>

#include "flashinfer/core/tensor.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// q, k, v = the parts of silu(causal convolution of x), rounded to bf16; o = the step of kda_recurrence on normalised
/// q and k, with the gate from raw_gate, A_log, dt_bias and lower_bound (None: the softplus form) and beta =
/// sigmoid(raw_beta), rounded to bf16; output = o / sqrt(mean o^2 + norm_eps) * norm_weight * sigmoid(output_gate).
/// Extents: R rows, H heads of width D, P slots. A row with a slot of 0 or less gives 0 and touches no slot. Rows that
/// share a slot are computed in their order. ValueError: extents that do not fit together, a slot outside the pools,
/// NaN among the gates of a row with a slot.
struct FusedKdaDecode {
  TensorView x;              // [R, 3 H D] bf16
  TensorView weight;         // [3, 4, H D] f32: taps of q, k and v, the last one meets the newest input
  TensorView conv_state;     // [P, 3 H D, 3] bf16, any strides. Updated
  TensorView raw_gate;       // [1, R, H, D] bf16
  TensorView raw_beta;       // [1, R, H] bf16
  TensorView A_log;          // H elements, f32
  TensorView dt_bias;        // H D elements, f32
  TensorView state_indices;  // [R] int32
  TensorView state;          // [P, H, D, D] f32 or bf16, V before K. Updated
  TensorView output_gate;    // [R, H, D] or [1, R, H, D] bf16
  TensorView norm_weight;    // [D] f32
  std::optional<double> lower_bound = -5.0;
  double norm_eps = 1e-5;
  std::optional<TensorView> output{};               // [1, R, H, D] bf16
  std::string backend = "cute-dsl";                 // without effect, as is
  std::optional<std::string> state_indices_mode{};  // what is known of state_indices
};
Tensor fused_kda_decode(const FusedKdaDecode& args);

/// The same for up to T tokens of each sequence: sequence n is rows query_start_loc[n] .. [n + 1] of x; rows behind the
/// last one give 0. It starts from column a = clamp(num_accepted_tokens[n] - 1, 0, T - 1) of its slots, and the state
/// after token t goes to column t. The inputs before the first token are at positions a .. a + 2 of conv_state of its
/// first slot, which then holds the last two of them and the new inputs. With T = 1, t1_state_indices [R] may name the
/// slot of each row instead; query_start_loc then has no effect.
struct PackedFusedKdaDecode {
  TensorView x, weight;
  TensorView conv_state;  // [P, 3 H D, T + 2]
  TensorView raw_gate, raw_beta, A_log, dt_bias;
  TensorView state_indices;  // [N, T] int32
  TensorView state, output_gate, norm_weight;
  std::optional<double> lower_bound = -5.0;  // not None when T > 1
  double norm_eps = 1e-5;
  std::optional<TensorView> output{};
  TensorView query_start_loc;      // [N + 1] int32
  TensorView num_accepted_tokens;  // [N] int32
  std::optional<TensorView> t1_state_indices{};
};
Tensor packed_fused_kda_decode(const PackedFusedKdaDecode& args);

}  // namespace flashinfer

#pragma GCC visibility pop
