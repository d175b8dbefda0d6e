// SPDX-License-Identifier: Apache-2.0
// The kernels between and after the two products of a mixture of experts on the CPU. The products are the grouped ones
// of ops/gemm.
#pragma once
#include "flashinfer/kernels/cpu/exp.h"
#include "flashinfer/kernels/cpu/lanes.h"
#include "flashinfer/kernels/cpu/narrow.h"
#include "flashinfer/ops/moe/kernels/params.h"

namespace flashinfer::cpu {

/// Elements of logical columns i.., which are stored at column[i].. of x.
FI_VEC_INLINE Vec load_columns(const float* x, const int32_t* column, int64_t i, int64_t left) {
  const bool whole = left >= Vec::kLanes;
  if (!column) return whole ? load(x + i) : load_n(x + i, left);
  alignas(64) float v[Vec::kLanes] = {};
  for (int64_t j = 0; j < (whole ? Vec::kLanes : left); ++j) v[j] = x[column[i + j]];
  return load(v);
}

template <MoeConfig C, class F>
FI_VEC_INLINE void write_activated(scalar_of_t<C.out>* y, int64_t n, Vec scale, F f) {
  const auto full = [&](int64_t i) { return f(i, static_cast<int64_t>(Vec::kLanes)); };
  if constexpr (C.out == DType::kF8E4M3) {
    int64_t i = 0;
    for (; i + Vec::kLanes <= n; i += Vec::kLanes) store_saturated(y + i, full(i) * scale);
    if (i < n) store_saturated_n(y + i, f(i, n - i) * scale, n - i);
  } else {
    write_row(
        y, n, [&](int64_t i) { return full(i) * scale; }, [&](int64_t i, int64_t left) { return f(i, left) * scale; });
  }
}

template <MoeConfig C>
void moe_activate(const MoeActParams& p, int64_t task) {
  using T = scalar_of_t<C.out>;
  const int64_t begin = task * p.rows_per_task,
                end = begin + p.rows_per_task < p.rows ? begin + p.rows_per_task : p.rows;
  const int64_t n = p.inter, width = has_gate(p.kind) ? 2 * n : n;
  const Vec one = splat(1.0f), none = zero();
  for (int64_t r = begin; r < end; ++r) {
    const float* x = p.x + r * width;
    const int32_t e = p.expert[r];
    const float* const bias = p.bias ? p.bias + e * width : nullptr;
    const float* const factor = p.factor ? p.factor + e * width : nullptr;
    const float* const delta = p.delta ? p.delta + r * width : nullptr;
    const Vec scale = splat(p.scale ? p.scale[e] : 1.0f), row_factor = splat(p.row_factor ? p.row_factor[r] : 1.0f);
    T* y = static_cast<T*>(p.y) + r * n;
    const auto at = [&](int64_t i, int64_t left) {
      Vec v = load_columns(x, p.column, i, left) * row_factor;
      if (factor) v = v * load_columns(factor, p.column, i, left);
      if (bias) v = v + load_columns(bias, p.column, i, left);
      return !delta ? v : v + load_columns(delta, nullptr, i, left);
    };
    const auto alone = [&](auto act) {
      write_activated<C>(y, n, scale, [&](int64_t i, int64_t left) { return act(at(i, left)); });
    };
    const auto gated = [&](auto act) {
      write_activated<C>(y, n, scale, [&](int64_t i, int64_t left) { return act(at(n + i, left), at(i, left)); });
    };
    const auto relu = [&](Vec v) { return max(none, v); };  // NaN passes
    switch (p.kind) {
      case MoeActivation::kGelu: alone([](Vec v) { return gelu_erf(v); }); break;
      case MoeActivation::kRelu: alone(relu); break;
      case MoeActivation::kSilu: alone([](Vec v) { return silu(v); }); break;
      case MoeActivation::kIdentity: alone([](Vec v) { return v; }); break;
      case MoeActivation::kRelu2: alone([&](Vec v) { return relu(v) * relu(v); }); break;
      case MoeActivation::kClampedRelu2: {
        const Vec limit = splat(p.relu2_limit);
        alone([&](Vec v) {
          const Vec t = limit * tanh(relu(v) / limit);
          return t * t;
        });
        break;
      }
      case MoeActivation::kGeglu: gated([](Vec g, Vec u) { return gelu_erf(g) * u; }); break;
      case MoeActivation::kGegluTanh: gated([](Vec g, Vec u) { return gelu_tanh(g) * u; }); break;
      case MoeActivation::kSwigluStep: {
        const Vec most = splat(p.limit ? p.limit[e] : 7.0f);
        gated([&](Vec g, Vec u) { return min(most, silu(g)) * min(most, max(-most, u)); });
        break;
      }
      case MoeActivation::kSitu: {
        const Vec b = splat(p.situ_beta ? p.situ_beta[e] : 4.0f), l = splat(p.situ_linear ? p.situ_linear[e] : 25.0f);
        const Vec most = splat(p.limit ? p.limit[e] : __builtin_inff());
        gated([&](Vec g, Vec u) {
          g = min(most, g);
          u = min(most, max(-most, u));
          return b * tanh(g / b) * sigmoid(g) * (l * tanh(u / l));
        });
        break;
      }
      default: {  // Swiglu and SwigluBias
        if (!p.alpha && !p.beta && !p.limit) {
          gated([](Vec g, Vec u) { return silu(g) * u; });
          break;
        }
        const Vec alpha = splat(p.alpha ? p.alpha[e] : 1.0f), beta = splat(p.beta ? p.beta[e] : 0.0f);
        const Vec most = splat(p.limit ? p.limit[e] : __builtin_inff());
        gated([&](Vec g, Vec u) {
          g = min(most, g);
          u = min(most, max(-most, u));
          return g / (one + exp(-(alpha * g))) * (u + beta);
        });
      }
    }
  }
}

/// C.out is the dtype of x.
template <MoeConfig C>
void moe_cast(const MoeCastParams& p, int64_t task) {
  using T = scalar_of_t<C.out>;
  const int64_t begin = task * p.rows_per_task,
                end = begin + p.rows_per_task < p.rows ? begin + p.rows_per_task : p.rows;
  for (int64_t r = begin; r < end; ++r) {
    const T* x = static_cast<const T*>(p.x) + r * p.x_stride;
    e4m3_t* y = p.y + r * p.k;
    int64_t i = 0;
    for (; i + Vec::kLanes <= p.k; i += Vec::kLanes)
      store_saturated(y + i, load(x + i) * (p.scale_step ? load(p.scale + i) : splat(*p.scale)));
    if (i == p.k) continue;
    const int64_t n = p.k - i;
    store_saturated_n(y + i, load_n(x + i, n) * (p.scale_step ? load_n(p.scale + i, n) : splat(*p.scale)), n);
  }
}

template <MoeConfig C>
void moe_sum(const MoeSumParams& p, int64_t task) {
  using T = scalar_of_t<C.out>;
  const int64_t begin = task * p.rows_per_task,
                end = begin + p.rows_per_task < p.tokens ? begin + p.rows_per_task : p.tokens;
  for (int64_t t = begin; t < end; ++t) {
    const int32_t* row = p.row + t * p.top_k;
    const float* scales = p.scales + t * p.top_k;
    const auto sum = [&](int64_t i, int64_t left) {
      Vec a = zero();
      for (int64_t j = 0; j < p.top_k; ++j) {
        if (row[j] < 0) continue;
        const int64_t e = p.expert[row[j]];
        Vec v = load_columns(p.y + row[j] * p.width, p.column, i, left);
        if (p.factor) v = v * load_columns(p.factor + e * p.width, p.column, i, left);
        if (p.bias) v += load_columns(p.bias + e * p.width, p.column, i, left);
        a = fma(splat(scales[j]), v, a);
      }
      return a;
    };
    write_row(static_cast<T*>(p.out) + t * p.out_stride, p.hidden, [&](int64_t i) { return sum(i, Vec::kLanes); }, sum);
  }
}

}  // namespace flashinfer::cpu
