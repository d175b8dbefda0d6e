// SPDX-License-Identifier: Apache-2.0
// What the kernels of the causal convolution are compiled for and launched with.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

struct ConvConfig {
  DType dtype, weight;  // of x, the states and the result; of weight and bias
  short width;          // of the filter: 2, 3 or 4
  bool channels_last;   // the channels of a token are side by side in memory, else a channel's tokens
  bool silu;            // of the result

  static constexpr const char* kName = "flashinfer::ConvConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("weight", weight);
    v("width", width);
    v("channels_last", channels_last);
    v("silu", silu);
  }
  friend constexpr bool operator==(const ConvConfig&, const ConvConfig&) = default;
};

struct ConvRow {
  int64_t x, out;  // its first token, in elements
  int64_t tokens;
  int64_t slot;        // of the state; -1: none
  int64_t at;          // ConvParams::States
  bool initial;        // the state counts; else zeros come before the first token
  bool skip;           // padding: the result is 0, no state is read or written
  int64_t first_unit;  // units of the rows before it
};

struct ConvParams {
  /// Where the inputs before the first token are in a row of `state_len` and what is stored. kShift: the last ones; the
  /// row moves by the new tokens. kCircular: before position `at`, modulo state_len; the new tokens from there on.
  /// kAccepted: from position `at` on; all but the oldest of them, then the new tokens, are stored from 0 on.
  enum States : int { kShift, kCircular, kAccepted };

  const ConvRow* rows;
  const void* x;
  void* out;
  int64_t sequences, channels;
  int64_t x_channel, x_token, out_channel, out_token;  // strides in elements, as all below
  const void *weight, *bias;                           // bias may be null
  int64_t weight_channel, weight_tap, bias_channel;
  void* state;  // null: none
  int64_t state_slot, state_channel, state_token, state_len;
  States mode;
  // A unit is up to unit_tokens tokens of a sequence. A task is some units with some channels.
  int64_t units, unit_tokens, units_per_task, channels_per_task;
  bool past_caches;   // the result is not wanted in the caches: whole lines of it are stored around them
  bool store_states;  // the tasks store the states: each has all tokens of its sequences
  float* scratch;
};

/// Words of ConvParams::scratch: weights and bias, the inputs before the first token.
constexpr int64_t conv_scratch(int64_t channels, int64_t width) { return (2 * width + 1) * (channels + 16) + 64; }

}  // namespace flashinfer
