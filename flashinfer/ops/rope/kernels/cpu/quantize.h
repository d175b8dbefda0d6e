// SPDX-License-Identifier: Apache-2.0
// RoPE with a cast to FP8.
#pragma once
#include "flashinfer/kernels/cpu/narrow.h"
#include "flashinfer/ops/rope/kernels/cpu/rope.h"

namespace flashinfer::cpu {

/// y[i] = cast(value(i) * scale) over [0, n); value(i, m) loads m lanes.
template <class To, class Full, class Tail>
FI_VEC_INLINE void quantize_row(To* y, int64_t n, float scale, Full value, Tail tail) {
  const Vec s = splat(scale);
  int64_t i = 0;
  for (; i + Vec::kLanes <= n; i += Vec::kLanes) store_saturated(y + i, value(i) * s);
  if (i < n) store_saturated_n(y + i, tail(i, n - i) * s, n - i);
}

/// Pairs [first, first + n) of a row whose rotary part has `half` pairs; c and s are theirs.
template <bool kInterleave, class From, class To>
FI_VEC_INLINE void rotate_quantize(const From* x, To* y, int64_t half, int64_t first, int64_t n, const float* c,
                                   const float* s, float scale) {
  if constexpr (kInterleave) {
    x += 2 * first;
    quantize_row(
        y + 2 * first, 2 * n, scale,
        [&](int64_t i) {
          const Vec v = load(x + i);
          return fma(swap_neighbours(v), load(s + i), v * load(c + i));
        },
        [&](int64_t i, int64_t m) {
          const Vec v = load_n(x + i, m);
          return fma(swap_neighbours(v), load_n(s + i, m), v * load_n(c + i, m));
        });
  } else {
    const From *a = x + first, *b = x + half + first;
    quantize_row(
        y + first, n, scale, [&](int64_t i) { return fnma(load(b + i), load(s + i), load(a + i) * load(c + i)); },
        [&](int64_t i, int64_t m) {
          return fnma(load_n(b + i, m), load_n(s + i, m), load_n(a + i, m) * load_n(c + i, m));
        });
    quantize_row(
        y + half + first, n, scale, [&](int64_t i) { return fma(load(a + i), load(s + i), load(b + i) * load(c + i)); },
        [&](int64_t i, int64_t m) {
          return fma(load_n(a + i, m), load_n(s + i, m), load_n(b + i, m) * load_n(c + i, m));
        });
  }
}

/// The heads of one part of one token.
template <RopeQuantizeConfig C>
FI_VEC_INLINE void rope_quantize_heads(const RopeQuantizeParams& p, const RopeQuantizePart& r, int64_t token,
                                       int64_t slot) {
  using From = scalar_of_t<C.dtype>;
  using To = scalar_of_t<C.out>;
  const From* x = token_row<From>(r.from, token);
  To* y = token_row<To>(r.to, r.paged ? slot : token);
  if (!r.rotate) {
    for (int64_t h = 0; h < r.heads; ++h, x += r.from.stride_h, y += r.to.stride_h)
      quantize_row(
          y, r.dim, r.scale, [&](int64_t i) { return load(x + i); },
          [&](int64_t i, int64_t m) { return load_n(x + i, m); });
    return;
  }
  const int64_t half = p.rope.rotary / 2, position = index_at(p.rope.positions, token);
  float c[2 * kRopeChunk], s[2 * kRopeChunk];
  for (int64_t first = 0; first < half; first += kRopeChunk) {
    const int64_t n = half - first < kRopeChunk ? half - first : kRopeChunk;
    fill_angles<C.interleave != 0>(p.rope, position, first, n, c, s);
    for (int64_t h = 0; h < r.heads; ++h)
      rotate_quantize<C.interleave != 0>(x + h * r.from.stride_h, y + h * r.to.stride_h, half, first, n, c, s, r.scale);
  }
}

/// One part of one token; zeros where the token is padding and the part is not a cache.
template <RopeQuantizeConfig C>
FI_VEC_INLINE void rope_quantize_part(const RopeQuantizeParams& p, const RopeQuantizePart& r, int64_t token) {
  const int64_t slot = p.slot ? p.slot[token] : token;
  if (slot >= 0) return rope_quantize_heads<C>(p, r, token, slot);
  for (int64_t h = 0; !r.paged && h < r.heads; ++h)
    memset(token_row<uint8_t>(r.to, token) + h * r.to.stride_h, 0, static_cast<size_t>(r.dim));
}

// Q of a task's tokens, then K, then V: fewer memory streams at a time. The two parts of a head are often slices of one
// row, so they are processed together.
template <RopeQuantizeConfig C>
void rope_quantize(const RopeQuantizeParams& p, int64_t task) {
  const int64_t begin = task * p.tokens_per_task;
  const int64_t end = begin + p.tokens_per_task < p.tokens ? begin + p.tokens_per_task : p.tokens;
  for (int first = 0; first < kRopeQuantizeParts; first += 2)
    for (int64_t t = begin; t < end; ++t)
      for (int i = first; i < first + 2 && i < kRopeQuantizeParts; ++i)
        if (p.part[i].dim) rope_quantize_part<C>(p, p.part[i], t);
}

}  // namespace flashinfer::cpu
