// SPDX-License-Identifier: Apache-2.0
// What surrounds the recurrence of a fused KDA decode step: a causal convolution of four taps with SiLU before it, a
// gated RMS norm behind it.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cpu/exp.h"
#include "flashinfer/kernels/cpu/lanes.h"
#include "flashinfer/ops/linear_attention/kernels/kda/fused_params.h"

namespace flashinfer::cpu {

/// A task is up to 128 channels of q, k or v, of all sequences in their order (they may share slots). The window of the
/// last inputs is [h0, h1, h2] from position `at` of the slot, which becomes [h1, h2, new inputs ..] from position 0.
template <KdaFusedConfig C>
void kda_fused_conv(const KdaFusedParams& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  constexpr int64_t L = Vec::kLanes, N = kKdaFusedChannels;
  const int64_t blocks = ceil_div(p.channels, N), part = task / blocks, begin = task % blocks * N;
  const int64_t n = p.channels - begin < N ? p.channels - begin : N, channel = part * p.channels + begin;
  const float* const weight = p.weight + part * 4 * p.channels + begin;
  T window[4][N];
  for (int64_t i = 0; i < p.count; ++i) {
    const KdaFusedRow& row = p.rows[i];
    if (row.slot < 0 || !row.tokens) continue;
    T* const state = static_cast<T*>(p.state) + row.slot * p.state_slot + channel * p.state_channel;
    for (int64_t j = 0; j < 3; ++j)
      for (int64_t c = 0; c < n; ++c) window[j][c] = state[(row.at + j) * p.state_token + c * p.state_channel];
    const auto keep = [&](int64_t position, const T* from) {
      for (int64_t c = 0; c < n; ++c) state[position * p.state_token + c * p.state_channel] = from[c];
    };
    keep(0, window[1]), keep(1, window[2]);
    for (int64_t t = 0; t < row.tokens; ++t) {
      const int64_t token = row.first + t;
      memcpy(window[(3 + t) % 4], static_cast<const T*>(p.x) + token * p.x_row + channel,
             static_cast<size_t>(n) * sizeof(T));
      keep(2 + t, window[(3 + t) % 4]);
      T* const out = static_cast<T*>(p.out) + token * 3 * p.channels + channel;
      for (int64_t c = 0; c < n; c += L) {
        const int64_t left = n - c < L ? n - c : L;
        Vec sum = zero();
        for (int64_t j = 0; j < 4; ++j)
          sum = fma(load_n(weight + j * p.channels + c, left), load_n(window[(t + j) % 4] + c, left), sum);
        store_n(out + c, silu(sum), left);
      }
    }
  }
}

/// A task is `per_task` heads of tokens: o = o / sqrt(mean o^2 + eps) * norm_weight * sigmoid(gate).
template <KdaFusedConfig C>
void kda_fused_norm(const KdaFusedParams& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  constexpr int64_t L = Vec::kLanes;
  const int64_t all = p.tokens * p.heads, first = task * p.per_task;
  for (int64_t i = first; i < all && i < first + p.per_task; ++i) {
    const int64_t token = i / p.heads, head = i % p.heads;
    if (!p.active[token]) continue;
    T* const o = static_cast<T*>(p.result) + token * p.result_row + head * p.result_head;
    const T* const gate = static_cast<const T*>(p.gate) + token * p.gate_row + head * p.gate_head;
    const float squares = sum_row(
        p.width, [&](Vec acc, int64_t j) { return fma(load(o + j), load(o + j), acc); },
        [&](Vec acc, int64_t j, int64_t left) { return fma(load_n(o + j, left), load_n(o + j, left), acc); });
    const Vec by = splat(1.0f / __builtin_sqrtf(squares / static_cast<float>(p.width) + p.eps));
    for (int64_t j = 0; j < p.width; j += L) {
      const int64_t left = p.width - j < L ? p.width - j : L;
      store_n(o + j, load_n(o + j, left) * by * load_n(p.norm_weight + j, left) * sigmoid(load_n(gate + j, left)),
              left);
    }
  }
}

}  // namespace flashinfer::cpu
