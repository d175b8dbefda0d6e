// SPDX-License-Identifier: Apache-2.0
// Mamba-2 in double precision, token by token.
#pragma once
#include "flashinfer/ops/linear_attention/mamba/ref.h"
#include "flashinfer/ops/linear_attention/mamba/ssd.h"

namespace flashinfer {
namespace ops::linear_attention {
struct SsdSequence {
  int64_t row, first, tokens, checkpoint, slot;  // of x [row, first + token]; slot -1: no checkpoint
};
SsdSequence ssd_sequence(const SsdChunkScan& a, int64_t i);
}  // namespace ops::linear_attention

namespace ref {
inline void ssd_chunk_scan(const SsdChunkScan& a) {
  const int64_t dim = a.x.size(3), n = a.B.size(3), heads = a.x.size(2), per_group = heads / a.B.size(2);
  const int64_t sequences = a.cu_seqlens ? a.cu_seqlens->size(0) - 1 : a.x.size(0);
  for (int64_t i = 0; i < sequences; ++i)
    for (int64_t h = 0; h < heads; ++h) {
      const ops::linear_attention::SsdSequence q = ops::linear_attention::ssd_sequence(a, i);
      std::vector<double> s(static_cast<size_t>(dim * n), 0.0);
      const auto element = [&](int64_t d, int64_t m) -> double& { return s[static_cast<size_t>(d * n + m)]; };
      const auto write = [&](const TensorView& t, int64_t slot) {
        for (int64_t e = 0; e < dim * n; ++e) put(t, {slot, h, e / n, e % n}, s[static_cast<size_t>(e)]);
      };
      for (int64_t e = 0; e < dim * n && a.initial_states; ++e)
        s[static_cast<size_t>(e)] = at(*a.initial_states, {i, h, e / n, e % n});
      if (q.slot >= 0 && q.checkpoint == 0) write(*a.checkpoint_states, q.slot);
      for (int64_t t = 0; t < q.tokens; ++t) {
        const int64_t r = q.row, k = q.first + t, g = h / per_group;
        double dt = at(a.dt, {r, k, h}) + (a.dt_bias ? get(*a.dt_bias, h) : 0);
        if (a.dt_softplus) dt = mamba::softplus(dt);
        dt = std::min(std::max(dt, a.dt_min.value_or(-INFINITY)), a.dt_max.value_or(INFINITY));
        const double decay = std::exp(get(a.A, h) * dt);
        for (int64_t d = 0; d < dim; ++d) {
          const double x = at(a.x, {r, k, h, d});
          double y = 0;
          for (int64_t m = 0; m < n; ++m) {
            double& e = element(d, m);
            e = e * decay + dt * x * at(a.B, {r, k, g, m});
            y += e * at(a.C, {r, k, g, m});
          }
          if (a.D) y += x * (a.D->rank() == 2 ? at(*a.D, {h, d}) : get(*a.D, h));
          put(*a.out, {r, k, h, d}, a.z ? y * mamba::silu(at(*a.z, {r, k, h, d})) : y);
        }
        if (q.slot >= 0 && q.checkpoint == t + 1) write(*a.checkpoint_states, q.slot);
      }
      if (a.final_states) write(*a.final_states, i);
    }
}
}  // namespace ref
}  // namespace flashinfer
