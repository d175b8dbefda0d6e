// SPDX-License-Identifier: Apache-2.0
// The causal convolution over tokens that state-space and linear-attention layers have before their recurrence: each
// channel with a filter of its own. Not in FlashInfer; the names and arguments are those by which engines call it.
#pragma once
#include <optional>
#include <string>

#include "flashinfer/core/tensor.h"

#pragma GCC visibility push(default)

namespace flashinfer {

struct CausalConv1dFn {
  TensorView x;       // [channels, tokens] with query_start_loc, else [b, channels, tokens]; f32|f16|bf16. Channels or
                      // tokens are side by side in memory
  TensorView weight;  // [channels, width] f32|f16|bf16, width 2 to 4
  std::optional<TensorView> bias;               // [channels] dtype of weight
  std::optional<TensorView> query_start_loc;    // [b + 1]: sequences one after the other
  std::optional<TensorView> cache_indices;      // [b] int32|int64: slots of conv_states; absent: sequence i has slot i
  std::optional<TensorView> has_initial_state;  // [b] bool; absent: no sequence continues
  std::optional<TensorView> conv_states;        // [slots, channels, width - 1] dtype of x, any strides. Updated
  std::optional<std::string> activation = "silu";  // "silu", "swish" or none
  int64_t pad_slot_id = -1;                        // a sequence with this slot: its results are 0, no slot is touched
  std::optional<TensorView> out;                   // as x, of any strides
};
/// out[c, t] = activation(bias[c] + sum over k of weight[c, k] * x[c, t - width + 1 + k]), in f32. Before the first
/// token of a sequence are the inputs of its slot, or zeros. The slot takes the last width - 1 inputs; that of a
/// sequence without tokens stays as it is. Sequences that share a slot read what it held before the call and write it
/// in their order. ValueError: shapes or dtypes that do not fit together, a slot outside conv_states that is not
/// pad_slot_id, has_initial_state without conv_states.
Tensor causal_conv1d_fn(const CausalConv1dFn& args);

struct CausalConv1dUpdate {
  TensorView x;                    // [b, channels] or [b, channels, T] f32|f16|bf16
  TensorView conv_state;           // [slots, channels, length] dtype of x, any strides, length >= width - 1. Updated
  TensorView weight;               // [channels, width] f32|f16|bf16, width 2 to 4
  std::optional<TensorView> bias;  // [channels] dtype of weight
  std::optional<std::string> activation = {};     // "silu", "swish" or none
  std::optional<TensorView> cache_seqlens;        // [b]: the state is a ring with this position, modulo its length
  std::optional<TensorView> conv_state_indices;   // [b] int32|int64: slots; absent: sequence i has slot i
  int64_t pad_slot_id = -1;                       // a sequence with this slot: its results are 0, no slot is touched
  std::optional<TensorView> num_accepted_tokens;  // [b]: length >= width - 2 + T; the inputs before the first token
                                                  // begin at position max(it - 1, 0)
  std::optional<TensorView> out;                  // as x
};
/// causal_conv1d_fn for the next T tokens of each sequence. The state holds the last `length` inputs. With
/// cache_seqlens it is a ring: the new inputs are stored from that position on. With num_accepted_tokens, for
/// speculative decoding: of the tokens of the last step that many count; stored are the width - 2 inputs before the
/// first token and the T new ones. Sequences that share a slot are computed one after the other, in their order.
/// ValueError as there.
Tensor causal_conv1d_update(const CausalConv1dUpdate& args);

}  // namespace flashinfer

#pragma GCC visibility pop
