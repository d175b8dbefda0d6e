// SPDX-License-Identifier: Apache-2.0
// Prefill of the delta rule with a decay for each key channel:
//   S <- S diag(e^g);  n = w o v - S (beta o k);  S <- S + n k^T;  o = S (scale q)
// The decays between two tokens are no longer a number, so a chunk's products of matrices would need exponentials of
// differences of 128 channels each. Instead the rows of the state pass through 32 tokens at a time in registers: 6 V K
// operations a token, of which memory sees one in 32.
#pragma once
#include "flashinfer/kernels/cpu/exp.h"
#include "flashinfer/ops/linear_attention/kernels/common/delta_rows.h"
#include "flashinfer/ops/linear_attention/kernels/common/packed.h"

namespace flashinfer::cpu {

/// A task is a head of a sequence.
template <GdnChunkConfig C>
void gdn_channels(const GdnChunkParams& p, int64_t task) {
  using namespace linear;
  constexpr int64_t L = Vec::kLanes;
  const int64_t n = task / p.heads, h = task % p.heads, k_wide = padded(p.width), v_wide = padded(p.rows);
  const int64_t start = p.sequences.at(n), tokens = p.sequences.at(n + 1) - start;
  if (tokens == 0 && (p.keep_empty || !p.final.data)) return;
  float *const state = p.scratch, *const row = state + p.rows * k_wide, *const gate = row + k_wide;
  float* const beta = gate + k_wide;
  auto* const list = reinterpret_cast<DeltaToken<float>*>(beta + k_wide);
  for (int64_t v = 0; v < p.rows; ++v) read_state_row(p.in, n, h, v, p.width, state + v * k_wide);
  const DeltaState<float> s{state, state, k_wide, k_wide, p.rows, p.width};
  for (int64_t first = 0; first < tokens; first += kGdnChannelTokens) {
    const int64_t m = tokens - first < kGdnChannelTokens ? tokens - first : kGdnChannelTokens;
    float* at = beta + k_wide + kGdnChannelTokens * 32;
    for (int64_t i = 0; i < m; ++i, at += 4 * k_wide + 2 * v_wide) {
      const int64_t token = start + first + i;
      float *k = at, *kd = k + k_wide, *qd = kd + k_wide, *decay = qd + k_wide, *v = decay + k_wide, *o = v + v_wide;
      read_row(p.k, token, h, p.heads, p.width, p.l2norm, k);
      read_row(p.q, token, h, p.heads, p.width, p.l2norm, qd);
      scale_row(qd, p.scale, p.width);
      widen_row(p.v.type, p.v.data, offset(p.v, token, h, p.heads), p.rows, v);
      if (p.gate.data) widen_row(p.gate.type, p.gate.data, offset(p.gate, token, h, p.heads), p.width, gate);
      if (p.beta.data) widen_row(p.beta.type, p.beta.data, offset(p.beta, token, h, p.heads), p.width, beta);
      const float kq = dot_row(k, qd, p.width);
      for (int64_t j = 0; j < k_wide; j += L) {
        const Vec e = p.gate.data ? cpu::exp(load(gate + j)) : splat(1.0f);
        store(decay + j, e);
        store(kd + j, e * (p.beta.data ? load(k + j) * load(beta + j) : load(k + j)));
        store(qd + j, e * load(qd + j));
      }
      if (p.write.data) {
        widen_row(p.write.type, p.write.data, offset(p.write, token, h, p.heads), p.rows, o);
        for (int64_t j = 0; j < v_wide; j += L) store(v + j, load(v + j) * load(o + j));
      }
      list[i] = {k, kd, qd, decay, 1.0f, 1.0f, kq, v, o, nullptr, 0};
    }
    delta_rows<C.width, true>(s, list, m, row);
    for (int64_t i = 0; i < m; ++i)
      narrow_row(p.out_type, list[i].o, p.rows, p.out, (start + first + i) * p.out_token + h * p.out_head);
  }
  for (int64_t v = 0; p.final.data && v < p.rows; ++v) write_state_row(p.final, n, h, v, p.width, state + v * k_wide);
}

}  // namespace flashinfer::cpu
