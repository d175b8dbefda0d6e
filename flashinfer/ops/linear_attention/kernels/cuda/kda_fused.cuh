// SPDX-License-Identifier: Apache-2.0
// Around the recurrence of a fused KDA decode step on a GPU: sequences and slots from the index arrays, the
// convolution, and the gated norm. Indices that name no slot or no token pass a sequence over: the host has not looked
// at them.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/ops/linear_attention/kernels/cuda/inputs.cuh"
#include "flashinfer/ops/linear_attention/kernels/kda/fused_cuda_params.h"

namespace flashinfer::cu {
namespace linear {

FI_GLOBAL_FN int64_t kda_fused_slot(const KdaFusedCudaParams& a, int64_t n, int64_t t) {
  const int64_t slot = a.slots[n * a.slot_row + t * a.slot_column];
  return slot > 0 && slot < a.slot_count ? slot : -1;
}
/// Sequence n: its tokens, the slot of the inputs before (-1: passed over) and the column it starts from.
FI_GLOBAL_FN KdaFusedRow kda_fused_sequence(const KdaFusedCudaParams& a, int64_t n) {
  if (!a.start) return {n, 1, kda_fused_slot(a, n, 0), 0};
  const int64_t tokens = a.call.tokens, start = a.start[n * a.start_stride], next = a.start[(n + 1) * a.start_stride];
  const int64_t first = start < 0        ? 0
                        : start < tokens ? start
                                         : tokens,
                end = next < first    ? first
                      : next < tokens ? next
                                      : tokens,
                length = end - first < a.columns ? end - first : a.columns;
  const int64_t wanted = a.accepted[n * a.accepted_stride] - 1,
                at = wanted < 0           ? 0
                     : wanted < a.columns ? wanted
                                          : a.columns - 1,
                slot = kda_fused_slot(a, n, 0);
  return {first, length, kda_fused_slot(a, n, at) < 0 ? -1 : slot, at};
}

}  // namespace linear

/// A thread a sequence: the arrays that the recurrence reads.
template <KdaFusedCudaConfig C>
FI_GLOBAL_FN void kda_fused_rows(const KdaFusedCudaParams& a) {
  using namespace linear;
  depend_wait();
  const int64_t n = static_cast<int64_t>(block_x()) * C.threads + thread_x();
  if (n < a.call.count) {
    const KdaFusedRow row = kda_fused_sequence(a, n);
    if (n == 0) a.starts[0] = row.first;
    a.starts[n + 1] = row.first + row.tokens;
    a.read[n] = row.slot < 0 ? -1 : kda_fused_slot(a, n, row.at);
    for (int64_t t = 0; t < row.tokens; ++t) a.after[row.first + t] = row.slot < 0 ? -1 : kda_fused_slot(a, n, t);
  }
  depend_launch();
}

/// A block takes a sequence's channels of q, k and v, a thread one of them.
template <KdaFusedCudaConfig C>
FI_GLOBAL_FN void kda_fused_conv(const KdaFusedCudaParams& a) {
  using namespace linear;
  using T = scalar_of_t<C.dtype>;
  constexpr int kTaps = 4;
  depend_wait();
  const KdaFusedParams& p = a.call;
  const uint32_t blocks = static_cast<uint32_t>(ceil_div(3 * p.channels, C.threads));
  const int64_t n = block_x() / blocks, channel = static_cast<int64_t>(block_x() % blocks) * C.threads + thread_x();
  const KdaFusedRow row = kda_fused_sequence(a, n);
  if (channel < 3 * p.channels && row.slot >= 0 && row.tokens > 0) {
    const uint32_t part = static_cast<uint32_t>(channel) / static_cast<uint32_t>(p.channels);
    const float* const weight = p.weight + 3 * part * p.channels + channel;  // [3, 4, channels]
    T* const state = static_cast<T*>(p.state) + row.slot * p.state_slot + channel * p.state_channel;
    float tap[kTaps];
#pragma unroll
    for (int j = 0; j < kTaps; ++j) tap[j] = weight[j * p.channels];
    T window[kTaps];
#pragma unroll
    for (int j = 0; j < 3; ++j) window[j + 1] = state[(row.at + j) * p.state_token];
    state[0] = window[2], state[p.state_token] = window[3];
    for (int64_t t = 0; t < row.tokens; ++t) {
#pragma unroll
      for (int j = 0; j < 3; ++j) window[j] = window[j + 1];
      window[3] = static_cast<const T*>(p.x)[(row.first + t) * p.x_row + channel];
      state[(2 + t) * p.state_token] = window[3];
      float sum = 0.0f;
#pragma unroll
      for (int j = 0; j < kTaps; ++j) sum = fmaf(tap[j], to_f32(window[j]), sum);
      static_cast<T*>(p.out)[(row.first + t) * 3 * p.channels + channel] = from_f32<T>(sum * logistic(sum));
    }
  }
  depend_launch();
}

/// A warp takes a head of a token: o = o / sqrt(mean o^2 + eps) * norm_weight * sigmoid(gate). Rows that are passed
/// over are zeros already and stay so.
template <KdaFusedCudaConfig C>
FI_GLOBAL_FN void kda_fused_norm(const KdaFusedCudaParams& a) {
  using namespace linear;
  using T = scalar_of_t<C.dtype>;
  depend_wait();
  const KdaFusedParams& p = a.call;
  const uint32_t unit = block_x() * (C.threads / 32) + warp(), heads = static_cast<uint32_t>(p.heads);
  if (unit < static_cast<uint32_t>(p.tokens) * heads) {
    const int64_t token = unit / heads, head = unit % heads;
    T* const o = static_cast<T*>(p.result) + token * p.result_row + head * p.result_head;
    const T* const gate = static_cast<const T*>(p.gate) + token * p.gate_row + head * p.gate_head;
    float squares = 0.0f;
    for (int64_t i = lane(); i < p.width; i += 32) {
      const float x = to_f32(o[i]);
      squares = fmaf(x, x, squares);
    }
    squares = warp_reduce(squares, Sum{});
    const float by = squares == 0.0f ? 0.0f : rsqrt_fast(fmaf(squares, rcp_fast(static_cast<float>(p.width)), p.eps));
    for (int64_t i = lane(); i < p.width; i += 32)
      o[i] = from_f32<T>(to_f32(o[i]) * by * p.norm_weight[i] * logistic(to_f32(gate[i])));
  }
  depend_launch();
}

}  // namespace flashinfer::cu
