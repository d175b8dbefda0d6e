// SPDX-License-Identifier: Apache-2.0
// The replaying ops in double precision.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "flashinfer/ops/linear_attention/mamba/ref.h"
#include "flashinfer/ops/linear_attention/mamba/replay_call.h"

namespace flashinfer::ref {
namespace mamba {

inline double first_of(const TensorView& t, int64_t head) {
  const TensorView part = t.select(0, head);
  return part.rank() == 0 ? load_element(part, 0) : part.rank() == 1 ? at(part, {0}) : at(part, {0, 0});
}
template <class B>
State replay_state(const B& a, const ReplayRow& r, int64_t h) {
  const int64_t dim = a.state.size(2), n = a.state.size(3), g = h * a.B_cache.size(1) / a.state.size(1);
  State s;
  for (int64_t e = 0; e < dim * n; ++e)
    s.push_back(at(a.state, {r.read, h, e / n, e % n}) * (a.state_scale ? at(*a.state_scale, {r.read, h, e / n}) : 1));
  for (int64_t t = 0; t < r.replay; ++t) {
    const int64_t row = (r.start + t) % a.x_cache.size(2);
    const double dt = at(a.dt_cache, {r.read, h, row});
    for (int64_t e = 0; e < dim * n; ++e) {
      double& v = s[static_cast<size_t>(e)];
      v = v * std::exp(first_of(a.A, h) * dt) +
          dt * at(a.x_cache, {r.read, h, row, e / n}) * at(a.B_cache, {r.read, g, row, e % n});
    }
  }
  return s;
}
template <class B>
void store_state(const B& a, int64_t slot, int64_t h, const State& s) {
  const int64_t dim = a.state.size(2), n = a.state.size(3);
  const bool whole = a.state.dtype() == DType::kI8;
  for (int64_t d = 0; d < dim; ++d) {
    double amax = 0;
    for (int64_t i = 0; i < n; ++i) amax = std::max(amax, std::fabs(s[static_cast<size_t>(d * n + i)]));
    const double by = !a.state_scale || amax == 0 ? 1 : (whole ? 127 : 448) / amax;
    if (a.state_scale) put(*a.state_scale, {slot, h, d}, 1 / by);
    for (int64_t i = 0; i < n; ++i) {
      double v = s[static_cast<size_t>(d * n + i)] * by;
      if (whole) v = std::nearbyint(v);
      if (a.rand_seed) {
        const auto word =
            random_word(static_cast<uint64_t>(*a.rand_seed->template data_as<int64_t>()),
                        static_cast<uint64_t>(((slot * a.state.size(1) + h) * dim + d) * n + i), a.philox_rounds);
        v = a.state_scale ? rounded_to_e4m3_randomly(v, word) : rounded_randomly(v, word);
      }
      put(a.state, {slot, h, d, i}, v);
    }
  }
}
}  // namespace mamba

inline void checkpointing_ssu(const CheckpointingSsu& a) {
  const int64_t heads = a.state.size(1), dim = a.state.size(2), n = a.state.size(3), ring = a.x_cache.size(2);
  for (const ReplayRow& r : ops::linear_attention::replay_rows(a))
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t g = h * a.B_cache.size(1) / heads;
      if (r.read < 0) {
        for (int64_t e = 0; e < r.tokens * dim; ++e) put(*a.out, {r.row, r.first + e / dim, h, e % dim}, 0);
        continue;
      }
      if (!r.tokens) continue;
      mamba::State s = mamba::replay_state(a, r, h);
      if (r.write >= 0) mamba::store_state(a, r.write, h, s);
      for (int64_t t = 0; t < r.tokens; ++t) {
        const int64_t i = r.first + t, to = (r.start + r.replay + t) % ring;
        double dt = at(a.dt, {r.row, i, h, 0}) + (a.dt_bias ? mamba::first_of(*a.dt_bias, h) : 0);
        if (a.dt_softplus) dt = mamba::softplus(dt);
        put(a.dt_cache, {r.read, h, to}, dt);
        for (int64_t m = 0; m < n; ++m) put(a.B_cache, {r.read, g, to, m}, at(a.B, {r.row, i, g, m}));
        for (int64_t d = 0; d < dim; ++d) {
          const double x = at(a.x, {r.row, i, h, d});
          put(a.x_cache, {r.read, h, to, d}, x);
          double y = a.D ? at(*a.D, {h, a.D->size(1) == 1 ? 0 : d}) * x : 0;
          for (int64_t m = 0; m < n; ++m) {
            double& v = s[static_cast<size_t>(d * n + m)];
            v = v * std::exp(mamba::first_of(a.A, h) * dt) + dt * x * at(a.B, {r.row, i, g, m});
            y += v * at(a.C, {r.row, i, g, m});
          }
          put(*a.out, {r.row, i, h, d}, a.z ? y * mamba::silu(at(*a.z, {r.row, i, h, d})) : y);
        }
      }
    }
}
inline void replayssm_materialize_layer(const ReplaySsmMaterializeLayer& a) {
  for (const ReplayRow& r : ops::linear_attention::replay_rows(a))
    for (int64_t h = 0; h < a.state.size(1); ++h) {
      if (r.replay) {
        mamba::store_state(a, r.write, h, mamba::replay_state(a, r, h));
        continue;
      }
      for (int64_t d = 0; d < a.state.size(2); ++d) {
        if (a.state_scale) put(*a.state_scale, {r.write, h, d}, at(*a.state_scale, {r.read, h, d}));
        for (int64_t i = 0; i < a.state.size(3); ++i) put(a.state, {r.write, h, d, i}, at(a.state, {r.read, h, d, i}));
      }
    }
}

}  // namespace flashinfer::ref
