// SPDX-License-Identifier: Apache-2.0
// Merging attention states on a GPU: a thread processes a piece of one row (token, head) over all its states, in
// ascending order, in f32.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/math.h"
#include "flashinfer/kernels/cuda/rows.h"
#include "flashinfer/ops/cascade/kernels/params.h"

namespace flashinfer::cu {
namespace merge {

FI_GLOBAL_FN float lse(const MergeParams& p, int64_t i, int64_t n, int64_t h) {
  const int64_t x = p.pair ? i : 0;
  return p.s[x][n * p.s_stride_n[x] + h * p.s_stride_h[x] + (p.pair ? 0 : i * p.s_stride_state)];
}
template <class T>
FI_GLOBAL_FN const T* value(const MergeParams& p, int64_t i, int64_t n, int64_t h) {
  const int64_t x = p.pair ? i : 0;
  return static_cast<const T*>(p.v[x]) + n * p.v_stride_n[x] + h * p.v_stride_h[x] +
         (p.pair ? 0 : i * p.v_stride_state);
}

/// Threads of a row: the smallest power of two from 1 to 32 that covers its pieces.
FI_GLOBAL_FN uint32_t threads_of(uint32_t pieces) {
  uint32_t n = 1;
  while (n < 32 && n < pieces) n *= 2;
  return n;
}
}  // namespace merge

/// The outputs may alias state 0: a piece is read before its own thread writes it, and all LSE of a row before its own.
template <MergeCudaConfig C>
FI_GLOBAL_FN void merge_states(const MergeParams& p) {
  using T = scalar_of_t<C.dtype>;
  using U = scalar_of_t<C.out>;
  constexpr int N = 8;
  constexpr bool kAligned = C.aligned != 0;
  depend_wait();
  // 32-bit row indices: a 64-bit division is a call of some hundred instructions.
  const uint32_t pieces = static_cast<uint32_t>(ceil_div(p.dim, N)), width = merge::threads_of(pieces),
                 heads = static_cast<uint32_t>(p.heads);
  const uint32_t row = block_x() * (C.threads / width) + thread_x() / width, rank = thread_x() % width;
  const bool in_range = row < p.tokens * p.heads;
  const int64_t n = in_range ? row / heads : 0, h = in_range ? row % heads : 0;
  float m = -kInf, sum = 0.0f;
  const bool live = in_range && !(p.mask && !p.mask[n * p.mask_stride]);
  if (live) {
    for (int64_t i = 0; i < p.states; ++i) {
      const float s = merge::lse(p, i, n, h);
      if (!(s <= m)) m = s;  // keeps a NaN
    }
    for (int64_t i = 0; i < p.states && m != -kInf; ++i) sum += exp2_fast(merge::lse(p, i, n, h) - m);
    const float inv = m == -kInf ? 0.0f : 1.0f / sum;
    for (int64_t at = rank * N; at < p.dim; at += static_cast<int64_t>(width) * N) {
      float acc[N] = {};
      for (int64_t i = 0; i < p.states; ++i) {
        const float s = merge::lse(p, i, n, h);
        if (s == -kInf) continue;  // the value of an empty state is ignored, even if it is NaN
        const float weight = exp2_fast(s - m);
        float v[N];
        load_piece<kAligned, N>(merge::value<T>(p, i, n, h), at, p.dim, v);
#pragma unroll
        for (int j = 0; j < N; ++j) acc[j] += weight * v[j];
      }
#pragma unroll
      for (int j = 0; j < N; ++j) acc[j] *= inv;
      store_piece<kAligned, N>(static_cast<U*>(p.v_out) + n * p.v_out_stride_n + h * p.v_out_stride_h, at, p.dim, acc);
    }
  }
  sync_warp();  // the result may overwrite the LSE of state 0
  if (live && rank == 0) p.s_out[n * p.s_out_stride_n + h * p.s_out_stride_h] = m == -kInf ? m : m + log2f(sum);
  depend_launch();
}

}  // namespace flashinfer::cu
