// SPDX-License-Identifier: Apache-2.0
// Mamba's ops in double precision: the recurrence, token by token.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/linear_attention/mamba/ssu_shape.h"

namespace flashinfer::ref {
namespace mamba {
using State = std::vector<double>;  // [dim, dstate] of a head

inline double softplus(double x) { return x <= 20 ? std::log1p(std::exp(x)) : x; }
inline double silu(double x) { return x / (1 + std::exp(-x)); }

/// Word e % 4 of Philox4x32 with key `seed` and counter e / 4.
inline uint32_t random_word(uint64_t seed, uint64_t e, int64_t rounds) {
  uint32_t c[4] = {static_cast<uint32_t>(e / 4), static_cast<uint32_t>(e / 4 >> 32), 0, 0};
  uint32_t k[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (int64_t r = 0; r < rounds; ++r) {
    const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
    const uint32_t next[4] = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(b),
                              static_cast<uint32_t>(a >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(a)};
    std::copy(next, next + 4, c);
    k[0] += 0x9E3779B9, k[1] += 0xBB67AE85;
  }
  return c[e % 4];
}
/// |x| in units of f16's last place, plus the random fraction, cut off.
inline double rounded_randomly(double x, uint32_t word) {
  const double a = std::fabs(static_cast<double>(static_cast<float>(x)));
  if (!(a < 65536)) return x;
  int exponent;
  std::frexp(a, &exponent);
  const double ulp = std::ldexp(1.0, exponent - 11);
  const double y = std::floor(a / ulp + static_cast<double>(word & 0x1fff) / 8192) * ulp;
  return std::copysign(y < 0x1p-14 ? 0.0 : (y >= 65536 ? INFINITY : y), x);
}
/// |x| up to 448 in units of e4m3's last place, plus the random fraction, cut off.
inline double rounded_to_e4m3_randomly(double x, uint32_t word) {
  const double a = std::min(std::fabs(static_cast<double>(static_cast<float>(x))), 448.0);
  int exponent;
  std::frexp(a, &exponent);
  const double ulp = std::ldexp(1.0, std::max(exponent - 4, -9));
  return std::copysign(std::floor(a / ulp + static_cast<double>(word & 0xffff) / 65536) * ulp, x);
}

/// Writes `s` to t[lead..., h, :, :] as the options say; `flat` is the first element's number, for random rounding.
struct Store {
  const SelectiveStateUpdate& a;
  void operator()(const TensorView& t, const TensorView* scale, const State& s, uint64_t flat) const {
    const int64_t dim = t.size(0), n = t.size(1);
    for (int64_t d = 0; d < dim; ++d) {
      double factor = 1;
      if (scale) {
        double amax = 0;
        for (int64_t i = 0; i < n; ++i) amax = std::max(amax, std::fabs(s[static_cast<size_t>(d * n + i)]));
        factor = amax > 0 ? 32767 / amax : 1;
        put(*scale, {d}, 1 / factor);
      }
      for (int64_t i = 0; i < n; ++i) {
        double v = s[static_cast<size_t>(d * n + i)] * factor;
        if (scale) v = std::nearbyint(v);
        if (a.rand_seed)
          v = rounded_randomly(v, random_word(static_cast<uint64_t>(*a.rand_seed->data_as<int64_t>()),
                                              flat + static_cast<uint64_t>(d * n + i), a.philox_rounds));
        put(t, {d, i}, v);
      }
    }
  }
};
}  // namespace mamba

inline void selective_state_update(const SelectiveStateUpdate& a) {
  namespace la = ops::linear_attention;
  const la::SsuForm f = la::ssu_form(a);
  const mamba::Store store{a};
  const int64_t dim = f.dim, n = f.dstate, head_elements = dim * n, slot_elements = f.heads * head_elements;
  std::optional<TensorView> scale = a.state_scale;
  if (scale && scale->rank() == 2) scale = scale->unsqueeze(1);
  for (int64_t i = 0; i < f.sequences; ++i) {
    const la::SsuSequence q = la::ssu_sequence(a, f, i);
    for (int64_t h = 0; h < f.heads; ++h) {
      const int64_t g = h / (f.heads / f.groups);
      mamba::State s(static_cast<size_t>(head_elements), 0.0);
      for (int64_t e = 0; e < head_elements && q.read >= 0; ++e)
        s[static_cast<size_t>(e)] =
            at(f.state, {q.read, h, e / n, e % n}) * (scale ? at(*scale, {q.read, h, e / n}) : 1);
      const auto write = [&](int64_t slot, int64_t t) {
        const TensorView part = scale ? scale->select(0, slot).select(0, h) : TensorView();
        store(f.state.select(0, slot).select(0, h), scale ? &part : nullptr, s,
              static_cast<uint64_t>(slot * slot_elements + h * head_elements + t * f.state.numel()));
      };
      for (int64_t t = 0; t < q.tokens; ++t) {
        const int64_t r = q.row, k = q.first + t;
        for (int64_t d = 0; d < dim; ++d) {
          double dt = at(f.dt, {r, k, h, d}) + (a.dt_bias ? at(f.dt_bias, {h, d}) : 0);
          if (a.dt_softplus) dt = mamba::softplus(dt);
          const double x = at(f.x, {r, k, h, d});
          double y = 0;
          for (int64_t m = 0; m < n; ++m) {
            double& e = s[static_cast<size_t>(d * n + m)];
            e = e * std::exp(at(f.a, {h, d, m}) * dt) + dt * x * at(f.b, {r, k, g, m});
            y += e * at(f.c, {r, k, g, m});
          }
          y += at(f.d, {h, d}) * x;
          put(f.out, {r, k, h, d}, a.z ? y * mamba::silu(at(f.z, {r, k, h, d})) : y);
        }
        if (q.cache >= 0) {
          const TensorView& c = *a.intermediate_states_buffer;
          const TensorView part = a.intermediate_state_scales
                                      ? a.intermediate_state_scales->select(0, q.cache).select(0, t).select(0, h)
                                      : TensorView();
          store(c.select(0, q.cache).select(0, t).select(0, h), part.defined() ? &part : nullptr, s,
                static_cast<uint64_t>((q.cache * c.size(1) + t) * slot_elements + h * head_elements +
                                      t * f.state.numel()));
        }
        if (la::ssu_dst_each_token(a) && !a.disable_state_update && q.read >= 0 && la::ssu_dst(a, i, t) >= 0)
          write(la::ssu_dst(a, i, t), t);
      }
      if (q.write >= 0 && q.tokens) write(q.write, q.tokens - 1);
    }
  }
}

}  // namespace flashinfer::ref
