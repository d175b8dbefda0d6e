// SPDX-License-Identifier: Apache-2.0
// Norms on a GPU: one read and one write of memory. The first kNormKeep pieces of a thread stay in registers between
// the passes, in their memory format. Loads of all of them and of the weights are batched to overlap latency: one by
// one, a row would take as many memory round trips as a thread has pieces. Launch heuristics (norm/cuda_launch.h)
// choose the group so that this covers rows of up to 2048 pieces (16384 bf16).
#pragma once
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/math.h"
#include "flashinfer/kernels/cuda/rows.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "flashinfer/ops/norm/kernels/params.h"

namespace flashinfer::cu {

inline constexpr int kNormKeep = 4;

/// Offsets of the row of this thread's group; rows past the end are included (their threads take part in reductions).
struct NormRow {
  int64_t input, residual, out;
  bool in_range;
  int rank;  // of the thread in its group
};
/// Offset of row r with the strides of the two row axes. 32-bit: a 64-bit division is a call of some hundred
/// instructions, and a grid has fewer than 2^31 blocks.
FI_GLOBAL_FN int64_t row_at(int64_t r, int64_t inner, const int64_t (&stride)[2]) {
  const int64_t a = inner == 1 ? r : static_cast<uint32_t>(r) / static_cast<uint32_t>(inner);
  return a * stride[0] + (r - a * inner) * stride[1];
}
template <int kGroup, int kThreads>
FI_GLOBAL_FN NormRow norm_row(const NormParams& p) {
  const int64_t r = static_cast<int64_t>(block_x()) * (kThreads / kGroup) + thread_x() / kGroup;
  return {row_at(r, p.inner, p.input_stride), row_at(r, p.inner, p.residual_stride), row_at(r, p.inner, p.out_stride),
          r < p.rows, static_cast<int>(thread_x() % kGroup)};
}
template <int kGroup>
FI_GLOBAL_FN float norm_sum(float x) {
  if constexpr (kGroup <= 32)
    return warp_reduce<kGroup>(x, Sum{});
  else
    return block_reduce<kGroup>(x, Sum{}, reinterpret_cast<float*>(shared()));
}

/// The part of a row that is kept between the passes.
template <class T, int N, bool kAdd>
struct NormPiece {
  RawPiece<T, N> input, residual;
  FI_GLOBAL_FN void widen(float (&v)[N]) const {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      v[i] = input[i];
      if constexpr (kAdd) v[i] += residual[i];
    }
  }
};

/// write(at, x, weights, scale) for the pieces of this thread's row: x in f32, with fused_add input + residual, never
/// rounded (residual becomes it rounded); scale = 1 / sqrt(mean(x^2) + eps). kAll: all lanes call `write` together,
/// with at >= d and zeros where there is nothing, so that it may exchange values between lanes.
template <auto C, bool kAll, class Write>
FI_GLOBAL_FN void rms_pieces(const NormParams& p, const NormRow& row, Write write) {
  using T = scalar_of_t<C.dtype>;
  using W = scalar_of_t<C.weight>;
  constexpr int N = kPiece<T>;
  const T* x = static_cast<const T*>(p.input) + row.input;
  T* s = C.fused_add ? static_cast<T*>(p.residual) + row.residual : nullptr;
  const W* w = static_cast<const W*>(p.weight);
  const int64_t d = row.in_range ? p.d : 0, end = kAll ? p.d : d;
  constexpr bool kAligned = C.aligned != 0;
  using Piece = NormPiece<T, N, C.fused_add != 0>;
  const auto load_at = [&](int64_t at, Piece& piece) {
    load_raw<kAligned, N, Hint::kOnce>(x, at, d, piece.input);
    if constexpr (C.fused_add != 0) load_raw<kAligned, N, Hint::kOnce>(s, at, d, piece.residual);
  };
  const auto value = [&](int64_t at, float(&v)[N]) {
    Piece piece;
    load_at(at, piece);
    piece.widen(v);
  };
  const auto place = [&](int k) { return (k * C.group + row.rank) * static_cast<int64_t>(N); };
  float sum = 0.0f;
  const auto square = [&](const float(&v)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) sum += v[i] * v[i];
  };
  Piece kept[kNormKeep];
  RawPiece<W, N> weights[kNormKeep];
#pragma unroll
  for (int k = 0; k < kNormKeep; ++k) load_at(place(k), kept[k]);
#pragma unroll
  for (int k = 0; k < kNormKeep; ++k) load_raw<kAligned, N>(w, place(k), d, weights[k]);
#pragma unroll
  for (int k = 0; k < kNormKeep; ++k) {
    float v[N];
    kept[k].widen(v);
    square(v);
  }
  constexpr int64_t kStep = static_cast<int64_t>(C.group) * N;
#pragma unroll 1  // few rows are so long; unrolled, registers would spill
  for (int64_t at = kNormKeep * kStep + row.rank * N; at < d; at += kStep) {
    float v[N];
    value(at, v);
    square(v);
  }
  sum = norm_sum<C.group>(sum);
  const float scale = rsqrt_fast(sum * rcp_fast(static_cast<float>(p.d)) + static_cast<float>(p.eps));
  const auto one = [&](int64_t at, float(&v)[N], const RawPiece<W, N>& g) {
    if constexpr (C.fused_add != 0)
      if (!kAll || at < d) store_piece<kAligned, N>(s, at, d, v);
    write(at, v, g, scale);
  };
#pragma unroll
  for (int k = 0; k < kNormKeep; ++k) {
    kept[k].input.forget(), kept[k].residual.forget();
    if ((kAll ? k * kStep : place(k)) >= end) continue;
    float v[N];
    kept[k].widen(v);
    one(place(k), v, weights[k]);
  }
#pragma unroll 1  // few rows are so long; unrolled, registers would spill
  for (int64_t base = kNormKeep * kStep; base + (kAll ? 0 : row.rank * N) < end; base += kStep) {
    const int64_t at = base + row.rank * N;
    float v[N];
    RawPiece<W, N> g;
    load_raw<kAligned, N>(w, at, d, g);
    value(at, v);
    one(at, v, g);
  }
}

/// out = x * (1 / sqrt(mean(x^2) + eps)) * (weight + gemma).
template <NormCudaConfig C>
FI_GLOBAL_FN void rmsnorm(const NormParams& p) {
  using T = scalar_of_t<C.dtype>;
  using W = scalar_of_t<C.weight>;
  constexpr int N = kPiece<T>;
  depend_wait();
  const NormRow row = norm_row<C.group, C.threads>(p);
  T* y = static_cast<T*>(p.out) + row.out;
  rms_pieces<C, false>(p, row, [&](int64_t at, float(&v)[N], const RawPiece<W, N>& g, float scale) {
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = v[i] * scale * (C.gemma ? g[i] + 1.0f : g[i]);
    store_piece<C.aligned != 0, N>(y, at, p.d, v);
  });
  depend_launch();
}

/// write(at, values) of (x - mean) * (1 / sqrt(var + eps)) * weight + beta for the pieces of this thread's row; the
/// variance is taken about the mean (two passes: no cancellation).
template <auto C, class Write>
FI_GLOBAL_FN void layer_pieces(const NormParams& p, const NormRow& row, Write write) {
  using T = scalar_of_t<C.dtype>;
  constexpr int N = kPiece<T>;
  constexpr bool kAligned = C.aligned != 0;
  const T* x = static_cast<const T*>(p.input) + row.input;
  const float *w = static_cast<const float*>(p.weight), *b = static_cast<const float*>(p.beta);
  const int64_t d = row.in_range ? p.d : 0;
  constexpr int64_t kStep = static_cast<int64_t>(C.group) * N;
  RawPiece<T, N> kept[kNormKeep];
  const auto place = [&](int k) { return (k * C.group + row.rank) * static_cast<int64_t>(N); };
#pragma unroll
  for (int k = 0; k < kNormKeep; ++k) load_raw<kAligned, N, Hint::kOnce>(x, place(k), d, kept[k]);
  /// f(at, values) for every piece of this thread.
  const auto each = [&](auto f) {
#pragma unroll
    for (int k = 0; k < kNormKeep; ++k) {
      kept[k].forget();
      if (place(k) >= d) continue;
      float v[N];
#pragma unroll
      for (int i = 0; i < N; ++i) v[i] = kept[k][i];
      f(place(k), v);
    }
#pragma unroll 1
    for (int64_t at = kNormKeep * kStep + row.rank * N; at < d; at += kStep) {
      float v[N];
      load_piece<kAligned, N, Hint::kOnce>(x, at, d, v);
      f(at, v);
    }
  };
  const float n_inv = rcp_fast(static_cast<float>(p.d));
  float sum = 0.0f;
  each([&](int64_t, const float(&v)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) sum += v[i];
  });
  const float mean = norm_sum<C.group>(sum) * n_inv;
  float squares = 0.0f;
  each([&](int64_t at, const float(&v)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) squares += at + i < d ? (v[i] - mean) * (v[i] - mean) : 0.0f;
  });
  const float scale = rsqrt_fast(norm_sum<C.group>(squares) * n_inv + static_cast<float>(p.eps));
  each([&](int64_t at, float(&v)[N]) {
    float g[N], beta[N];
    load_piece<kAligned, N>(w, at, d, g);
    load_piece<kAligned, N>(b, at, d, beta);
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = (v[i] - mean) * scale * g[i] + beta[i];
    write(at, v);
  });
}
template <LayerNormCudaConfig C>
FI_GLOBAL_FN void layernorm(const NormParams& p) {
  using T = scalar_of_t<C.dtype>;
  constexpr int N = kPiece<T>;
  depend_wait();
  const NormRow row = norm_row<C.group, C.threads>(p);
  T* y = static_cast<T*>(p.out) + row.out;
  layer_pieces<C>(p, row, [&](int64_t at, const float(&v)[N]) { store_piece<C.aligned != 0, N>(y, at, p.d, v); });
  depend_launch();
}

}  // namespace flashinfer::cu
