// SPDX-License-Identifier: Apache-2.0
// The rows of a delta-rule state (delta_token.h) through some tokens: of widths 64 and 128 in registers, of others in
// memory.
#pragma once
#include "flashinfer/ops/linear_attention/kernels/common/delta_strip.h"

namespace flashinfer::cpu::linear {

/// One row of `n` elements as vectors in `row` (zeros behind n).
template <class S>
FI_VEC_INLINE void store_state_row(S* to, const float* row, int64_t n) {
  write_row(
      to, n, [&](int64_t i) { return load(row + i); }, [&](int64_t i, int64_t left) { return load_n(row + i, left); });
}

/// The sums of the lanes of four vectors, each in the order of reduce_add; with AVX-512 for 13 operations instead
/// of 36.
FI_VEC_INLINE void reduce_add4(Vec a, Vec b, Vec c, Vec d, float* to) {
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
  const __m512 ab = _mm512_add_ps(_mm512_shuffle_f32x4(a.r, b.r, 0x44), _mm512_shuffle_f32x4(a.r, b.r, 0xee));
  const __m512 cd = _mm512_add_ps(_mm512_shuffle_f32x4(c.r, d.r, 0x44), _mm512_shuffle_f32x4(c.r, d.r, 0xee));
  __m512 x = _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
  x = _mm512_add_ps(x, cpu::detail::swap_pairs(x));
  x = _mm512_add_ps(x, cpu::detail::swap_lanes(x));  // four equal lanes for each of a, b, c, d
  to[0] = _mm512_cvtss_f32(x);
  to[1] = _mm_cvtss_f32(_mm512_extractf32x4_ps(x, 1));
  to[2] = _mm_cvtss_f32(_mm512_extractf32x4_ps(x, 2));
  to[3] = _mm_cvtss_f32(_mm512_extractf32x4_ps(x, 3));
#else
  to[0] = reduce_add(a), to[1] = reduce_add(b), to[2] = reduce_add(c), to[3] = reduce_add(d);
#endif
}

/// The vectors of one or two rows in registers.
template <int Rows, int Vecs>
struct RowRegisters {
  Vec s[Rows][Vecs];

  template <class S>
  FI_VEC_INLINE void read(const S* from, int64_t stride) {
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
      for (int j = 0; j < Vecs; ++j) s[r][j] = load(from + r * stride + j * Vec::kLanes);
  }
  template <class S>
  FI_VEC_INLINE void write(S* to, int64_t stride) const {
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
      for (int j = 0; j < Vecs; j += 2) write_pair(to + r * stride + j * Vec::kLanes, s[r][j], s[r][j + 1]);
  }
  template <bool Channels, bool Corrections, class S>
  FI_VEC_INLINE void step(const DeltaToken<S>& t, int64_t v) {
    Vec a[Rows], b[Rows];
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) a[r] = b[r] = zero();
#pragma GCC unroll 16
    for (int j = 0; j < Vecs; ++j) {
      const Vec k = load(t.kd + j * Vec::kLanes), q = load(t.qd + j * Vec::kLanes);
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) a[r] = fma(s[r][j], k, a[r]), b[r] = fma(s[r][j], q, b[r]);
    }
    float sums[4];  // S[v] . kd of the rows, then S[v] . qd
    reduce_add4(a[0], a[Rows - 1], b[0], b[Rows - 1], sums);
    Vec d[Rows];
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
      const float x = t.beta * (t.v[v + r] - sums[r]);
      t.o[v + r] = sums[2 + r] + x * t.kq;
      if constexpr (Corrections) t.d[v + r] = x;
      d[r] = splat(x);
    }
    const Vec alpha = splat(t.alpha);
#pragma GCC unroll 16
    for (int j = 0; j < Vecs; ++j) {
      const Vec k = load(t.k + j * Vec::kLanes), decay = Channels ? load(t.decay + j * Vec::kLanes) : alpha;
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) s[r][j] = fma(d[r], k, s[r][j] * decay);
    }
  }
};

template <int Rows, int Vecs, bool Channels, bool Corrections, class S>
FI_VEC_INLINE void delta_step_rows(const DeltaState<S>& state, const DeltaToken<S>* tokens, int64_t count, int64_t v) {
  // The arithmetic of a few rows fills the out-of-order window, so that without this, loads and arithmetic alternate.
  const char* const ahead = reinterpret_cast<const char*>(state.in + v * state.in_row) + kStateBytesAhead;
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
    for (int line = 0; line < Vecs * Vec::kLanes * static_cast<int>(sizeof(S)); line += 64)
      __builtin_prefetch(ahead + r * state.in_row * static_cast<int64_t>(sizeof(S)) + line, 1, 3);
  RowRegisters<Rows, Vecs> row;
  row.read(state.in + v * state.in_row, state.in_row);
  for (int64_t t = 0; t < count; ++t) {
    row.template step<Channels, Corrections>(tokens[t], v);
    if (tokens[t].after) row.write(tokens[t].after + v * tokens[t].after_row, tokens[t].after_row);
  }
  if (state.out) row.write(state.out + v * state.out_row, state.out_row);
}

/// A row of any width, in `row`, memory for padded(K) floats.
template <bool Channels, bool Corrections, class S>
inline void delta_any_row(const DeltaState<S>& state, const DeltaToken<S>* tokens, int64_t count, int64_t v,
                          float* row) {
  const int64_t n = state.width, wide = padded(n);
  constexpr int64_t L = Vec::kLanes;
  widen_as<S>(state.in, v * state.in_row, n, row);
  for (int64_t i = 0; i < count; ++i) {
    const DeltaToken<S>& t = tokens[i];
    const float d = t.beta * (t.v[v] - dot_row(row, t.kd, n));
    t.o[v] = dot_row(row, t.qd, n) + d * t.kq;
    if constexpr (Corrections) t.d[v] = d;
    for (int64_t j = 0; j < wide; j += L) {
      const Vec decay = Channels ? load(t.decay + j) : splat(t.alpha);
      store(row + j, fma(splat(d), load(t.k + j), load(row + j) * decay));
    }
    if (t.after) store_state_row(t.after + v * t.after_row, row, n);
  }
  if (state.out) store_state_row(state.out + v * state.out_row, row, n);
}

/// All rows of a head's state through `count` tokens. K: 64 or 128, or 0 for any width. Channels: every token has
/// decays of its channels. Corrections: every token's d is kept.
template <int K, bool Channels, bool Corrections = false, class S>
inline void delta_rows(const DeltaState<S>& state, const DeltaToken<S>* tokens, int64_t count, float* row) {
  if constexpr (K == 0) {
    for (int64_t v = 0; v < state.rows; ++v) delta_any_row<Channels, Corrections>(state, tokens, count, v, row);
  } else {
    constexpr int kVecs = K / Vec::kLanes, kRows = kVecs <= 8 ? 2 : 1;  // two rows' vectors fill half the registers
    int64_t v = 0;
    if constexpr (kStrips<S>)
      if (count == 1 && !(tokens->after && state.out))
        v = DeltaStrips<S, K, Channels, Corrections>(state, *tokens).run();
    for (; v + kRows <= state.rows; v += kRows)
      delta_step_rows<kRows, kVecs, Channels, Corrections>(state, tokens, count, v);
    for (; v < state.rows; ++v) delta_step_rows<1, kVecs, Channels, Corrections>(state, tokens, count, v);
  }
}

}  // namespace flashinfer::cpu::linear
