// SPDX-License-Identifier: Apache-2.0
// The delta rule with a decay of each key channel on tensor cores, 16 tokens at a time. With D_i the product of the
// decays up to token i, E_i of those behind it and a_ij of those of j + 1 .. i, channel by channel:
//   A_ij = beta_i k_i . (a_ij o k_j) for j < i;  U = (I + A)^-1 diag(beta) (V - (D o K) S^T)
//   P_ij = q_i . (a_ij o k_j) for j <= i;  O = (D o Q) S^T + P U;  S <- S diag(D_16) + U^T (E o K)
// All factors are products of decays, as the recurrence forms them: no logarithm, and no exponential that could
// overflow, at any strength of the gates; 0 clears a channel. A pair (i, j) is a product of two operands: for the
// highest bit h in which i and j differ, i is in the second half of a group of 2 h tokens and j in its first half, so
// that a_ij is the product of the decays from the half's begin to i and of those behind j within the first half: four
// products (h = 1, 2, 4, 8), of which each pair is in one.
// The four warps share the channels of A and P, then each takes 16 rows of S. Operands are sums of two bf16 parts.
#pragma once
#include "flashinfer/ops/linear_attention/kernels/cuda/chunk_state.cuh"
#include "flashinfer/ops/linear_attention/kernels/kda/chunk_cuda_config.h"

namespace flashinfer::cu::linear {

/// acc += a b, both in two parts, without the product of the low ones.
FI_GLOBAL_FN void mma_parts(Acc& acc, const Split& a, Frag2 b_high, Frag2 b_low) {
  acc = mma<bf16_t>(a.low, b_high, acc);
  acc = mma<bf16_t>(a.high, b_low, acc);
  acc = mma<bf16_t>(a.high, b_high, acc);
}
/// The same for two neighbouring tiles.
FI_GLOBAL_FN void mma_parts(Acc& left, Acc& right, const Split& a, Frag4 b_high, Frag4 b_low) {
  mma_pair(left, right, a.low, b_high);
  mma_pair(left, right, a.high, b_low);
  mma_pair(left, right, a.high, b_high);
}

template <KdaChunkCudaConfig C>
struct ChannelBlock {
  static constexpr int kTokens = kKdaCudaTokens, kPieces = C.width / 8, kTiles = C.width / 8;
  static constexpr int kSteps = C.width / 64;  // products of 16 channels that a warp takes of A and P
  Acc s[kTiles];                               // rows 16 warp .. + 16 of the state
  uint32_t origin;                             // unknown_zero() of a step

  FI_GLOBAL_FN static float* floats(int at) { return reinterpret_cast<float*>(shared()) + at; }
  FI_GLOBAL_FN static bf16_t* operand(int i) { return reinterpret_cast<bf16_t*>(floats(i * C.operand())); }
  FI_GLOBAL_FN static bf16_t* square(int i) {
    return reinterpret_cast<bf16_t*>(floats(C.pairs_at())) + i * kTokens * kTokens;
  }
  FI_GLOBAL_FN static bf16_t* values() { return reinterpret_cast<bf16_t*>(floats(C.values_at())); }
  FI_GLOBAL_FN static uint32_t square_at(uint32_t i, uint32_t j) { return piece_index<2>(i, j / 8) * 8 + j % 8; }
  FI_GLOBAL_FN static float* beta() { return floats(C.tokens_at()); }
  FI_GLOBAL_FN static float* key_scale() { return beta() + kTokens; }
  FI_GLOBAL_FN static float* query_scale() { return key_scale() + kTokens; }
  /// First of the lane's four channels in a product of 16: those of this warp's quarter, of tokens lane / 4 and + 8.
  FI_GLOBAL_FN static uint32_t channel(int step) {
    return warp() * (C.width / 4) + 16 * static_cast<uint32_t>(step) + lane() % 4 * 4;
  }

  /// What is 0 throughout: P above the diagonal.
  FI_GLOBAL_FN static void init() {
    if (thread_x() >= 16) return;
    store_shared(square(2 + thread_x() / 8) + square_at(thread_x() % 8, 8), Pack<bf16_t, 8>{});
  }

  // ---- the tokens' operands ----
  /// x o f and y o f of four channels as A, x in rows 0 .. 7 and y in rows 8 .. 15.
  FI_GLOBAL_FN static Split scaled(const float* x, const float* y, const float (&f)[4]) {
    Split s;
    s.set(0, x[0] * f[0], x[1] * f[1]), s.set(1, y[0] * f[0], y[1] * f[1]);
    s.set(2, x[2] * f[2], x[3] * f[3]), s.set(3, y[2] * f[2], y[3] * f[3]);
    return s;
  }
  FI_GLOBAL_FN static void put_operand(int i, uint32_t token, uint32_t at, const float* x, const float (&f)[4]) {
    Pack<uint32_t, 2> high, low;
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const float a = x[2 * e] * f[2 * e], b = x[2 * e + 1] * f[2 * e + 1];
      high[e] = pack2<bf16_t>(a, b), low[e] = pack2<bf16_t>(low_part(a), low_part(b));
    }
    const uint32_t to = piece_index<kPieces>(token, at / 8) * 8 + at % 8;
    store_shared(reinterpret_cast<uint32_t*>(operand(2 * i) + to), high);
    store_shared(reinterpret_cast<uint32_t*>(operand(2 * i + 1) + to), low);
  }
  /// Writes D o k, D o q, E o k, the decays' product, and this warp's part of A, P and the sums of squares.
  /// tokens_of(step, k, q, decay) gives four channels of the lane's two tokens.
  template <class F>
  FI_GLOBAL_FN void prepare(F tokens_of) const {
    Acc near[3][2], far{};  // of h = 1, 2, 4 in each half of the tokens; of h = 8: rows of k, rows of q
    float sums[2][3] = {};
#pragma unroll
    for (auto& each : near) clear(each);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      float k[2][4], q[2][4], prefix[2][4], suffix[2][4], all[2][4];
      tokens_of(step, k, q, prefix);
#pragma unroll
      for (int b = 0; b < 2; ++b)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          all[b][e] = prefix[b][e], suffix[b][e] = 1.0f;
          sums[b][0] += k[b][e] * k[b][e], sums[b][1] += q[b][e] * q[b][e], sums[b][2] += q[b][e] * k[b][e];
        }
#pragma unroll
      for (int level = 0; level < 3; ++level) {
        const bool second = (lane_row() >> level & 1) != 0;
#pragma unroll
        for (int b = 0; b < 2; ++b) {
          float f[4];
#pragma unroll
          for (int e = 0; e < 4; ++e) f[e] = second ? prefix[b][e] : suffix[b][e];
          const Split left = scaled(k[b], q[b], f);
          mma_parts(near[level][b], left, Frag2{{left.high.r[0], left.high.r[2]}},
                    Frag2{{left.low.r[0], left.low.r[2]}});
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const float other = shuffle_xor(all[b][e], 4u << level);
            if (second)
              prefix[b][e] *= other;
            else
              suffix[b][e] *= other;
            all[b][e] *= other;
          }
        }
      }
      const Split left = scaled(k[1], q[1], prefix[1]), right = scaled(k[0], k[0], suffix[0]);
      mma_parts(far, left, Frag2{{right.high.r[0], right.high.r[2]}}, Frag2{{right.low.r[0], right.low.r[2]}});
#pragma unroll
      for (int e = 0; e < 4; ++e) prefix[1][e] *= all[0][e], suffix[0][e] *= all[1][e];
      const uint32_t at = channel(step);
#pragma unroll
      for (int b = 0; b < 2; ++b) {
        const uint32_t token = lane_row() + 8 * static_cast<uint32_t>(b) + origin;
        put_operand(0, token, at, k[b], prefix[b]);
        put_operand(1, token, at, q[b], prefix[b]);
        put_operand(2, token, at, k[b], suffix[b]);
      }
      if (lane_row() == 0)
        store_shared(floats(C.whole_at()) + at, Pack<float, 4>{{all[0][0] * all[1][0], all[0][1] * all[1][1],
                                                                all[0][2] * all[1][2], all[0][3] * all[1][3]}});
    }
    put_partial(near, far);
    put_sums(sums);
  }
  /// Of each pair the product that it is in: below the diagonal of a half of the tokens, and between the halves.
  FI_GLOBAL_FN static void put_partial(const Acc (&near)[3][2], const Acc& far) {
    float* const to = floats(C.partial_at()) + (warp() * 3 * 32 + lane()) * 4;
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      Pack<float, 4> x;
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const uint32_t i = lane_row(), j = lane_pair() + static_cast<uint32_t>(e) % 2, differ = i ^ j;
        x[e] = j >= i ? 0.0f : differ >= 4 ? near[2][b].r[e] : differ >= 2 ? near[1][b].r[e] : near[0][b].r[e];
      }
      store_shared(to + b * 32 * 4, x);
    }
    store_shared(to + 2 * 32 * 4, Pack<float, 4>{{far.r[0], far.r[1], far.r[2], far.r[3]}});
  }
  /// k . k, q . q and q . k of the lane's tokens.
  FI_GLOBAL_FN static void put_sums(const float (&x)[2][3]) {
#pragma unroll
    for (int b = 0; b < 2; ++b)
#pragma unroll
      for (int i = 0; i < 3; ++i) {
        const float sum = warp_reduce<4>(x[b][i], Sum{});
        if (lane() % 4 == static_cast<uint32_t>(i))
          floats(C.sums_at())[(warp() * 3 + i) * kTokens + lane_row() + 8 * static_cast<uint32_t>(b)] = sum;
      }
  }

  // ---- A, P and (I + A)^-1, by one warp ----
  FI_GLOBAL_FN static float sum_of(int i, uint32_t token) {
    const float* const x = floats(C.sums_at()) + i * kTokens + token;
    return (x[0] + x[3 * kTokens]) + (x[6 * kTokens] + x[9 * kTokens]);
  }
  /// `gate`: beta of token `lane`.
  FI_GLOBAL_FN static void solve(float gate, bool l2norm, float scale) {
    float diagonal = 0.0f;  // of P, of token `lane`
    if (lane() < kTokens) {
      const float by_k = l2norm ? rsqrt_fast(sum_of(0, lane()) + 1e-6f) : 1.0f;
      const float by_q = (l2norm ? rsqrt_fast(sum_of(1, lane()) + 1e-6f) : 1.0f) * scale;
      beta()[lane()] = gate, key_scale()[lane()] = by_k, query_scale()[lane()] = by_q;
      diagonal = sum_of(2, lane());
    }
    sync_warp();
    float* const a = floats(C.a_at());
#pragma unroll
    for (uint32_t tile = 0; tile < 3; ++tile) {
      const float* const part = floats(C.partial_at()) + (tile * 32 + lane()) * 4;
      Pack<float, 4> x = load_shared<4>(part);
#pragma unroll
      for (int w = 1; w < 4; ++w) {
        const Pack<float, 4> more = load_shared<4>(part + w * 3 * 32 * 4);
#pragma unroll
        for (int e = 0; e < 4; ++e) x[e] += more[e];
      }
      const uint32_t i = lane_row() + (tile ? 8 : 0), j = lane_pair() + (tile == 1 ? 8 : 0);
      const float own = shuffle(diagonal, i);
      if (tile < 2 && i == j) x[2] = own;
      if (tile < 2 && i == j + 1) x[3] = own;
      const Pack<float, 2> keys = load_shared<2>(key_scale() + j);
      const float to_a = beta()[i] * key_scale()[i], to_p = query_scale()[i];
      store_shared(a + i * 24 + j,
                   Pack<float, 2>{{j < i ? to_a * keys[0] * x[0] : 0.0f, j + 1 < i ? to_a * keys[1] * x[1] : 0.0f}});
      const float left = j <= i ? to_p * keys[0] * x[2] : 0.0f, right = j < i ? to_p * keys[1] * x[3] : 0.0f;
      *reinterpret_cast<uint32_t*>(square(2) + square_at(i, j)) = pack2<bf16_t>(left, right);
      *reinterpret_cast<uint32_t*>(square(3) + square_at(i, j)) = pack2<bf16_t>(low_part(left), low_part(right));
    }
    sync_warp();
    if (lane() < kTokens) invert(a);
  }
  /// Column `lane` of (I + A)^-1, by substitution.
  FI_GLOBAL_FN static void invert(const float* a) {
    float x[kTokens];
#pragma unroll
    for (uint32_t i = 0; i < kTokens; ++i) {
      x[i] = i == lane() ? 1.0f : 0.0f;
#pragma unroll
      for (uint32_t j = 0; j < i; j += 4) {
        const Pack<float, 4> row = load_shared<4>(a + i * 24 + j);
#pragma unroll
        for (uint32_t e = 0; e < 4; ++e)
          if (j + e < i) x[i] -= row[static_cast<int>(e)] * x[j + e];
      }
      const uint32_t at = square_at(i, lane());
      square(0)[at] = from_f32<bf16_t>(x[i]), square(1)[at] = from_f32<bf16_t>(low_part(x[i]));
    }
  }

  // ---- the state ----
  /// w = S (D o k)^T, o = S (D o q)^T: rows are value channels, columns tokens.
  FI_GLOBAL_FN void read_state(Acc (&w)[2], Acc (&o)[2]) const {
    clear(w), clear(o);
#pragma unroll
    for (uint32_t j = 0; j < kTiles; j += 2) {
      const Split left = split(s[j], s[j + 1]);
      mma_parts(w[0], w[1], left, b_rows<kPieces>(operand(0), origin, j), b_rows<kPieces>(operand(1), origin, j));
      mma_parts(o[0], o[1], left, b_rows<kPieces>(operand(2), origin, j), b_rows<kPieces>(operand(3), origin, j));
    }
  }
  /// to[v][i] += the sum of M_ij x[v][j] over j <= i, of the lower triangular square `m`. Nothing of a later token
  /// enters, not even NaN, which products with the zeros of M would carry.
  FI_GLOBAL_FN static void add_lower(Acc (&to)[2], const Acc (&x)[2], int m) {
    Acc finite[2];
    bool rare = false;
#pragma unroll
    for (int t = 0; t < 2; ++t)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        finite[t].r[e] = not_finite(x[t].r[e]) ? 0.0f : x[t].r[e];
        rare = rare || not_finite(x[t].r[e]);
      }
    mma_parts(to[0], to[1], split(finite[0], finite[1]), b_rows<2>(square(m), 0, 0), b_rows<2>(square(m + 1), 0, 0));
    if (ballot(rare) == 0) return;
#pragma unroll 1
    for (uint32_t j = 0; j < kTokens; ++j) {  // not unrolled: rare
      const float value[2] = {of_column<0>(x, j), of_column<2>(x, j)};
#pragma unroll
      for (uint32_t e = 0; e < 4; ++e) {
        const uint32_t i = e / 2 * 8 + lane_pair() + e % 2, at = square_at(i, j);
        if (j > i) continue;
        const float by = to_f32(square(m)[at]) + to_f32(square(m + 1)[at]);
        if (not_finite(value[0])) to[e / 2].r[e % 2] += by * value[0];
        if (not_finite(value[1])) to[e / 2].r[2 + e % 2] += by * value[1];
      }
    }
  }
  /// The results of the tokens go to where v was, S past the tokens.
  FI_GLOBAL_FN void finish(Acc (&w)[2], Acc (&o)[2]) {
    const Frag4 v = a_columns<8>(values(), origin, 2 * warp());
    Acc u[2];
    clear(u);
#pragma unroll
    for (uint32_t t = 0; t < 2; ++t) {
      const uint32_t token = 8 * t + lane_pair();
      const Pack<float, 2> b = load_shared<2>(beta() + token), keys = load_shared<2>(key_scale() + token),
                           queries = load_shared<2>(query_scale() + token);
#pragma unroll
      for (uint32_t e = 0; e < 4; ++e) {
        const uint32_t bits = v.r[2 * t + e / 2];
        const float value = __builtin_bit_cast(float, e % 2 ? bits & 0xffff0000u : bits << 16);
        const int c = static_cast<int>(e % 2);
        w[t].r[e] = b[c] * (value - keys[c] * w[t].r[e]), o[t].r[e] *= queries[c];
      }
    }
    add_lower(u, w, 0);
    add_lower(o, u, 2);
    sync_warp();
#pragma unroll
    for (uint32_t t = 0; t < 2; ++t)
#pragma unroll
      for (uint32_t e = 0; e < 4; ++e)
        values()[piece_index<8>(8 * t + lane_pair() + e % 2 + origin, 2 * warp() + e / 2) * 8 + lane_row()] =
            from_f32<bf16_t>(o[t].r[e]);
    update_state(u);
    sync_warp();
  }
  FI_GLOBAL_FN void update_state(Acc (&u)[2]) {
#pragma unroll
    for (uint32_t t = 0; t < 2; ++t) {
      const Pack<float, 2> keys = load_shared<2>(key_scale() + 8 * t + lane_pair());
#pragma unroll
      for (int e = 0; e < 4; ++e) u[t].r[e] *= keys[e % 2];
    }
    const Split left = split(u[0], u[1]);
#pragma unroll
    for (uint32_t j = 0; j < kTiles; ++j) {
      const Pack<float, 2> by = load_shared<2>(floats(C.whole_at()) + 8 * j + lane_pair());
#pragma unroll
      for (int e = 0; e < 4; ++e) s[j].r[e] *= by[e % 2];
    }
#pragma unroll
    for (uint32_t j = 0; j < kTiles; j += 2)
      mma_parts(s[j], s[j + 1], left, b_columns<kPieces>(operand(4), origin, j),
                b_columns<kPieces>(operand(5), origin, j));
  }
  /// A piece of 8 results of this warp: its token and first value channel.
  FI_GLOBAL_FN static uint32_t result_token() { return lane() / 2; }
  FI_GLOBAL_FN static uint32_t result_piece() { return 2 * warp() + lane() % 2; }
};

}  // namespace flashinfer::cu::linear
