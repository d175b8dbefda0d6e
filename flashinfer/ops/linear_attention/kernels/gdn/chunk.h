// SPDX-License-Identifier: Apache-2.0
// Prefill of the gated delta rule by chunks of 64 tokens: within a chunk the recurrence is a triangular system, so that
// nearly all work is products of matrices. With L_i the sum of ln of the decays up to token i of the chunk and
// G_ij = e^(L_i - L_j) for j <= i, else 0:
//   A_ij = beta_i G_ij k_i . k_j for j < i;  (I + A) U = diag(beta) (V - diag(e^L) K S^T)
//   O = diag(e^L) Q S^T + (G o Q K^T) U;  S <- e^(L_C) S + U^T diag(e^(L_C - L)) K
// The difference of two L is formed first, in double, and is never positive for decays up to 1. Decays of 0 are left
// out of L and counted (Z): a factor from token j to i is 0 where Z_i != Z_j, which is exact.
//
// Products are in f32: the tolerance of a state after thousands of tokens leaves no room for rounded operands. K K^T
// and Q K^T of bf16 inputs are taken by the bf16 dot instruction where that is fast, because their operands are exact;
// the scale of q multiplies the sums. The state is kept as S^T [K][V] in f32.
#pragma once
#include <math.h>

#include "flashinfer/kernels/cpu/exp.h"
#include "flashinfer/ops/linear_attention/kernels/common/packed.h"
#include "flashinfer/ops/linear_attention/kernels/common/products.h"

#if defined(__x86_64__) && defined(__GLIBC__)
// Precompiled, the kernel runs with older glibcs than the compiler's, whose log is of 2.29.
__asm__(".symver log,log@GLIBC_2.2.5");
#endif

namespace flashinfer::cpu {
namespace linear {

/// One head of one sequence.
struct GdnSequence {
  static constexpr int64_t C = kGdnChunk, L = Vec::kLanes;
  const GdnChunkParams& p;
  Sums sums;
  int64_t n, h, k_wide, v_wide;
  bool pairs;  // K K^T and Q K^T by dots of bf16
  float *state, *k, *q, *kt, *u, *w, *o, *kk, *qk, *beta, *decay;
  float *k16, *q16, *kt16;  // with `pairs`: rows of k and q, and k transposed, in cells of two bf16
  double log[C];            // L_i without decays of 0
  int64_t zeros[C];         // Z_i

  GdnSequence(const GdnChunkParams& params, int64_t sequence, int64_t head)
      : p(params),
        sums(params.q.type == DType::kF32 ? Sums::kParts : Sums::kChain),
        n(sequence),
        h(head),
        k_wide(padded(params.width)),
        v_wide(padded(params.rows)),
        pairs(kFastPairs && params.q.type == DType::kBF16) {
    float* at = p.scratch;
    const auto take = [&](int64_t count) {
      float* const x = at;
      at += count;
      return x;
    };
    state = take(k_wide * v_wide);
    k = take(C * k_wide), q = take(C * k_wide), kt = take(C * k_wide);
    u = take(C * v_wide), w = take(C * v_wide), o = take(C * v_wide);
    kk = take(C * C), qk = take(C * C), beta = take(C), decay = take(C);
    k16 = take(C * k_wide / 2), q16 = take(C * k_wide / 2), kt16 = take(C * k_wide / 2);
  }

  // States pass by 16 rows of V at a time through the memory of `k`.
  void read_state(int64_t slot) {
    for (int64_t v = 0; v < v_wide; v += 16) {
      for (int64_t i = 0; i < 16; ++i) {
        float* const to = k + i * k_wide;
        if (v + i < p.rows)
          read_state_row(p.in, slot, h, v + i, p.width, to);
        else
          for (int64_t j = 0; j < k_wide; ++j) to[j] = 0;
      }
      transpose(k, k_wide, 16, k_wide, state + v, v_wide);
    }
  }
  void write_state(const GdnStateTensor& to, int64_t slot) {
    for (int64_t v = 0; v < p.rows; v += 16) {
      transpose(state + v, v_wide, k_wide, 16, k, k_wide);
      for (int64_t i = 0; i < 16 && v + i < p.rows; ++i) write_state_row(to, slot, h, v + i, p.width, k + i * k_wide);
    }
  }
  void read(const GdnPacked& t, int64_t token, float* to, float* to16) const {
    if (pairs)
      read_row_pairs(t, token, h, p.heads, p.width, p.l2norm, to, reinterpret_cast<bf16_t*>(to16));
    else
      read_row(t, token, h, p.heads, p.width, p.l2norm, to);
  }
  /// Rows of q, k, v and gates of the m updates from `first` of a sequence that begins at token `start`.
  void read_chunk(int64_t start, int64_t first, int64_t m) {
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < C; ++i) {
      float *ki = k + i * k_wide, *qi = q + i * k_wide, *vi = u + i * v_wide;
      float *const ki16 = k16 + i * k_wide / 2, *const qi16 = q16 + i * k_wide / 2;
      if (i >= m) {
        for (int64_t j = 0; j < k_wide; ++j) ki[j] = 0;
        for (int64_t j = 0; j < k_wide / 2; ++j) ki16[j] = 0;
        log[i] = sum, zeros[i] = count;
        continue;
      }
      const int64_t token = start + (first + i) / p.updates, step = (first + i) % p.updates;
      const int64_t update = start * p.updates + first + i;
      read(p.k, update, ki, ki16);
      widen_row(p.v.type, p.v.data, offset(p.v, update, h, p.heads), p.rows, vi);
      if (step == p.updates - 1) {
        read(p.q, token, qi, qi16);
      } else {
        for (int64_t j = 0; j < k_wide; ++j) qi[j] = 0;
        for (int64_t j = 0; j < k_wide / 2; ++j) qi16[j] = 0;
      }
      const float alpha =
          p.gate.data && step == 0 ? element(p.gate.type, p.gate.data, offset(p.gate, token, h, p.heads)) : 1.0f;
      if (alpha == 0)
        ++count;
      else if (alpha != 1)
        sum += ::log(static_cast<double>(alpha));
      log[i] = sum, zeros[i] = count;
      beta[i] = p.beta.data ? element(p.beta.type, p.beta.data, offset(p.beta, update, h, p.heads)) : 1.0f;
    }
  }
  /// decay[j] = the factor from token j to token i, j = 0 .. columns; up to the end of their last vector anything.
  void decays_to(int64_t i, int64_t columns) {
    for (int64_t j = 0; j < columns; j += L) {
      float difference[L];
      for (int64_t e = 0; e < L; ++e) difference[e] = static_cast<float>(log[i] - log[j + e]);
      if (zeros[i])
        for (int64_t e = 0; e < L; ++e)
          if (zeros[j + e] != zeros[i]) difference[e] = -__builtin_inff();
      store(decay + j, cpu::exp(load(difference)));
    }
  }
  float decay_from_start(int64_t i) const { return zeros[i] == 0 ? ::expf(static_cast<float>(log[i])) : 0.0f; }
  /// kk = K K^T, qk = Q K^T up to the diagonal.
  void products_with_keys(int64_t m) {
    if (!pairs) {
      multiply(m, k, k_wide, kt, C, kk, C, k_wide, C, false, sums);
      multiply(m, q, k_wide, kt, C, qk, C, k_wide, C, false, sums);
      return;
    }
    transpose(k16, k_wide / 2, C, k_wide / 2, kt16, C);
    multiply_pairs_lower(m, k16, k_wide / 2, kt16, C, kk, C, k_wide / 2);
    multiply_pairs_lower(m, q16, k_wide / 2, kt16, C, qk, C, k_wide / 2);
  }
  /// Up to the diagonal kk = -A and qk = scale G o Q K^T; u = the right side, o = scale diag(e^L) Q S^T.
  void apply_gates(int64_t m) {
    for (int64_t i = 0; i < m; ++i) {
      decays_to(i, i + 1);
      float *a = kk + i * C, *b = qk + i * C;
      const Vec minus_beta = splat(-beta[i]), scale = splat(p.scale);
      for (int64_t j = 0; j <= i; j += L) {
        const Vec g = load(decay + j);
        store(a + j, load(a + j) * g * minus_beta), store(b + j, load(b + j) * (g * scale));
      }
      const Vec from_start = splat(decay_from_start(i)), o_scale = from_start * scale, by = splat(beta[i]);
      float *ui = u + i * v_wide, *wi = w + i * v_wide, *oi = o + i * v_wide;
      for (int64_t j = 0; j < v_wide; j += L) {
        store(ui + j, by * fnma(from_start, load(wi + j), load(ui + j)));
        store(oi + j, o_scale * load(oi + j));
      }
    }
  }
  void update_state(int64_t m) {
    decays_to(m - 1, m);
    for (int64_t j = m; j < C; ++j) decay[j] = 0;
    const Vec whole = splat(decay_from_start(m - 1));
    for (int64_t i = 0; i < k_wide; ++i)
      for (int64_t j = 0; j < C; j += L) store(kt + i * C + j, load(kt + i * C + j) * load(decay + j));
    for (int64_t i = 0; i < k_wide * v_wide; i += L) store(state + i, whole * load(state + i));
    multiply(k_wide, kt, C, u, v_wide, state, v_wide, m, v_wide, true, sums);
  }
  void chunk(int64_t start, int64_t first, int64_t m) {
    read_chunk(start, first, m);
    transpose(k, k_wide, C, k_wide, kt, C);
    products_with_keys(m);
    multiply(m, k, k_wide, state, v_wide, w, v_wide, k_wide, v_wide, false, sums);
    multiply(m, q, k_wide, state, v_wide, o, v_wide, k_wide, v_wide, false, sums);
    apply_gates(m);
    multiply_lower<false>(m, kk, C, u, u, v_wide, v_wide, sums);  // (I + A) U = u, in place
    multiply_lower<true>(m, qk, C, u, o, v_wide, v_wide, sums);
    update_state(m);
    for (int64_t i = 0; i < m; ++i)
      if ((first + i) % p.updates == p.updates - 1)
        narrow_row(p.out_type, o + i * v_wide, p.rows, p.out,
                   (start + (first + i) / p.updates) * p.out_token + h * p.out_head);
  }
  void run() {
    const int64_t start = p.sequences.at(n), tokens = p.sequences.at(n + 1) - start,
                  slot = p.slots.data ? p.slots.at(n) : n;
    if (tokens == 0 && (p.keep_empty || !p.final.data)) return;
    read_state(slot);
    const int64_t all = tokens * p.updates, every = p.every * p.updates;
    for (int64_t first = 0; first < all;) {
      const int64_t m = all - first < C ? all - first : C;
      chunk(start, first, m);
      first += m;
      if (every && first % every == 0) write_state(p.checkpoints, p.checkpoint_starts.at(n) + first / every - 1);
    }
    if (p.final.data) write_state(p.final, slot);
  }
};
}  // namespace linear

template <GdnChunkConfig C>
void gdn_chunk(const GdnChunkParams& p, int64_t task) {
  linear::GdnSequence(p, task / p.heads, task % p.heads).run();
}

}  // namespace flashinfer::cpu
