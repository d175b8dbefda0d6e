// SPDX-License-Identifier: Apache-2.0
// RoPE on the CPU: cos and sin of a token's angles once, then all heads of q and k. In-place calls use the same code: a
// pair is read before it is written.
#pragma once
#include "flashinfer/kernels/cpu/lanes.h"
#include "flashinfer/ops/rope/kernels/angle.h"
#include "flashinfer/ops/rope/kernels/params.h"

namespace flashinfer::cpu {

inline constexpr int64_t kRopeChunk = 256;  // pairs at a time: 4 KB of cos and sin on the stack, for any head size

/// cos and sin of pairs [first, first + n) of one token; interleaved: every value twice, sin as (-sin, +sin).
template <bool kInterleave>
FI_VEC_INLINE void fill_angles(const RopeParams& p, int64_t position, int64_t first, int64_t n, float* c, float* s) {
  float cos_of[kRopeChunk], sin_of[kRopeChunk];
  float *to_c = kInterleave ? cos_of : c, *to_s = kInterleave ? sin_of : s;
  if (p.frequency) {
    const double pos = static_cast<double>(position);
    for (int64_t i = 0; i < n; ++i) cos_sin(pos * p.frequency[first + i], to_c + i, to_s + i);
  } else {
    const float* row = p.table + position * p.table_stride + first;
    for (int64_t i = 0; i < n; ++i) to_c[i] = row[i];
    for (int64_t i = 0; i < n; ++i) to_s[i] = row[p.rotary / 2 + i];
  }
  if constexpr (kInterleave) {
    for (int64_t i = 0; i < n; ++i) {
      c[2 * i] = c[2 * i + 1] = cos_of[i];
      s[2 * i] = -sin_of[i];
      s[2 * i + 1] = sin_of[i];
    }
  }
}

/// n pairs (x[i], x[half + i]).
template <class T>
FI_VEC_INLINE void rotate_halves(const T* x, T* y, int64_t half, int64_t n, const float* c, const float* s) {
  constexpr int64_t L = Vec::kLanes;
  int64_t i = 0;
  for (; i + L <= n; i += L) {
    const Vec a = load(x + i), b = load(x + half + i), vc = load(c + i), vs = load(s + i);
    store(y + i, fnma(b, vs, a * vc));
    store(y + half + i, fma(a, vs, b * vc));
  }
  if (i < n) {
    const int64_t m = n - i;
    const Vec a = load_n(x + i, m), b = load_n(x + half + i, m), vc = load_n(c + i, m), vs = load_n(s + i, m);
    store_n(y + i, fnma(b, vs, a * vc), m);
    store_n(y + half + i, fma(a, vs, b * vc), m);
  }
}
/// n/2 pairs (x[2i], x[2i + 1]): x * cos + neighbour * (-sin, +sin).
template <class T>
FI_VEC_INLINE void rotate_neighbours(const T* x, T* y, int64_t n, const float* c, const float* s) {
  write_row(
      y, n,
      [&](int64_t i) {
        const Vec v = load(x + i);
        return fma(swap_neighbours(v), load(s + i), v * load(c + i));
      },
      [&](int64_t i, int64_t m) {
        const Vec v = load_n(x + i, m);
        return fma(swap_neighbours(v), load_n(s + i, m), v * load_n(c + i, m));
      });
}

template <RopeConfig C>
FI_VEC_INLINE void rope_token(const RopeParams& p, int64_t token, int64_t position) {
  using T = scalar_of_t<C.dtype>;
  const int64_t half = p.rotary / 2;
  float c[2 * kRopeChunk], s[2 * kRopeChunk];
  for (int64_t first = 0; first < half; first += kRopeChunk) {
    const int64_t n = half - first < kRopeChunk ? half - first : kRopeChunk;
    fill_angles<C.interleave != 0>(p, position, first, n, c, s);
    for (const RopeTensor& t : p.tensor) {
      for (int64_t h = 0; h < t.heads; ++h) {
        const T* x = static_cast<const T*>(t.in) + token * t.in_stride[0] + h * t.in_stride[1];
        T* y = static_cast<T*>(t.out) + token * t.out_stride[0] + h * t.out_stride[1];
        if constexpr (C.interleave != 0)
          rotate_neighbours(x + 2 * first, y + 2 * first, 2 * n, c, s);
        else
          rotate_halves(x + first, y + first, half, n, c, s);
        if (first == 0 && p.rotary < p.d && x != y)
          memcpy(static_cast<void*>(y + p.rotary), x + p.rotary, static_cast<size_t>(p.d - p.rotary) * sizeof(T));
      }
    }
  }
}

template <RopeConfig C>
void rope(const RopeParams& p, int64_t task) {
  const int64_t begin = task * p.tokens_per_task;
  const int64_t end = begin + p.tokens_per_task < p.tokens ? begin + p.tokens_per_task : p.tokens;
  int64_t request = 0;
  if (!p.positions.data) {  // the last request that starts at or before `begin`
    int64_t high = p.batch;
    while (high - request > 1) {
      const int64_t middle = (request + high) / 2;
      (index_at(p.indptr, middle) <= begin ? request : high) = middle;
    }
  }
  for (int64_t t = begin; t < end; ++t) {
    int64_t position;
    if (p.positions.data) {
      position = index_at(p.positions, t);
    } else {
      while (index_at(p.indptr, request + 1) <= t) ++request;
      position = index_at(p.offsets, request) + t - index_at(p.indptr, request);
    }
    rope_token<C>(p, t, position);
  }
}

}  // namespace flashinfer::cpu
