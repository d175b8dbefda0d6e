// SPDX-License-Identifier: Apache-2.0
// RoPE on a GPU: a block processes a token. A thread computes cos and sin of its pairs once and rotates them in every
// head of q and of k. In-place calls use the same code: a thread reads its pairs before it writes them.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/rows.h"
#include "flashinfer/ops/rope/kernels/angle.h"
#include "flashinfer/ops/rope/kernels/params.h"

namespace flashinfer::cu {

FI_GLOBAL_FN int64_t rope_position(const RopeParams& p, int64_t token) {
  if (p.positions.data) return index_at(p.positions, token);
  int64_t request = 0, high = p.batch;  // the last request that starts at or before the token
  while (high - request > 1) {
    const int64_t middle = (request + high) / 2;
    (index_at(p.indptr, middle) <= token ? request : high) = middle;
  }
  return index_at(p.offsets, request) + token - index_at(p.indptr, request);
}

/// Of pair i, 0 where there is none.
FI_GLOBAL_FN void rope_angle(const RopeParams& p, int64_t position, int64_t i, float* c, float* s) {
  *c = 1.0f, *s = 0.0f;
  if (i >= p.rotary / 2) return;
  if (p.frequency) {
    cos_sin(static_cast<double>(position) * p.frequency[i], c, s);
  } else {
    const float* row = p.table + position * p.table_stride;
    *c = row[i], *s = row[p.rotary / 2 + i];
  }
}

/// Work units of a head: pieces of the half (interleaved: of all) that is rotated, then pieces that are copied.
template <RopeCudaConfig C>
FI_GLOBAL_FN void rope(const RopeParams& p) {
  using T = scalar_of_t<C.dtype>;
  // Single elements need more registers: with whole pieces ptxas spilled on sm_80.
  constexpr int N = C.aligned ? kPiece<T> : kPiece<T> / 2;
  constexpr bool kAligned = C.aligned != 0;
  depend_wait();
  const int64_t token = block_x(), position = rope_position(p, token);
  const int64_t half = p.rotary / 2, turned = C.interleave ? p.rotary : half;
  constexpr uint32_t kThreads = C.threads;
  const uint32_t turns = static_cast<uint32_t>(ceil_div(turned, N)),
                 units = turns + static_cast<uint32_t>(ceil_div(p.d - p.rotary, N));
  const uint32_t width = units < kThreads ? units : kThreads, slots = kThreads / width, slot = thread_x() / width;
  for (uint32_t u = thread_x() % width; slot < slots && u < units; u += width) {
    const int64_t at = u < turns ? static_cast<int64_t>(u) * N : p.rotary + static_cast<int64_t>(u - turns) * N;
    float c[N], s[N];
    if (u < turns) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if (C.interleave == 0) {
          rope_angle(p, position, at + i, &c[i], &s[i]);
        } else if (i % 2 == 0) {
          rope_angle(p, position, (at + i) / 2, &c[i], &s[i]);
          c[i + 1] = c[i], s[i + 1] = s[i];
        }
      }
    }
    for (const RopeTensor& t : p.tensor) {
      for (int64_t h = slot; h < t.heads; h += slots) {
        const T* x = static_cast<const T*>(t.in) + token * t.in_stride[0] + h * t.in_stride[1];
        T* y = static_cast<T*>(t.out) + token * t.out_stride[0] + h * t.out_stride[1];
        float a[N], b[N], turned_a[N];
        if (u >= turns) {
          if (x == y) continue;
          load_piece<kAligned, N>(x, at, p.d, a);
          store_piece<kAligned, N>(y, at, p.d, a);
          continue;
        }
        load_piece<kAligned, N>(x, at, turned, a);
        if constexpr (C.interleave != 0) {
#pragma unroll
          for (int i = 0; i < N; i += 2) {
            turned_a[i] = a[i] * c[i] - a[i + 1] * s[i];
            turned_a[i + 1] = a[i + 1] * c[i] + a[i] * s[i];
          }
          store_piece<kAligned, N>(y, at, turned, turned_a);
        } else {
          load_piece<kAligned, N>(x + half, at, turned, b);
#pragma unroll
          for (int i = 0; i < N; ++i) {
            turned_a[i] = a[i] * c[i] - b[i] * s[i];
            b[i] = b[i] * c[i] + a[i] * s[i];
          }
          store_piece<kAligned, N>(y, at, turned, turned_a);
          store_piece<kAligned, N>(y + half, at, turned, b);
        }
      }
    }
  }
  depend_launch();
}

}  // namespace flashinfer::cu
