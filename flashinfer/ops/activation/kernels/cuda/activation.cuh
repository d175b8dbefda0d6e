// SPDX-License-Identifier: Apache-2.0
// Gated activations on a GPU, elementwise: one read of both halves and one write. A block processes a section of one
// row, so that the row's address is computed once in a block, whatever the rank.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/math.h"
#include "flashinfer/kernels/cuda/rows.h"
#include "flashinfer/ops/activation/kernels/params.h"

namespace flashinfer::cu {

template <Activation K>
FI_GLOBAL_FN float activate(float x) {
  if constexpr (K == Activation::kSilu)
    return x / (1.0f + exp_fast(-x));
  else if constexpr (K == Activation::kGelu)
    return 0.5f * x * erfcf(x * -0.70710678f);  // erfc keeps the relative precision of the lower tail
  else
    return x / (1.0f + exp_fast(x * -2.0f * 0.7978845608f * (1.0f + 0.044715f * x * x)));
}

template <ActCudaConfig C>
FI_GLOBAL_FN void act_and_mul(const ActParams& p) {
  using T = scalar_of_t<C.dtype>;
  constexpr int N = kPiece<T>;
  depend_wait();
  // 32-bit indices: a 64-bit division is a call of some hundred instructions.
  const uint32_t pieces = static_cast<uint32_t>(ceil_div(p.d, N)), sections = ceil_div(pieces, C.threads);
  // Narrow rows share a block, so that all its threads have work. Rows of a section or more need no division for it.
  constexpr uint32_t kThreads = C.threads;
  uint32_t row = block_x(), section = 0, together = 1, slot = 0, piece = thread_x();
  if (sections > 1) {
    row = block_x() / sections;
    section = block_x() - row * sections;
  } else if (pieces < kThreads) {
    together = kThreads / pieces;
    slot = thread_x() / pieces;
    piece = thread_x() - slot * pieces;
  }
  const uint32_t r = row * together + slot;
  const int64_t at = static_cast<int64_t>(section * kThreads + piece) * N;
  if (slot < together && r < p.rows && at < p.d) {
    uint32_t rest = r;
    int64_t in_at = 0, out_at = 0;
    for (int32_t k = p.outer - 1; k > 0; --k) {
      const uint32_t q = rest / static_cast<uint32_t>(p.size[k]);
      const int64_t i = rest - static_cast<int64_t>(q) * p.size[k];
      in_at += i * p.input_stride[k];
      out_at += i * p.out_stride[k];
      rest = q;
    }
    const T* gate = static_cast<const T*>(p.input) + in_at + rest * p.input_stride[0];
    float x[N], up[N];
    load_piece<C.aligned != 0, N, Hint::kOnce>(gate, at, p.d, x);
    load_piece<C.aligned != 0, N, Hint::kOnce>(gate + p.d, at, p.d, up);
#pragma unroll
    for (int i = 0; i < N; ++i) x[i] = activate<C.kind>(x[i]) * up[i];
    store_piece<C.aligned != 0, N>(static_cast<T*>(p.out) + out_at + rest * p.out_stride[0], at, p.d, x);
  }
  depend_launch();
}

}  // namespace flashinfer::cu
