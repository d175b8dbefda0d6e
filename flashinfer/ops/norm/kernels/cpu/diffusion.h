// SPDX-License-Identifier: Apache-2.0
// Norms of diffusion transformers on the CPU: each row is read from memory once; later passes read it from L1 or L2.
#pragma once
#include "flashinfer/kernels/cpu/lanes.h"
#include "flashinfer/kernels/cpu/narrow.h"
#include "flashinfer/ops/norm/kernels/diffusion_params.h"

namespace flashinfer::cpu {

template <class T>
FI_VEC_INLINE Vec load_up_to(const T* p, int64_t n) {
  return n >= Vec::kLanes ? load(p) : load_n(p, n);
}

/// The sum of a row, not rounded: residual + input * factor * (gate + gate_bias).
template <class T>
struct DitSum {
  const T *input, *residual, *gate;
  const float* gate_bias;
  Vec factor;
  FI_VEC_INLINE Vec at(int64_t i, int64_t n) const {
    const Vec x = load_up_to(input + i, n) * factor;
    if (!residual) return x;
    const Vec r = load_up_to(residual + i, n);
    if (!gate) return r + x;
    const Vec g = load_up_to(gate + i, n);
    return fma(x, gate_bias ? g + load_up_to(gate_bias + i, n) : g, r);
  }
};

template <DitNormConfig C>
void dit_norm(const DitNormParams& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  constexpr int64_t L = Vec::kLanes;
  const int64_t begin = task * p.rows_per_task,
                end = begin + p.rows_per_task < p.rows ? begin + p.rows_per_task : p.rows;
  for (int64_t r = begin; r < end; ++r) {
    const int64_t a = r / p.inner, b = r - a * p.inner;
    const auto row_of = [&](const DitRows& t) {
      return t.data ? static_cast<const T*>(t.data) + a * t.stride[0] + b * t.stride[1] : nullptr;
    };
    const DitSum<T> sum{row_of(p.input), row_of(p.residual), row_of(p.gate), p.gate_bias, splat(p.input_factor)};
    const float n_inv = 1.0f / static_cast<float>(p.d);
    const Vec mean =
        splat(n_inv * sum_row(
                          p.d, [&](Vec s, int64_t i) { return s + sum.at(i, L); },
                          [&](Vec s, int64_t i, int64_t n) { return s + select(first_n(n), sum.at(i, n), zero()); }));
    const float var = n_inv * sum_row(
                                  p.d,
                                  [&](Vec s, int64_t i) {
                                    const Vec v = sum.at(i, L) - mean;
                                    return fma(v, v, s);
                                  },
                                  [&](Vec s, int64_t i, int64_t n) {
                                    const Vec v = select(first_n(n), sum.at(i, n) - mean, zero());
                                    return fma(v, v, s);
                                  });
    const Vec factor = splat(1.0f / __builtin_sqrtf(var + p.eps)), one = splat(1.0f);
    const T *scale = row_of(p.scale), *shift = row_of(p.shift);
    T* const kept = const_cast<T*>(row_of(p.residual_out));
    const auto normed = [&](int64_t i, int64_t n) {
      const Vec v = sum.at(i, n), x = (v - mean) * factor;
      // The sum is kept before its inputs are read no more: they may be the same memory.
      if (n >= L)
        store(kept + i, v);
      else
        store_n(kept + i, v, n);
      if constexpr (C.affine) return fma(x, load_up_to(p.gamma + i, n), load_up_to(p.beta + i, n));
      Vec m = one + load_up_to(scale + i, n), s = load_up_to(shift + i, n);
      if (p.scale_bias) m = m + load_up_to(p.scale_bias + i, n);
      if (p.shift_bias) s = s + load_up_to(p.shift_bias + i, n);
      return fma(x, m, s);
    };
    write_row(
        const_cast<T*>(row_of(p.norm_out)), p.d, [&](int64_t i) { return normed(i, L); },
        [&](int64_t i, int64_t n) { return normed(i, n); });
  }
}

/// Elements of a head as results are stored.
template <class O>
FI_VEC_INLINE void store_result(O* to, Vec v, int64_t n) {
  if constexpr (sizeof(O) == 1) {
    if (n >= Vec::kLanes)
      store_saturated(to, v);
    else
      store_saturated_n(to, v, n);
  } else {
    if (n >= Vec::kLanes)
      store(to, v);
    else
      store_n(to, v, n);
  }
}

template <QkNormRopeConfig C>
void qk_norm_rope(const QkNormRopeParams& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  using O = scalar_of_t<C.out>;
  constexpr int64_t L = Vec::kLanes;
  const int64_t begin = task * p.rows_per_task,
                end = begin + p.rows_per_task < p.rows ? begin + p.rows_per_task : p.rows;
  const int64_t half = p.dim / 2, video = p.extent[0] * p.extent[1] * p.extent[2];
  float cosine[kMaxQkNormRopeDim], sine[kMaxQkNormRopeDim], head[kMaxQkNormRopeDim];
  for (int64_t r = begin; r < end; ++r) {
    const int64_t a = r / p.inner, b = r - a * p.inner, s = r % video;
    const int64_t place[3] = {s / (p.extent[1] * p.extent[2]), s / p.extent[2] % p.extent[1], s % p.extent[2]};
    // For element i: its result is x[i] * cosine[i] + x[partner] * sine[i].
    int64_t j = 0;
    for (int part = 0; part < 3; ++part)
      for (int64_t i = 0; i < p.pairs[part]; ++i, ++j) {
        const float c = p.cos[part][place[part] * p.pairs[part] + i], sn = p.sin[part][place[part] * p.pairs[part] + i];
        const int64_t x = C.interleave ? 2 * j : j, y = C.interleave ? 2 * j + 1 : j + half;
        cosine[x] = cosine[y] = c, sine[x] = -sn, sine[y] = sn;
      }
    const T* from = static_cast<const T*>(p.qkv) + a * p.qkv_stride[0] + b * p.qkv_stride[1];
    for (int part = 0; part < 3; ++part) {
      const int64_t width = p.heads[part] * p.dim;
      O* to = static_cast<O*>(p.out[part]) + a * p.out_stride[part][0] + b * p.out_stride[part][1];
      const Vec out_scale = splat(p.out_scale[part]);
      const T* weight = part < 2 ? static_cast<const T*>(p.weight[part]) : nullptr;
      Vec scale = splat(1.0f);
      if (weight && width) {
        const float squares = sum_row(
            width,
            [&](Vec v, int64_t i) {
              const Vec x = load(from + i);
              return fma(x, x, v);
            },
            [&](Vec v, int64_t i, int64_t n) {
              const Vec x = load_n(from + i, n);
              return fma(x, x, v);
            });
        scale = splat(1.0f / __builtin_sqrtf(squares / static_cast<float>(width) + p.eps));
      }
      for (int64_t h = 0; h < p.heads[part]; ++h, from += p.dim, to += p.out_stride[part][2]) {
        for (int64_t i = 0; i < p.dim; i += L) {
          const int64_t n = p.dim - i;
          Vec x = load_up_to(from + i, n);
          if (weight) x = x * scale * load_up_to(weight + h * p.dim + i, n);
          if (part == 2)
            store_result(to + i, x * out_scale, n);
          else if (n >= L)
            store(head + i, x);
          else
            store_n(head + i, x, n);
        }
        if (part == 2) continue;
        for (int64_t i = 0; i < p.dim; i += L) {
          const int64_t n = p.dim - i;
          const Vec x = load_up_to(head + i, n);
          Vec y;
          if constexpr (C.interleave) {
            y = swap_neighbours(x);
          } else {
            // The halves meet inside a vector where half is no multiple of the lanes.
            float other[L];
            for (int64_t k = 0; k < (n < L ? n : L); ++k) other[k] = head[i + k < half ? i + k + half : i + k - half];
            y = load_up_to(other, n);
          }
          store_result(to + i, fma(y, load_up_to(sine + i, n), x * load_up_to(cosine + i, n)) * out_scale, n);
        }
      }
    }
  }
}

}  // namespace flashinfer::cpu
