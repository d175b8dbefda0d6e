// SPDX-License-Identifier: Apache-2.0
// The delta rule with a decay of each key channel on tensor cores, 16 tokens at a time. With D_i the product of the
// decays up to token i, E_i of those behind it and a_ij of those of j + 1 .. i, channel by channel:
//   A_ij = beta_i k_i . (a_ij o k_j) for j < i;  U = (I + A)^-1 diag(beta) (V - (D o K) S^T)
//   P_ij = q_i . (a_ij o k_j) for j <= i;  O = (D o Q) S^T + P U;  S <- S diag(D_16) + U^T (E o K)
// With gates of key and value channels beta_i o k_i takes the place of k_i in A and in D o K, and w_i o v_i that of
// v_i; beta of tokens is 1. The four warps share the channels of A and P, then each takes 16 rows of S. Operands are
// sums of two bf16 parts.
#pragma once
#include "flashinfer/ops/linear_attention/kernels/cuda/channel_operands.cuh"

namespace flashinfer::cu::linear {

template <int kWidth, bool kKeys>
struct ChannelBlock : ChannelOperands<kWidth, kKeys> {
  using Operands = ChannelOperands<kWidth, kKeys>;
  using Operands::beta, Operands::key_scale, Operands::query_scale;
  using Operands::C, Operands::kTokens, Operands::kPieces, Operands::origin;
  using Operands::floats, Operands::operand, Operands::square, Operands::square_at, Operands::values;
  static constexpr int kTiles = kWidth / 8;
  Acc s[kTiles];  // rows 16 warp .. + 16 of the state

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
  /// Element e of register i of a fragment of bf16.
  FI_GLOBAL_FN static float half_of(const Frag4& x, uint32_t i, uint32_t e) {
    return __builtin_bit_cast(float, e ? x.r[i] & 0xffff0000u : x.r[i] << 16);
  }
  /// The results of the tokens go to where v was, S past the tokens. `writes`: with kKeys, where w is, laid out as v.
  FI_GLOBAL_FN void finish(Acc (&w)[2], Acc (&o)[2], const bf16_t* writes = nullptr) {
    const Frag4 v = a_columns<8>(values(), origin, 2 * warp());
    Frag4 by{};
    if constexpr (kKeys) by = a_columns<8>(writes, origin, 2 * warp());
    Acc u[2];
    clear(u);
#pragma unroll
    for (uint32_t t = 0; t < 2; ++t) {
      const uint32_t token = 8 * t + lane_pair();
      const Pack<float, 2> b = load_shared<2>(beta() + token), keys = load_shared<2>(key_scale() + token),
                           queries = load_shared<2>(query_scale() + token);
#pragma unroll
      for (uint32_t e = 0; e < 4; ++e) {
        float value = half_of(v, 2 * t + e / 2, e % 2);
        if constexpr (kKeys) value *= half_of(by, 2 * t + e / 2, e % 2);
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
