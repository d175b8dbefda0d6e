// SPDX-License-Identifier: Apache-2.0
// Norms with gates and norms of diffusion transformers on a GPU: inputs are read once and results written once; the
// values of rows of up to 4 pieces a thread stay in registers between the passes, longer rows are read again.
#pragma once
#include "flashinfer/ops/norm/kernels/cuda/norm.cuh"
#include "flashinfer/ops/norm/kernels/diffusion_params.h"
#include "flashinfer/ops/norm/kernels/gated_cuda_params.h"

namespace flashinfer::cu {

/// f(at, values) for the pieces of this thread's row: those that are kept, then others, which make(at, values)
/// computes.
template <int kGroup, int N, class Make, class F>
FI_GLOBAL_FN void each_kept(int64_t d, int rank, float (&kept)[kNormKeep][N], Make make, F f) {
  constexpr int64_t kStep = static_cast<int64_t>(kGroup) * N;
#pragma unroll
  for (int k = 0; k < kNormKeep; ++k) {
    const int64_t at = k * kStep + rank * N;
    if (at < d) f(at, kept[k]);
  }
#pragma unroll 1
  for (int64_t at = kNormKeep * kStep + rank * N; at < d; at += kStep) {
    float v[N];
    make(at, v);
    f(at, v);
  }
}
FI_GLOBAL_FN float rms_scale(float sum, int64_t d, float eps) {
  return rsqrt_fast(sum * rcp_fast(static_cast<float>(d)) + eps);
}

/// out = input * 1 / sqrt(mean(input^2) + eps) * sigmoid(gate): an rmsnorm whose weight is a row of the gate.
template <GatedNormCudaConfig C>
FI_GLOBAL_FN void sigmoid_gate_norm(const GatedNormParams& g) {
  using T = scalar_of_t<C.dtype>;
  constexpr int N = kPiece<T>;
  constexpr struct {
    DType dtype, weight;
    unsigned char fused_add;
    int aligned, group, threads;
  } kConfig{C.dtype, C.dtype, 0, C.aligned, C.group, C.threads};
  depend_wait();
  NormParams p{};
  p.input = g.x, p.d = g.d, p.rows = g.rows, p.inner = g.inner, p.eps = static_cast<double>(g.eps);
  p.input_stride[0] = g.x_stride[0], p.input_stride[1] = g.x_stride[1];
  p.out_stride[0] = g.y_stride[0], p.out_stride[1] = g.y_stride[1];
  const NormRow row = norm_row<C.group, C.threads>(p);
  const int64_t r = static_cast<int64_t>(block_x()) * (C.threads / C.group) + thread_x() / C.group;
  p.weight = static_cast<const T*>(g.gate) + row_at(r, g.inner, g.gate_stride);
  T* const y = static_cast<T*>(g.y) + row.out;
  rms_pieces<kConfig, false>(p, row, [&](int64_t at, float(&v)[N], const RawPiece<T, N>& gate, float scale) {
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = v[i] * scale * sigmoid_fast(gate[i]);
    store_piece<C.aligned != 0, N>(y, at, p.d, v);
  });
  depend_launch();
}

/// residual_out = alpha * residual + beta * x / sqrt(mean(x^2) + eps), x = branch * (weight + center); with y, y =
/// residual_out / sqrt(mean(residual_out^2) + next_eps) * (next_weight + next_center).
template <GatedNormCudaConfig C>
FI_GLOBAL_FN void gated_residual_norm(const GatedNormParams& p) {
  using T = scalar_of_t<C.dtype>;
  constexpr int N = kPiece<T>;
  constexpr bool kAligned = C.aligned != 0;
  depend_wait();
  const int64_t r = static_cast<int64_t>(block_x()) * (C.threads / C.group) + thread_x() / C.group;
  const int rank = static_cast<int>(thread_x() % C.group);
  const int64_t d = r < p.rows ? p.d : 0;  // rows past the end take part in the sums
  const T* const x = static_cast<const T*>(p.x) + r * p.x_stride[0];
  const float* const residual = p.residual + r * p.residual_stride;
  float* const out = p.residual_out + r * p.residual_out_stride;
  const auto weighted = [&](const void* weight, float center, int64_t at, float(&v)[N]) {
    if (!weight) return;
    float w[N];
    load_piece<kAligned, N>(static_cast<const T*>(weight), at, d, w);
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] *= w[i] + center;
  };
  const auto branch = [&](int64_t at, float(&v)[N]) {
    load_piece<kAligned, N>(x, at, d, v);
    weighted(p.weight, p.center, at, v);
  };
  float kept[kNormKeep][N];
#pragma unroll
  for (int k = 0; k < kNormKeep; ++k) {
    const int64_t at = (static_cast<int64_t>(k) * C.group + rank) * N;
    if (at < d) branch(at, kept[k]);
  }
  float sum = 0.0f;
  const auto square = [&](int64_t at, const float(&v)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) sum += at + i < d ? v[i] * v[i] : 0.0f;
  };
  each_kept<C.group>(d, rank, kept, branch, square);
  const float scale = rms_scale(norm_sum<C.group>(sum), p.d, p.eps);
  sum = 0.0f;
  each_kept<C.group>(d, rank, kept, branch, [&](int64_t at, float(&v)[N]) {
    float before[N], alpha[N], beta[N];
    load_piece<kAligned, N>(residual, at, d, before);
    load_piece<kAligned, N>(p.beta, at, d, beta);
    if (p.alpha) load_piece<kAligned, N>(p.alpha, at, d, alpha);
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = fmaf(v[i] * scale, beta[i], before[i] * (p.alpha ? alpha[i] : p.alpha_value));
    store_piece<kAligned, N>(out, at, d, v);
    square(at, v);
  });
  if (p.y) {
    T* const y = static_cast<T*>(p.y) + r * p.y_stride[0];
    const float next = rms_scale(norm_sum<C.group>(sum), p.d, p.next_eps);
    const auto stored = [&](int64_t at, float(&v)[N]) { load_piece<kAligned, N>(out, at, d, v); };
    each_kept<C.group>(d, rank, kept, stored, [&](int64_t at, float(&v)[N]) {
      weighted(p.next_weight, p.next_center, at, v);
#pragma unroll
      for (int i = 0; i < N; ++i) v[i] *= next;
      store_piece<kAligned, N>(y, at, d, v);
    });
  }
  depend_launch();
}

/// The sum of a row, not rounded: residual + input * factor * (gate + gate_bias); its LayerNorm with gamma and beta, or
/// with a scale and a shift of each row.
template <DitNormCudaConfig C>
FI_GLOBAL_FN void dit_norm(const DitNormCudaParams& q) {
  using T = scalar_of_t<C.dtype>;
  constexpr int N = kPiece<T>;
  constexpr bool kAligned = C.aligned != 0;
  const DitNormParams& p = q.norm;
  depend_wait();
  const int64_t r = static_cast<int64_t>(block_x()) * (C.threads / C.group) + thread_x() / C.group;
  const int rank = static_cast<int>(thread_x() % C.group);
  const int64_t d = r < p.rows ? p.d : 0;
  const float input_factor = q.input_factor ? *q.input_factor : p.input_factor;
  const auto row_of = [&](const DitRows& t) {
    return t.data ? static_cast<const T*>(t.data) + row_at(r, p.inner, t.stride) : nullptr;
  };
  const T *const input = row_of(p.input), *const residual = row_of(p.residual), *const gate = row_of(p.gate);
  const auto added = [&](const float* bias, int64_t at, float(&v)[N]) {
    if (!bias) return;
    float b[N];
    load_piece<kAligned, N>(bias, at, d, b);
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] += b[i];
  };
  const auto value = [&](int64_t at, float(&v)[N]) {
    float before[N], g[N];
    load_piece<kAligned, N>(input, at, d, v);
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] *= input_factor;
    if (!residual) return;
    load_piece<kAligned, N>(residual, at, d, before);
    if (gate) {
      load_piece<kAligned, N>(gate, at, d, g);
      added(p.gate_bias, at, g);
    }
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = fmaf(v[i], gate ? g[i] : 1.0f, before[i]);
  };
  float kept[kNormKeep][N];
#pragma unroll
  for (int k = 0; k < kNormKeep; ++k) {
    const int64_t at = (static_cast<int64_t>(k) * C.group + rank) * N;
    if (at < d) value(at, kept[k]);
  }
  const float n_inv = rcp_fast(static_cast<float>(p.d));
  float sum = 0.0f;
  each_kept<C.group>(d, rank, kept, value, [&](int64_t at, const float(&v)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) sum += at + i < d ? v[i] : 0.0f;
  });
  const float mean = norm_sum<C.group>(sum) * n_inv;
  sum = 0.0f;
  each_kept<C.group>(d, rank, kept, value, [&](int64_t at, const float(&v)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) sum += at + i < d ? (v[i] - mean) * (v[i] - mean) : 0.0f;
  });
  const float factor = rsqrt_fast(norm_sum<C.group>(sum) * n_inv + p.eps);
  const T *const scale = row_of(p.scale), *const shift = row_of(p.shift);
  T *const sums = const_cast<T*>(row_of(p.residual_out)), *const y = const_cast<T*>(row_of(p.norm_out));
  each_kept<C.group>(d, rank, kept, value, [&](int64_t at, float(&v)[N]) {
    float m[N], s[N];
    // The sum is kept before its inputs are read no more: they may be the same memory.
    store_piece<kAligned, N>(sums, at, d, v);
    if constexpr (C.affine != 0) {
      load_piece<kAligned, N>(p.gamma, at, d, m);
      load_piece<kAligned, N>(p.beta, at, d, s);
    } else {
      load_piece<kAligned, N>(scale, at, d, m);
      load_piece<kAligned, N>(shift, at, d, s);
      added(p.scale_bias, at, m);
      added(p.shift_bias, at, s);
#pragma unroll
      for (int i = 0; i < N; ++i) m[i] += 1.0f;
    }
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = fmaf((v[i] - mean) * factor, m[i], s[i]);
    store_piece<kAligned, N>(y, at, d, v);
  });
  depend_launch();
}

}  // namespace flashinfer::cu
