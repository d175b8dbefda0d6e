// SPDX-License-Identifier: Apache-2.0
// The token-mixing part of a layer with the gated delta rule, for one token of each row.
#pragma once
#include <optional>
#include <tuple>

#include "flashinfer/core/tensor.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// b, a = the halves of hidden_states w_ba, rounded to bf16; q, k, v = the parts of silu(causal convolution of
/// mixed_qkv), rounded to bf16; then gated_delta_rule_decode_pretranspose on slots of ssm_state. conv_state loses its
/// oldest inputs and takes mixed_qkv. A row with a negative index has an output of zeros and touches no slot. H, the
/// heads of q and k, follows from the extents: channels = 2 H K + HV V. Returns (out, conv_state, ssm_state).
/// ValueError: extents that do not fit together, an index that a pool does not have, on the CPU also NaN among the
/// gates of a row with a slot.
struct GdnFusedDecodeStep {
  TensorView hidden_states;             // [B, D] bf16
  TensorView w_ba;                      // [D, 2 HV] bf16
  TensorView mixed_qkv;                 // [B, channels] bf16
  TensorView conv_weight;               // [channels, width], width 2 to 4
  std::optional<TensorView> conv_bias;  // [channels]
  TensorView conv_state;                // [P, channels, width - 1] bf16, any strides
  TensorView A_log, dt_bias;            // [HV] f32; f32 or bf16
  std::optional<double> scale;          // None or 0: K^-0.5
  TensorView ssm_state;                 // [P, HV, V, K] f32
  TensorView state_indices;             // [B] int32
  bool use_qk_l2norm = true;
  std::optional<TensorView> out{};  // [B, 1, HV, V] bf16
};
std::tuple<Tensor, Tensor, Tensor> gdn_fused_decode_step(const GdnFusedDecodeStep& args);

}  // namespace flashinfer

#pragma GCC visibility pop
