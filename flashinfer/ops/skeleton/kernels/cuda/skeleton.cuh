// SPDX-License-Identifier: Apache-2.0
// On a GPU: a block takes a row, in pieces of 16 bytes. The emulator runs the same source on the CPU
// (docs/emulator.md).
#pragma once
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/rows.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "flashinfer/ops/skeleton/kernels/params.h"

namespace flashinfer::cu {

template <SkeletonCudaConfig C>
FI_GLOBAL_FN void skeleton(const SkeletonParams& p) {
  using T = scalar_of_t<C.dtype>;
  constexpr int N = kPiece<T>;
  constexpr int64_t kStep = static_cast<int64_t>(C.threads) * N;
  depend_wait();  // waits for what the previous kernel writes: before the first access
  const T* x = static_cast<const T*>(p.input) + block_x() * p.input_stride;
  T* y = static_cast<T*>(p.out) + block_x() * p.out_stride;
  float largest = 0.0f, v[N];
  for (int64_t at = thread_x() * N; at < p.d; at += kStep) {
    load_piece<C.aligned, N>(x, at, p.d, v);
#pragma unroll
    for (int i = 0; i < N; ++i) largest = Max{}(largest, fabsf(v[i]));
  }
  largest = block_reduce<C.threads>(largest, Max{}, reinterpret_cast<float*>(shared()));
  const float scale = largest > 0.0f ? p.peak / largest : 0.0f;
  for (int64_t at = thread_x() * N; at < p.d; at += kStep) {
    load_piece<C.aligned, N>(x, at, p.d, v);
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] *= scale;
    store_piece<C.aligned, N>(y, at, p.d, v);
  }
  depend_launch();
}

}  // namespace flashinfer::cu
