// SPDX-License-Identifier: Apache-2.0
// Prefill of the delta rule with a decay for each key channel, by chunks (common/channel_chunk.h):
//   S <- S diag(e^g);  n = w o v - S (beta o k);  S <- S + n k^T;  o = S (scale q)
#pragma once
#include "flashinfer/kernels/cpu/exp.h"
#include "flashinfer/ops/linear_attention/kernels/common/channel_chunk.h"
#include "flashinfer/ops/linear_attention/kernels/common/packed.h"

namespace flashinfer::cpu {
namespace linear {

/// One head of one sequence.
struct GdnChannelHead {
  static constexpr int64_t L = Vec::kLanes;
  const GdnChunkParams& p;
  int64_t h;
  ChannelChunk c;
  float* row;  // [max(K, V)]

  GdnChannelHead(const GdnChunkParams& params, int64_t head)
      : p(params),
        h(head),
        c(params.scratch, params.width, params.rows),
        row(params.scratch + channel_chunk_floats(params.width, params.rows)) {}

  /// x o= the row of `by`, if there is one.
  void scale_by(const GdnPacked& by, int64_t token, int64_t n, float* x) const {
    if (!by.data) return;
    widen_row(by.type, by.data, offset(by, token, h, p.heads), n, row);
    for (int64_t j = 0; j < padded(n); j += L) store(x + j, load(x + j) * load(row + j));
  }
  /// Rows of token i of the chunk.
  void read(int64_t token, int64_t i) const {
    float *const decay = c.decay(i), *const r = c.r(i), *const q = c.q(i);
    read_row(p.k, token, h, p.heads, p.width, p.l2norm, c.k(i));
    read_row(p.q, token, h, p.heads, p.width, p.l2norm, q);
    scale_row(q, p.scale, p.width);
    widen_row(p.v.type, p.v.data, offset(p.v, token, h, p.heads), p.rows, c.u(i));
    scale_by(p.write, token, p.rows, c.u(i));
    if (p.gate.data) widen_row(p.gate.type, p.gate.data, offset(p.gate, token, h, p.heads), p.width, decay);
    for (int64_t j = 0; j < c.k_wide; j += L) {
      store(decay + j, p.gate.data ? cpu::exp(load(decay + j)) : splat(1.0f));
      store(r + j, load(c.k(i) + j));
    }
    scale_by(p.beta, token, p.width, r);
  }
  /// m tokens, whose rows are there, through the rows of the state.
  template <int K>
  void few(int64_t m) {
    c.to_rows();
    DeltaToken<float> list[kChannelChunk];
    for (int64_t i = 0; i < m; ++i) {
      const float kq = dot_row(c.k(i), c.q(i), p.width);
      for (int64_t j = 0; j < c.k_wide; j += L) {
        const Vec e = load(c.decay(i) + j);
        store(c.r(i) + j, e * load(c.r(i) + j)), store(c.q(i) + j, e * load(c.q(i) + j));
      }
      list[i] = {c.k(i), c.r(i), c.q(i), c.decay(i), 1.0f, 1.0f, kq, c.u(i), c.o(i), nullptr, 0};
    }
    delta_rows<K, true>(DeltaState<float>{c.tile, c.tile, c.k_wide, c.k_wide, p.rows, p.width}, list, m, row);
  }
  void many(int64_t m) {
    c.to_columns();
    const FlushSubnormals flush;
    c.run(m, p.q.type == DType::kF32 ? Sums::kParts : Sums::kChain);
    c.state_after(m, c.state);
  }
  template <int K>
  void run(int64_t n) {
    const int64_t start = p.sequences.at(n), tokens = p.sequences.at(n + 1) - start;
    if (tokens == 0 && (p.keep_empty || !p.final.data)) return;
    for (int64_t i = 0; i < c.k_wide * c.v_wide; i += L) store(c.tile + i, zero());
    for (int64_t v = 0; v < p.rows; ++v) read_state_row(p.in, n, h, v, p.width, c.tile + v * c.k_wide);
    for (int64_t first = 0; first < tokens; first += kChannelChunk) {
      const int64_t m = tokens - first < kChannelChunk ? tokens - first : kChannelChunk;
      for (int64_t i = 0; i < m; ++i) read(start + first + i, i);
      if (m < kChannelChunk)
        few<K>(m);
      else
        many(m);
      for (int64_t i = 0; i < m; ++i)
        narrow_row(p.out_type, c.o(i), p.rows, p.out, (start + first + i) * p.out_token + h * p.out_head);
    }
    c.to_rows();
    for (int64_t v = 0; p.final.data && v < p.rows; ++v)
      write_state_row(p.final, n, h, v, p.width, c.tile + v * c.k_wide);
  }
};

}  // namespace linear

/// A task is a head of a sequence.
template <GdnChunkConfig C>
void gdn_channels(const GdnChunkParams& p, int64_t task) {
  linear::GdnChannelHead(p, task % p.heads).run<C.width>(task / p.heads);
}

}  // namespace flashinfer::cpu
