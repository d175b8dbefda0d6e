// SPDX-License-Identifier: Apache-2.0
// RMSNorm of all heads of Q and of K with the rotation of a video's patches, on a GPU: a block processes a row. The
// sines and cosines of its place are computed once, into shared memory; the second pass over the row finds it in the
// caches.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cuda/block_quantize.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/math.h"
#include "flashinfer/kernels/cuda/rows.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "flashinfer/ops/norm/kernels/diffusion_params.h"
#include "flashinfer/ops/rope/kernels/angle.h"

namespace flashinfer::cu {

/// cos, then sin, of all pairs of a head at row r's place.
FI_GLOBAL_FN void qk_rope_angles(const QkNormRopeCudaParams& q, uint32_t r, float* angles) {
  const QkNormRopeParams& p = q.rows;
  const uint32_t height = static_cast<uint32_t>(p.extent[1]), width = static_cast<uint32_t>(p.extent[2]),
                 s = r % (static_cast<uint32_t>(p.extent[0]) * height * width),
                 place[3] = {s / (height * width), s / width % height, s % width};
  const uint32_t half = static_cast<uint32_t>(p.dim) / 2, first = static_cast<uint32_t>(p.pairs[0]),
                 second = first + static_cast<uint32_t>(p.pairs[1]);
  for (uint32_t j = thread_x(); j < half; j += threads_x()) {
    const uint32_t at = j < first ? place[0] : j < second ? place[1] : place[2];
    cos_sin(static_cast<double>(at) * q.frequency[j], angles + j, angles + half + j);
  }
}

/// N elements, rounded or in 8 bits, at y + at; those from `d` on are not written.
template <bool kAligned, int N, class O>
FI_GLOBAL_FN void store_result(O* y, int64_t at, int64_t d, float (&v)[N], float scale) {
#pragma unroll
  for (int i = 0; i < N; ++i) v[i] *= scale;
  if constexpr (sizeof(O) > 1) {
    store_piece<kAligned, N>(y, at, d, v);
  } else {
    uint32_t words[N / 4];
    narrow<O>(v, words);
    uint8_t* const to = reinterpret_cast<uint8_t*>(y) + at;
    if constexpr (kAligned) {
      store_codes<true, N>(to, words);
    } else {
#pragma unroll
      for (int i = 0; i < N; ++i)
        if (at + i < d) to[i] = static_cast<uint8_t>(words[i / 4] >> (8 * (i % 4)));
    }
  }
}

/// Elements [at, at + N) of a head, normed; those from `d` on are 0.
template <bool kAligned, int N, class T>
FI_GLOBAL_FN void load_normed(const T* x, const T* weight, int64_t at, int64_t d, float scale, float (&v)[N]) {
  load_piece<kAligned, N>(x, at, d, v);
  if (!weight) return;
  float w[N];
  load_piece<kAligned, N>(weight, at, d, w);
#pragma unroll
  for (int i = 0; i < N; ++i) v[i] *= scale * w[i];
}

/// A unit of a rotated head: N elements, or as many of each half.
template <QkNormRopeCudaConfig C, int N, class T, class O>
FI_GLOBAL_FN void rotate_unit(const T* x, const T* weight, O* y, int64_t at, int64_t dim, const float* angles,
                              float norm, float scale) {
  constexpr bool kAligned = C.aligned != 0;
  const int64_t half = dim / 2;
  float a[N], b[N];
  if constexpr (C.interleave != 0) {
    load_normed<kAligned, N>(x, weight, at, dim, norm, a);
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      const bool there = at + i < dim;
      const float c = there ? angles[(at + i) / 2] : 1.0f, s = there ? angles[half + (at + i) / 2] : 0.0f;
      b[i] = fmaf(a[i], c, -a[i + 1] * s);
      b[i + 1] = fmaf(a[i + 1], c, a[i] * s);
    }
    store_result<kAligned, N>(y, at, dim, b, scale);
  } else {
    load_normed<kAligned, N>(x, weight, at, half, norm, a);
    load_normed<kAligned, N>(x + half, weight ? weight + half : weight, at, half, norm, b);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const bool there = at + i < half;
      const float c = there ? angles[at + i] : 1.0f, s = there ? angles[half + at + i] : 0.0f, first = a[i];
      a[i] = fmaf(first, c, -b[i] * s);
      b[i] = fmaf(b[i], c, first * s);
    }
    store_result<kAligned, N>(y, at, half, a, scale);
    store_result<kAligned, N>(y + half, at, half, b, scale);
  }
}

template <QkNormRopeCudaConfig C>
FI_GLOBAL_FN void qk_norm_rope(const QkNormRopeCudaParams& q) {
  using T = scalar_of_t<C.dtype>;
  using O = scalar_of_t<C.out>;
  constexpr bool kAligned = C.aligned != 0;
  constexpr int N = kAligned ? kPiece<T> : 4;
  const QkNormRopeParams& p = q.rows;
  depend_wait();
  float* const reduce = reinterpret_cast<float*>(shared());
  float* const angles = reduce + C.threads / 32;
  const uint32_t r = block_x(), inner = static_cast<uint32_t>(p.inner);
  const int64_t a = r / inner, b = r % inner;
  qk_rope_angles(q, r, angles);
  const T* from = static_cast<const T*>(p.qkv) + a * p.qkv_stride[0] + b * p.qkv_stride[1];
  sync_threads();
  for (int part = 0; part < 3; ++part) {
    const int64_t width = p.heads[part] * p.dim;
    O* const to = static_cast<O*>(p.out[part]) + a * p.out_stride[part][0] + b * p.out_stride[part][1];
    const T* const weight = part < 2 ? static_cast<const T*>(p.weight[part]) : nullptr;
    float norm = 1.0f;
    if (weight) {
      float squares = 0.0f;
      for (int64_t at = static_cast<int64_t>(thread_x()) * N; at < width; at += C.threads * N) {
        float v[N];
        load_piece<kAligned, N>(from, at, width, v);
#pragma unroll
        for (int i = 0; i < N; ++i) squares = fmaf(v[i], v[i], squares);
      }
      squares = block_reduce<C.threads>(squares, Sum{}, reduce);
      norm = rsqrt_fast(fmaf(squares, rcp_fast(static_cast<float>(width)), p.eps));
    }
    const bool turns = part < 2;
    const uint32_t units = static_cast<uint32_t>(ceil_div(turns && C.interleave == 0 ? p.dim / 2 : p.dim, N)),
                   all = units * static_cast<uint32_t>(p.heads[part]);
    for (uint32_t i = thread_x(); i < all; i += C.threads) {
      const int64_t h = i / units, at = static_cast<int64_t>(i % units) * N;
      const T* const x = from + h * p.dim;
      O* const y = to + h * p.out_stride[part][2];
      if (turns) {
        rotate_unit<C, N>(x, weight ? weight + h * p.dim : weight, y, at, p.dim, angles, norm, p.out_scale[part]);
      } else {
        float v[N];
        load_piece<kAligned, N>(x, at, p.dim, v);
        store_result<kAligned, N>(y, at, p.dim, v, p.out_scale[part]);
      }
    }
    from += width;
  }
  depend_launch();
}

}  // namespace flashinfer::cu
