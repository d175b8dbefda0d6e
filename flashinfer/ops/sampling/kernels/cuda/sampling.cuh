// SPDX-License-Identifier: Apache-2.0
// Softmax on a GPU: a cluster of blocks processes a row, each block a part of it, which stays in its shared memory: one
// read and one write. (What does not fit there is read again.) The first pass keeps a maximum and a sum relative to it
// in every thread; the blocks tell each other theirs; the second pass writes. A thread meets its own elements again, so
// that the passes need no barrier but those of the sums. Sums have one order for a given v and GPU.
#pragma once
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/math.h"
#include "flashinfer/kernels/cuda/rows.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "flashinfer/ops/sampling/kernels/params.h"

namespace flashinfer::cu {

/// Raw elements of a thread's next pieces, loaded before the first is used.
template <bool kAligned, class T, int N, int kBatch>
FI_GLOBAL_FN void load_batch(const T* x, int64_t at, int64_t step, int64_t n, RawPiece<T, N> (&to)[kBatch]) {
#pragma unroll
  for (int j = 0; j < kBatch; ++j) {
    const int64_t from = at + j * step;
    if constexpr (kAligned) {
      to[j].part[0] = load_if<N>(from + N <= n, x + from);
      if (from < n && from + N > n) load_raw<false, N>(x, from, n, to[j]);
    } else {
      load_raw<false, N>(x, from, n, to[j]);
    }
  }
}

template <SoftmaxCudaConfig C>
FI_GLOBAL_FN void softmax(const SoftmaxCudaParams& p) {
  using T = scalar_of_t<C.dtype>;
  constexpr bool kAligned = C.aligned != 0;
  // 64 bytes of results a lane are in flight; where each element is a load, and takes a register, half.
  constexpr int N = 4, kBatch = (kAligned ? 16 : 8) / static_cast<int>(sizeof(T));
  constexpr int64_t kStep = static_cast<int64_t>(C.threads) * N;
  struct Found {
    float top, sum;
  };
  cluster_arrive();  // all blocks have begun, once anybody waits
  depend_wait();
  const uint32_t blocks = cluster_blocks(), rank = cluster_rank();
  const int64_t r = block_x() / blocks, begin = rank * p.part;
  const int64_t n = p.v - begin < p.part ? p.v - begin : p.part;  // may be negative
  const T* x = static_cast<const T*>(p.logits) + r * p.logits_stride + begin;
  float* y = p.out + r * p.out_stride + begin;
  float* const scratch = reinterpret_cast<float*>(shared());
  Found* const found = reinterpret_cast<Found*>(shared() + 128);
  T* const kept = reinterpret_cast<T*>(shared() + kSoftmaxSlots);
  float inverse = p.inverse;
  if (p.temperature) {
    const float t = to_f32(static_cast<const scalar_of_t<C.temperature>*>(p.temperature)[r * p.temperature_stride]);
    inverse = t == 0.0f || t == -1.0f ? 0.0f : 1.0f / t;  // all logits become equal
  }
  // A masked token stays masked at T = 0 (0 * -inf would be NaN).
  const auto scaled = [&](float v) { return v == -kInf ? v : v * inverse; };
  const int64_t first = static_cast<int64_t>(thread_x()) * N;
  float m = -kInf, sum = 0.0f;
#pragma unroll 1
  for (int64_t base = first; base < n; base += kBatch * kStep) {
    RawPiece<T, N> v[kBatch];
    load_batch<kAligned>(x, base, kStep, n, v);
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      const int64_t at = base + j * kStep;
      const int there = at + N <= n ? N : at < n ? static_cast<int>(n - at) : 0;
      v[j].forget();  // no piece is converted before its turn
      if (at < p.kept) store_shared(kept + at, v[j].part[0]);
      float top = m;
#pragma unroll
      for (int i = 0; i < N; ++i)
        if (i < there) top = Max{}(scaled(v[j][i]), top);
      const float shift = top == -kInf ? 0.0f : top;
      sum *= exp_fast(m - shift);
      m = top;
#pragma unroll
      for (int i = 0; i < N; ++i)
        if (i < there) sum += exp_fast(scaled(v[j][i]) - shift);
    }
  }
  // Relative to a maximum above this one; a maximum of -inf: the sum is 0, or NaN.
  const auto lowered = [](float sum, float from, float to) { return from == -kInf ? sum : sum * exp_fast(from - to); };
  float top = block_reduce<C.threads>(m, Max{}, scratch), shift = top == -kInf ? 0.0f : top;
  sum = block_reduce<C.threads>(lowered(sum, m, shift), Sum{}, scratch);
  cluster_wait();
  if (blocks > 1) {
    if (thread_x() < blocks) store_peer(&found[rank], thread_x(), Found{top, sum});
    sync_cluster();
#pragma unroll 1
    for (uint32_t b = 0; b < blocks; ++b) top = Max{}(found[b].top, top);
    shift = top == -kInf ? 0.0f : top;  // a row of -inf: exp gives zeros
    sum = 0.0f;
#pragma unroll 1
    for (uint32_t b = 0; b < blocks; ++b) sum += lowered(found[b].sum, found[b].top, shift);
  }
  const float scale = sum == 0.0f ? 0.0f : 1.0f / sum;
#pragma unroll 2
  for (int64_t at = first; at < n; at += kStep) {
    float v[N];
    if (at < p.kept) {
      const Pack<T, N> raw = load_shared<N>(kept + at);
#pragma unroll
      for (int i = 0; i < N; ++i) v[i] = to_f32(raw[i]);
    } else if (at + N <= n) {
      load_piece<kAligned, N>(x, at, n, v);
    } else {
      load_piece<false, N>(x, at, n, v);
    }
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = exp_fast(scaled(v[i]) - shift) * scale;
    if (at + N <= n)
      store_piece<kAligned, N>(y, at, n, v);
    else
      store_piece<false, N>(y, at, n, v);
  }
  depend_launch();
}

}  // namespace flashinfer::cu
