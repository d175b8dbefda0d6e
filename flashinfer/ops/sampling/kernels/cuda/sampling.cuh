// SPDX-License-Identifier: Apache-2.0
// Softmax on a GPU: a block processes a row. The first pass keeps a maximum and a sum relative to it in every thread,
// the second writes: two reads (the second from L2 up to a few thousand rows) and one write. Sums have one order for a
// given v.
#pragma once
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/math.h"
#include "flashinfer/kernels/cuda/rows.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "flashinfer/ops/sampling/kernels/params.h"

namespace flashinfer::cu {

template <SoftmaxCudaConfig C>
FI_GLOBAL_FN void softmax(const SoftmaxCudaParams& p) {
  using T = scalar_of_t<C.dtype>;
  constexpr int N = kPiece<T>;
  constexpr bool kAligned = C.aligned != 0;
  depend_wait();
  const int64_t r = block_x();
  const T* x = static_cast<const T*>(p.logits) + r * p.logits_stride;
  float* y = p.out + r * p.out_stride;
  float* scratch = reinterpret_cast<float*>(shared());
  float inverse = p.inverse;
  if (p.temperature) {
    const float t = to_f32(static_cast<const scalar_of_t<C.temperature>*>(p.temperature)[r * p.temperature_stride]);
    inverse = t == 0.0f || t == -1.0f ? 0.0f : 1.0f / t;  // all logits become equal
  }
  // A masked token stays masked at T = 0 (0 * -inf would be NaN).
  const auto scaled = [&](float v) { return v == -kInf ? v : v * inverse; };
  const auto each = [&](auto f) {
    for (int64_t at = thread_x() * static_cast<int64_t>(N); at < p.v; at += static_cast<int64_t>(C.threads) * N) {
      float v[N];
      if (at + N <= p.v)
        load_piece<kAligned, N>(x, at, p.v, v);
      else
        load_piece<false, N>(x, at, p.v, v);
      f(at, v);
    }
  };
  float m = -kInf, sum = 0.0f;
  each([&](int64_t at, const float(&v)[N]) {
    float top = m;
#pragma unroll
    for (int i = 0; i < N; ++i)
      if (at + i < p.v) top = Max{}(scaled(v[i]), top);
    const float shift = top == -kInf ? 0.0f : top;
    sum *= exp_fast(m - shift);
    m = top;
#pragma unroll
    for (int i = 0; i < N; ++i)
      if (at + i < p.v) sum += exp_fast(scaled(v[i]) - shift);
  });
  const float top = block_reduce<C.threads>(m, Max{}, scratch);
  const float shift = top == -kInf ? 0.0f : top;  // a row of -inf: exp gives zeros
  sum = block_reduce<C.threads>(m == -kInf ? sum : sum * exp_fast(m - shift), Sum{}, scratch);
  const float scale = sum == 0.0f ? 0.0f : 1.0f / sum;
  each([&](int64_t at, float(&v)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = exp_fast(scaled(v[i]) - shift) * scale;
    if (at + N <= p.v)
      store_piece<kAligned, N>(y, at, p.v, v);
    else
      store_piece<false, N>(y, at, p.v, v);
  });
  depend_launch();
}

}  // namespace flashinfer::cu
