// SPDX-License-Identifier: Apache-2.0
// Hyper-connections on a GPU: a row's four streams are read once and in pieces of 16 bytes. Blocks of one row divide
// its columns; each computes the row's mixes again, which costs less than handing them over.
#pragma once
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/math.h"
#include "flashinfer/kernels/cuda/rows.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "flashinfer/ops/mhc/kernels/params.h"

namespace flashinfer::cu {

/// f(first column) for the pieces of N columns of this thread.
template <MhcCudaConfig C, int N, class F>
FI_GLOBAL_FN void mhc_columns(const MhcParams& p, F f) {
  const int64_t step = static_cast<int64_t>(blocks_y()) * C.threads * N;
  for (int64_t at = (static_cast<int64_t>(block_y()) * C.threads + thread_x()) * N; at < p.hidden; at += step) f(at);
}

template <MhcCudaConfig C>
FI_GLOBAL_FN void mhc_post(const MhcParams& p) {
  using T = scalar_of_t<C.dtype>;
  constexpr int N = kPiece<T>, S = kMhcStreams;
  depend_wait();
  const int64_t r = block_x(), h = p.hidden;
  const T *x = static_cast<const T*>(p.x) + r * h, *residual = static_cast<const T*>(p.residual) + r * S * h;
  T* out = static_cast<T*>(p.out) + r * S * h;
  float post[S], comb[S * S];
#pragma unroll
  for (int j = 0; j < S; ++j) post[j] = p.post_in[r * S + j];
#pragma unroll
  for (int j = 0; j < S * S; ++j) comb[j] = p.comb_in[r * S * S + j];
  mhc_columns<C, N>(p, [&](int64_t at) {
    float v[N], y[S][N], stream[N];
    load_piece<C.aligned, N, Hint::kOnce>(x, at, h, v);
#pragma unroll
    for (int j = 0; j < S; ++j)
#pragma unroll
      for (int i = 0; i < N; ++i) y[j][i] = v[i] * post[j];
#pragma unroll
    for (int k = 0; k < S; ++k) {
      load_piece<C.aligned, N, Hint::kOnce>(residual + k * h, at, h, stream);
#pragma unroll
      for (int j = 0; j < S; ++j)
#pragma unroll
        for (int i = 0; i < N; ++i) y[j][i] = fmaf(stream[i], comb[k * S + j], y[j][i]);
    }
#pragma unroll
    for (int j = 0; j < S; ++j) store_piece<C.aligned, N>(out + j * h, at, h, y[j]);
  });
  depend_launch();
}

/// Sinkhorn's iteration of a 4 x 4 matrix, element (lane / 4 % 4, lane % 4) in each lane: softmax of rows, then columns
/// and rows in turn.
FI_GLOBAL_FN float mhc_sinkhorn(float m, int64_t repeat, float eps) {
  const auto over_row = [](float v, auto f) {
    v = f(v, shuffle_xor(v, 1));
    return f(v, shuffle_xor(v, 2));
  };
  const auto over_column = [](float v, auto f) {
    v = f(v, shuffle_xor(v, 4));
    return f(v, shuffle_xor(v, 8));
  };
  m = exp_fast(m - over_row(m, Max{}));
  m = fmaf(m, rcp_fast(over_row(m, Sum{})), eps);
  m *= rcp_fast(over_column(m, Sum{}) + eps);
  for (int64_t k = 1; k < repeat; ++k) {
    m *= rcp_fast(over_row(m, Sum{}) + eps);
    m *= rcp_fast(over_column(m, Sum{}) + eps);
  }
  return m;
}

/// The row's 24 mixes by the first warp, a lane each: `pre` for the block, the others to memory by the row's first
/// block.
FI_GLOBAL_FN void mhc_mixes(const MhcParams& p, int64_t r, float squares, float* pre) {
  const uint32_t i = lane() < kMhcMixes ? lane() : 0;
  float mix = 0.0f;
  for (int64_t s = 0; s < p.splits; ++s) {
    mix += p.dot_mix[(s * p.rows + r) * kMhcMixes + i];
    if (p.sqrsum) squares += p.sqrsum[s * p.rows + r];
  }
  const float factor = rsqrt_fast(fmaf(squares, p.inverse_k, p.rms_eps));
  const float m = fmaf(mix * factor, p.scale[i < 4 ? 0 : i < 8 ? 1 : 2], p.base[i]), gate = sigmoid_fast(m);
  if (lane() < kMhcStreams) pre[lane()] = gate + p.pre_eps;
  if (block_y() != 0) return;
  if (lane() >= 4 && lane() < 8) p.post_out[r * kMhcStreams + lane() - 4] = gate * p.post_factor;
  const float comb = mhc_sinkhorn(shuffle(m, 8 + lane() % 16), p.repeat, p.sinkhorn_eps);
  if (lane() < kMhcStreams * kMhcStreams) p.comb_out[r * kMhcStreams * kMhcStreams + lane()] = comb;
}

template <MhcCudaConfig C>
FI_GLOBAL_FN void mhc_pre(const MhcParams& p) {
  using T = scalar_of_t<C.dtype>;
  constexpr int N = kPiece<T>, S = kMhcStreams;
  depend_wait();
  const int64_t r = block_x(), h = p.hidden;
  const T* residual = static_cast<const T*>(p.residual) + r * S * h;
  float* const pre = reinterpret_cast<float*>(shared());
  float squares = 0.0f;
  if constexpr (C.squares) {
    for (int64_t at = static_cast<int64_t>(thread_x()) * N; at < S * h; at += C.threads * N) {
      float v[N];
      load_piece<C.aligned, N>(residual, at, S * h, v);
#pragma unroll
      for (int i = 0; i < N; ++i) squares = fmaf(v[i], v[i], squares);
    }
    squares = block_reduce<C.threads>(squares, Sum{}, pre + S);
  }
  if (warp() == 0) mhc_mixes(p, r, squares, pre);
  sync_threads();
  float weight[S];
#pragma unroll
  for (int k = 0; k < S; ++k) weight[k] = pre[k];
  T* out = static_cast<T*>(p.out) + r * h;
  mhc_columns<C, N>(p, [&](int64_t at) {
    float y[N], stream[N];
#pragma unroll
    for (int i = 0; i < N; ++i) y[i] = 0.0f;
#pragma unroll
    for (int k = 0; k < S; ++k) {
      load_piece<C.aligned, N>(residual + k * h, at, h, stream);
#pragma unroll
      for (int i = 0; i < N; ++i) y[i] = fmaf(stream[i], weight[k], y[i]);
    }
    store_piece<C.aligned, N>(out, at, h, y);
  });
  depend_launch();
}

}  // namespace flashinfer::cu
