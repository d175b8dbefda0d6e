// SPDX-License-Identifier: Apache-2.0
// The causal convolution. A thread takes a channel: where the channels of a token are side by side, 16 tokens of it,
// whose inputs it keeps for the next three; where a channel's tokens are, one token. States are stored by a second
// kernel, because other blocks read them; the update of a few tokens is one kernel.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/ops/linear_attention/kernels/conv/cuda_params.h"
#include "flashinfer/ops/linear_attention/kernels/cuda/inputs.cuh"

namespace flashinfer::cu {
namespace linear {

inline constexpr int kConvTaps = 4, kConvUnit = 16;

/// A sequence: where its tokens are, and its slot (-1: none).
struct ConvSequence {
  int64_t x, out, tokens, slot;
  bool skip, initial;

  FI_GLOBAL_FN ConvSequence(const ConvCudaParams& a, int64_t i) {
    const ConvParams& p = a.call;
    const int64_t first = a.starts.data ? a.starts.at(i) : 0;
    tokens = a.starts.data ? a.starts.at(i + 1) - first : a.tokens;
    x = a.starts.data ? first * p.x_token : i * a.x_row, out = a.starts.data ? first * p.out_token : i * a.out_row;
    slot = p.state ? a.slots.at(i) : -1;
    skip = p.state && (slot == a.pad || slot < 0 || slot >= a.slot_count);
    if (skip) slot = -1;
    initial = a.initial ? a.initial[i * a.initial_stride] : a.always_initial;
  }
};
/// A channel's filter (zeros before its first tap) and bias.
struct ConvFilter {
  float tap[kConvTaps], bias;
  bool silu;

  FI_GLOBAL_FN ConvFilter(const ConvCudaParams& a, int64_t channel) : silu(a.silu) {
    const ConvParams& p = a.call;
    if (a.wide) {
      load_columns(a.weight_type, p.weight, channel * p.weight_channel, 0, kConvTaps, true, tap);
    } else {
#pragma unroll
      for (int k = 0; k < kConvTaps; ++k) {
        const int from = k - (kConvTaps - a.width);
        tap[k] = from < 0 ? 0.0f : element(a.weight_type, p.weight, channel * p.weight_channel + from * p.weight_tap);
      }
    }
    bias = p.bias ? element(a.weight_type, p.bias, channel * p.bias_channel) : 0.0f;
  }
  FI_GLOBAL_FN float operator()(const float (&in)[kConvTaps]) const {
    float y = bias;
#pragma unroll
    for (int k = 0; k < kConvTaps; ++k) y += tap[k] * in[k];
    return silu ? y / (1.0f + ::expf(-y)) : y;
  }
};
FI_GLOBAL_FN void push(float (&window)[kConvTaps], float x) {
#pragma unroll
  for (int k = 0; k + 1 < kConvTaps; ++k) window[k] = window[k + 1];
  window[kConvTaps - 1] = x;
}

template <ConvCudaConfig C>
struct ConvChannel {
  using T = scalar_of_t<C.dtype>;
  const ConvCudaParams& a;
  int64_t channel;

  FI_GLOBAL_FN float input(const ConvSequence& s, int64_t t) const {
    return to_f32(static_cast<const T*>(a.call.x)[s.x + channel * a.call.x_channel + t * a.call.x_token]);
  }
  FI_GLOBAL_FN T* state(int64_t slot, int64_t at) const {
    const ConvParams& p = a.call;
    return static_cast<T*>(p.state) + slot * p.state_slot + channel * p.state_channel + at * p.state_token;
  }
  FI_GLOBAL_FN void put(const ConvSequence& s, int64_t t, float y) const {
    static_cast<T*>(a.call.out)[s.out + channel * a.call.out_channel + t * a.call.out_token] = from_f32<T>(y);
  }
  /// The inputs before token t.
  FI_GLOBAL_FN void fill(const ConvSequence& s, int64_t t, float (&window)[kConvTaps]) const {
#pragma unroll
    for (int k = 1; k < kConvTaps; ++k) {
      const int64_t at = t - kConvTaps + k;
      window[k] = at >= 0 ? input(s, at) : 0.0f;
      if (at < 0 && s.initial && s.slot >= 0 && a.call.state_len + at >= 0)
        window[k] = to_f32(*state(s.slot, a.call.state_len + at));
    }
  }
};
/// The sequence of packed token g.
FI_GLOBAL_FN int64_t sequence_of(const ConvCudaParams& a, int64_t g) {
  int64_t low = 0, high = a.call.sequences;  // the last sequence that starts at or before the token
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (a.starts.at(middle) <= g ? low : high) = middle;
  }
  return low;
}

/// A few tokens of sequence i in a channel, and its state.
template <ConvCudaConfig C>
FI_GLOBAL_FN void conv_update(const ConvCudaParams& a, int64_t channel, int64_t i) {
  using T = scalar_of_t<C.dtype>;
  const ConvParams& p = a.call;
  const int64_t length = p.state_len;
  const ConvSequence s(a, i);
  if (channel >= p.channels) return;
  const ConvFilter filter(a, channel);
  const ConvChannel<C> c{a, channel};
  int64_t at = length - (a.width - 1);  // of the first input before the tokens
  if (p.mode == ConvParams::kCircular) {
    const int64_t position = a.positions.at(i);
    at = (position < 0 ? 0 : position) % length;
  } else if (p.mode == ConvParams::kAccepted) {
    const int64_t accepted = a.positions.at(i) - 1, most = length - (a.width - 1);
    at = accepted < 0 ? 0 : accepted < most ? accepted : most;
  }
  float window[kConvTaps] = {};
#pragma unroll
  for (int k = 1; k < kConvTaps; ++k) {
    const int j = k - (kConvTaps - a.width) - 1;  // of the a.width - 1 inputs
    if (j < 0 || s.slot < 0) continue;
    int64_t from = at + j;
    if (p.mode == ConvParams::kCircular) from = (at - (a.width - 1) + j + length) % length;
    window[k] = to_f32(*c.state(s.slot, from));
  }
  float before[kConvTaps];
#pragma unroll
  for (int k = 0; k < kConvTaps; ++k) before[k] = window[k];
  for (int64_t t = 0; t < s.tokens; ++t) {
    push(window, c.input(s, t));
    c.put(s, t, s.skip ? 0.0f : filter(window));
  }
  if (s.slot >= 0 && p.mode == ConvParams::kShift) {
    for (int64_t j = 0; j < length; ++j)
      *c.state(s.slot, j) =
          j + s.tokens < length ? *c.state(s.slot, j + s.tokens) : from_f32<T>(c.input(s, j + s.tokens - length));
  } else if (s.slot >= 0 && p.mode == ConvParams::kCircular) {
    for (int64_t t = 0; t < s.tokens; ++t) *c.state(s.slot, (at + t) % length) = from_f32<T>(c.input(s, t));
  } else if (s.slot >= 0) {
#pragma unroll
    for (int k = 2; k < kConvTaps; ++k) {
      const int j = k - (kConvTaps - a.width) - 2;
      if (j >= 0) *c.state(s.slot, j) = from_f32<T>(before[k]);
    }
    for (int64_t t = 0; t < s.tokens; ++t) *c.state(s.slot, a.width - 2 + t) = from_f32<T>(c.input(s, t));
  }
}

}  // namespace linear

/// Grid: blocks of channels or of tokens, units of tokens or channels, sequences (packed: 1).
template <ConvCudaConfig C>
FI_GLOBAL_FN void causal_conv1d(const ConvCudaParams& a) {
  using namespace linear;
  depend_wait();
  const int64_t lane_index = static_cast<int64_t>(block_x()) * C.threads + thread_x(), unit = block_y();
  const int64_t channel = C.channels_last ? lane_index : unit;
  int64_t g = C.channels_last ? unit * kConvUnit : lane_index;
  const int64_t last = g + (C.channels_last ? kConvUnit : 1), end = last < a.tokens ? last : a.tokens;
  if (channel < a.call.channels && g < end) {
    const ConvFilter filter(a, channel);
    const ConvChannel<C> c{a, channel};
    int64_t i = a.starts.data ? sequence_of(a, g) : block_z();
#pragma unroll 1
    while (g < end) {
      const ConvSequence s(a, i);
      const int64_t first = a.starts.data ? a.starts.at(i) : 0, stop = first + s.tokens < end ? first + s.tokens : end;
      float window[kConvTaps];
      if (g < stop) c.fill(s, g - first, window);
#pragma unroll(C.channels_last ? 4 : 1)
      for (; g < stop; ++g) {
        push(window, c.input(s, g - first));
        c.put(s, g - first, s.skip ? 0.0f : filter(window));
      }
      if (!C.channels_last || !a.starts.data || ++i >= a.call.sequences) break;
    }
  }
  depend_launch();
}

/// The slots take the last inputs. A thread for each channel of each sequence.
template <ConvCudaConfig C>
FI_GLOBAL_FN void causal_conv1d_states(const ConvCudaParams& a) {
  using namespace linear;
  depend_wait();
  const int64_t channel = static_cast<int64_t>(block_x()) * C.threads + thread_x(), length = a.call.state_len;
  const ConvSequence s(a, block_y());
  if (channel < a.call.channels && s.slot >= 0 && s.tokens > 0) {
    const ConvChannel<C> c{a, channel};
    for (int64_t j = 0; j < length; ++j) {  // in place: what is read lies at or behind what is written
      const int64_t t = s.tokens - length + j;
      float x = 0.0f;
      if (t >= 0)
        x = c.input(s, t);
      else if (s.initial)
        x = to_f32(*c.state(s.slot, length + t));
      *c.state(s.slot, j) = from_f32<scalar_of_t<C.dtype>>(x);
    }
  }
  depend_launch();
}

/// A few tokens of each sequence, and its state. A thread for each channel of each sequence.
template <ConvCudaConfig C>
FI_GLOBAL_FN void causal_conv1d_update(const ConvCudaParams& a) {
  depend_wait();
  linear::conv_update<C>(a, static_cast<int64_t>(block_x()) * C.threads + thread_x(), block_y());
  depend_launch();
}

}  // namespace flashinfer::cu
