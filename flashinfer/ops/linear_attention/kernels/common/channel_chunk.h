// SPDX-License-Identifier: Apache-2.0
// The delta rule with a decay of each key channel, by chunks of 16 tokens. A token with write key k, read key r, scaled
// query q, decays a and values v does
//   S <- S diag(a);  u = v - S r;  S <- S + u k^T;  o = S q
// With D_i the product of the decays up to token i of the chunk, E_i that of the decays behind it, and a_ij the product
// of the decays of tokens j + 1 .. i:
//   A_ij = r_i . (a_ij o k_j) for j < i;  P_ij = q_i . (a_ij o k_j) for j <= i
//   (I + A) U = V - (D o R) S^T;  O = (D o Q) S^T + P U;  S <- S diag(D_C) + U^T (E o K)
// All factors are products of decays between two tokens, as the recurrence forms them: no logarithm, and no exponential
// that could overflow, for gates of any strength; 0 clears a channel exactly. A and P have 128 factors for each pair of
// tokens: for a j they are made by going on from token to token, which is a sixth of the work. U of a token depends on
// no later token, so a state within the chunk is that of a call that ends there, bit for bit.
#pragma once
#include "flashinfer/ops/linear_attention/kernels/common/channel_chunk_params.h"
#include "flashinfer/ops/linear_attention/kernels/common/delta_rows.h"
#include "flashinfer/ops/linear_attention/kernels/common/products.h"

namespace flashinfer::cpu::linear {

/// Subnormal operands and results are 0 while it lives: products of decays pass through that range on their way to 0,
/// and each such operation would take over a hundred cycles.
class FlushSubnormals {
 public:
#if defined(__SSE__) && defined(__x86_64__)
  FlushSubnormals() : before_(__builtin_ia32_stmxcsr()) { __builtin_ia32_ldmxcsr(before_ | 0x8040); }
  ~FlushSubnormals() { __builtin_ia32_ldmxcsr(before_); }

 private:
  unsigned before_;
#else
  FlushSubnormals() {}
  ~FlushSubnormals() {}
#endif
};

/// One head: its state, and up to 16 tokens, which the caller writes.
struct ChannelChunk {
  static constexpr int64_t C = kChannelChunk, L = Vec::kLanes;
  int64_t k_wide, v_wide, step;
  float *tile, *state, *spare;  // S [V][K]; S^T [K][V], the valid one when `by_columns`; S^T within the chunk
  bool by_columns = false;
  float *whole, *text, *left, *wide, *turned, *a, *p;

  ChannelChunk(float* memory, int64_t width, int64_t rows)
      : k_wide(padded(width)), v_wide(padded(rows)), step(4 * k_wide + 2 * v_wide) {
    float* at = memory;
    const auto take = [&](int64_t count) {
      float* const x = at;
      at += count;
      return x;
    };
    tile = take(k_wide * v_wide), state = take(k_wide * v_wide), spare = take(k_wide * v_wide), whole = take(k_wide);
    text = take(C * step), left = take(2 * C * k_wide), wide = take(2 * C * v_wide), turned = take(C * k_wide);
    a = take(C * C), p = take(C * C);
  }
  // Rows of token i.
  float* k(int64_t i) const { return text + i * step; }
  float* r(int64_t i) const { return k(i) + k_wide; }
  float* q(int64_t i) const { return r(i) + k_wide; }
  float* decay(int64_t i) const { return q(i) + k_wide; }
  float* u(int64_t i) const { return decay(i) + k_wide; }  // v, then u
  float* o(int64_t i) const { return u(i) + v_wide; }

  void to_rows() {
    if (by_columns) transpose(state, v_wide, k_wide, v_wide, tile, k_wide);
    by_columns = false;
  }
  void to_columns() {
    if (!by_columns) transpose(tile, k_wide, v_wide, k_wide, state, v_wide);
    by_columns = true;
  }
  /// sums[0], [1] = r_i . x, r_i . y; sums[2], [3] = q_i . x, q_i . y.
  template <int Vecs>
  FI_VEC_INLINE void dots(int64_t i, int64_t from, const Vec (&x)[Vecs], const Vec (&y)[Vecs], float* sums) const {
    const float *const ri = r(i) + from, *const qi = q(i) + from;
    Vec ax = zero(), ay = zero(), px = zero(), py = zero();
#pragma GCC unroll 8
    for (int e = 0; e < Vecs; ++e) {
      const Vec re = load(ri + e * L), qe = load(qi + e * L);
      ax = fma(re, x[e], ax), ay = fma(re, y[e], ay), px = fma(qe, x[e], px), py = fma(qe, y[e], py);
    }
    reduce_add4(ax, ay, px, py, sums);
  }
  /// Adds the channels [from, from + Vecs vectors) of A and P, two columns at a time.
  template <int Vecs>
  void add_pairs(int64_t m, int64_t from) {
    float sums[4];
    for (int64_t j = 0; j < m; j += 2) {
      Vec x[Vecs], y[Vecs];
#pragma GCC unroll 8
      for (int e = 0; e < Vecs; ++e) x[e] = load(k(j) + from + e * L), y[e] = zero();
      dots<Vecs>(j, from, x, y, sums);
      p[j * C + j] += sums[2];
      if (j + 1 == m) return;
#pragma GCC unroll 8
      for (int e = 0; e < Vecs; ++e) {
        x[e] *= load(decay(j + 1) + from + e * L);
        y[e] = load(k(j + 1) + from + e * L);
      }
      dots<Vecs>(j + 1, from, x, y, sums);
      a[(j + 1) * C + j] -= sums[0], p[(j + 1) * C + j] += sums[2], p[(j + 1) * C + j + 1] += sums[3];
      for (int64_t i = j + 2; i < m; ++i) {
#pragma GCC unroll 8
        for (int e = 0; e < Vecs; ++e) {
          const Vec d = load(decay(i) + from + e * L);
          x[e] *= d, y[e] *= d;
        }
        dots<Vecs>(i, from, x, y, sums);
        a[i * C + j] -= sums[0], a[i * C + j + 1] -= sums[1], p[i * C + j] += sums[2], p[i * C + j + 1] += sums[3];
      }
    }
  }
  /// a = -A below the diagonal, p = P up to it.
  void pairs(int64_t m) {
    for (int64_t i = 0; i < m * C; i += L) store(a + i, zero()), store(p + i, zero());
    int64_t at = 0;
    if constexpr (L == 16) {
      for (; at + 8 * L <= k_wide; at += 8 * L) add_pairs<8>(m, at);
      for (; at + 4 * L <= k_wide; at += 4 * L) add_pairs<4>(m, at);
    }
    for (; at < k_wide; at += kPad) add_pairs<kPad / L>(m, at);
  }
  /// left = D o R, then D o Q.
  void scale_left(int64_t m) const {
    for (int64_t e = 0; e < k_wide; e += L) {
      Vec d = splat(1.0f);
      for (int64_t i = 0; i < m; ++i) {
        d *= load(decay(i) + e);
        store(left + i * k_wide + e, d * load(r(i) + e));
        store(left + (m + i) * k_wide + e, d * load(q(i) + e));
      }
    }
  }
  /// The outputs and U of the m tokens; `sums` of the products with S, which have the most terms.
  void run(int64_t m, Sums sums) {
    pairs(m);
    scale_left(m);
    multiply(2 * m, left, k_wide, state, v_wide, wide, v_wide, k_wide, v_wide, false, sums);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t e = 0; e < v_wide; e += L) {
        store(u(i) + e, load(u(i) + e) - load(wide + i * v_wide + e));
        store(o(i) + e, load(wide + (m + i) * v_wide + e));
      }
    multiply_lower<false>(m, a, C, u(0), u(0), step, v_wide);
    multiply_lower<true>(m, p, C, u(0), o(0), step, v_wide);
  }
  /// Rows [j, j + Rows) of S^T after n tokens: the decay of each times it, plus `turned` times U.
  template <int Rows>
  void update_rows(int64_t j, int64_t n, float* to) const {
    for (int64_t e = 0; e < v_wide; e += 2 * L) {
      Vec x[Rows][2];
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
        const Vec d = splat(whole[j + i]);
        const float* const from = state + (j + i) * v_wide + e;
        x[i][0] = d * load(from), x[i][1] = d * load(from + L);
      }
      for (int64_t t = 0; t < n; ++t) {
        const Vec u0 = load(u(t) + e), u1 = load(u(t) + e + L);
#pragma GCC unroll 16
        for (int i = 0; i < Rows; ++i) {
          const Vec by = splat(turned[(j + i) * C + t]);
          x[i][0] = fma(by, u0, x[i][0]), x[i][1] = fma(by, u1, x[i][1]);
        }
      }
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
        float* const row = to + (j + i) * v_wide + e;
        store(row, x[i][0]), store(row + L, x[i][1]);
      }
    }
  }
  /// to = S^T after n tokens of the chunk; `to` may be `state`.
  void state_after(int64_t n, float* to) const {
    for (int64_t e = 0; e < k_wide; e += L) {
      Vec d = splat(1.0f);
      for (int64_t i = n - 1; i >= 0; --i) {
        store(left + i * k_wide + e, d * load(k(i) + e));
        d *= load(decay(i) + e);
      }
      store(whole + e, d);
    }
    transpose(left, k_wide, C, k_wide, turned, C);
    int64_t j = 0;
    for (; j + 12 <= k_wide; j += 12) update_rows<12>(j, n, to);
    for (; j + 8 <= k_wide; j += 8) update_rows<8>(j, n, to);
    for (; j < k_wide; j += 4) update_rows<4>(j, n, to);
  }
};

}  // namespace flashinfer::cpu::linear
