// SPDX-License-Identifier: Apache-2.0
// Between and after the two products of a mixture of experts on a GPU: the activation of each row, casts, and each
// token's sum over its experts in the order of its routing.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/ops/moe/kernels/cuda/numbers.cuh"

namespace flashinfer::cu {

FI_GLOBAL_FN float moe_silu(float x) { return x / (1.0f + expf(-x)); }
FI_GLOBAL_FN float moe_gelu(float x) { return 0.5f * x * erfcf(x * -0.70710678f); }
FI_GLOBAL_FN float moe_gelu_tanh(float x) {
  return x / (1.0f + expf(x * -2.0f * 0.7978845608f * (1.0f + 0.044715f * x * x)));
}
FI_GLOBAL_FN float moe_relu(float x) { return x < 0.0f ? 0.0f : x; }  // NaN passes
FI_GLOBAL_FN float moe_least(float most, float x) { return x > most ? most : x; }
FI_GLOBAL_FN float moe_clamp(float x, float most) { return x > most ? most : x < -most ? -most : x; }

/// Numbers of an expert that the activation of all its elements takes.
struct MoeLimits {
  float a, b, most;
};
FI_GLOBAL_FN MoeLimits moe_limits(const MoeActCudaParams& p, int32_t e) {
  switch (p.kind) {
    case MoeActivation::kClampedRelu2: return {0.0f, 0.0f, moe_number(p.relu2_limit, 0, 0, 0.0f)};
    case MoeActivation::kSwigluStep:
      return {0.0f, 0.0f, moe_number(p.limit, e, 0, 7.0f) * moe_number(p.limit_factor, e, 0, 1.0f)};
    case MoeActivation::kSitu:
      return {moe_number(p.situ_beta, e, 0, p.situ_otherwise[0]), moe_number(p.situ_linear, e, 0, p.situ_otherwise[1]),
              moe_number(p.limit, e, 0, kInf)};
    default: return {moe_number(p.alpha, e, 0, 1.0f), moe_number(p.beta, e, 0, 0.0f), moe_number(p.limit, e, 0, kInf)};
  }
}
/// The activation of gate g (or of the one number) and linear half u.
FI_GLOBAL_FN float moe_activation(MoeActivation kind, const MoeLimits& l, float g, float u) {
  switch (kind) {
    case MoeActivation::kGelu: return moe_gelu(g);
    case MoeActivation::kRelu: return moe_relu(g);
    case MoeActivation::kSilu: return moe_silu(g);
    case MoeActivation::kIdentity: return g;
    case MoeActivation::kRelu2: return moe_relu(g) * moe_relu(g);
    case MoeActivation::kClampedRelu2: {
      const float t = l.most * tanhf(moe_relu(g) / l.most);
      return t * t;
    }
    case MoeActivation::kGeglu: return moe_gelu(g) * u;
    case MoeActivation::kGegluTanh: return moe_gelu_tanh(g) * u;
    case MoeActivation::kSwigluStep: return moe_least(l.most, moe_silu(g)) * moe_clamp(u, l.most);
    case MoeActivation::kSitu:
      g = moe_least(l.most, g), u = moe_clamp(u, l.most);
      return l.a * tanhf(g / l.a) / (1.0f + expf(-g)) * (l.b * tanhf(u / l.b));
    default:  // Swiglu and SwigluBias
      g = moe_least(l.most, g), u = moe_clamp(u, l.most);
      return g / (1.0f + expf(-(l.a * g))) * (u + l.b);
  }
}

/// Block (x, y): row x, elements y * C.threads + [0, C.threads), and those a whole row of blocks further.
template <MoeCudaConfig C>
FI_GLOBAL_FN void moe_activate(const MoeActCudaParams& p) {
  depend_wait();
  const auto r = static_cast<int32_t>(block_x());
  const int32_t begin = static_cast<int32_t>(block_y() * C.threads + thread_x()),
                step = static_cast<int32_t>(blocks_y() * C.threads);
  const bool used = p.offsets == nullptr || r < p.offsets[p.experts];
  const int32_t e = used && p.expert_of ? p.expert_of[r] : 0, entry = used && p.entry_of ? p.entry_of[r] : r,
                token = entry / p.choices, choice = entry - token * p.choices;
  float by = used ? moe_number(p.token_factor, token, 0, 1.0f) : 0.0f;
  if (used && p.entry_weights) by *= p.entry_weights[entry];
  const float scale = moe_number(p.scale, e, 0, 1.0f) / moe_number(p.scale_divisor, e, 0, 1.0f);
  const MoeLimits limits = moe_limits(p, e);
  const auto element = [&](int32_t logical) {
    const int32_t at = moe_column(p.columns, logical);
    float v = p.x[static_cast<int64_t>(r) * p.width + at] * by;
    v = v * moe_number(p.factor, e, at, 1.0f) + moe_number(p.bias, e, at, 0.0f);
    if (p.delta.p && choice < p.delta_choices)
      v += moe_number(p.delta, static_cast<int64_t>(token) * p.delta_choices + choice, logical, 0.0f);
    return v;
  };
  const bool gated = has_gate(p.kind);
#pragma unroll 1
  for (int32_t i = begin; i < p.inter; i += step) {
    float y = 0.0f;
    if (used) {
      const float first = element(i), second = gated ? element(p.inter + i) : 0.0f;
      y = moe_activation(p.kind, limits, gated ? second : first, gated ? first : 0.0f) * scale;
    }
    if (r < p.kept_rows) moe_put(p.kept, r, i, y);
    if (p.cast.p) y = moe_rounded(p.rounded, y) * moe_number(p.cast, 0, i, 1.0f);
    moe_put(p.y, r, i, y);
  }
  depend_launch();
}

template <MoeCudaConfig C>
FI_GLOBAL_FN void moe_cast(const MoeCastCudaParams& p) {
  depend_wait();
  const auto r = static_cast<int32_t>(block_x());
  const int32_t i = static_cast<int32_t>(block_y() * static_cast<uint32_t>(C.threads) + thread_x());
  if (i < p.k)
    p.y[static_cast<int64_t>(r) * p.k + i].bits =
        static_cast<uint8_t>(narrow_e4m3(moe_number(p.x, r, i, 0.0f) * moe_number(p.scale, 0, i, 1.0f)));
  depend_launch();
}

/// Block (x, y): token x, columns y * C.threads + [0, C.threads), and those one to three rows of blocks further.
template <MoeCudaConfig C>
FI_GLOBAL_FN void moe_sum(const MoeSumCudaParams& p) {
  depend_wait();
  const auto t = static_cast<int32_t>(block_x());
  const int32_t first = static_cast<int32_t>(block_y() * C.threads + thread_x()),
                step = static_cast<int32_t>(blocks_y() * C.threads);
  const int32_t rows = p.row_of ? p.choices : 1;
  int32_t at[kMoeElements];
  float sum[kMoeElements] = {};
#pragma unroll
  for (int k = 0; k < kMoeElements; ++k) at[k] = moe_column(p.columns, first + k * step);
  for (int32_t j = 0; j < rows; ++j) {
    const int32_t row = p.row_of ? p.row_of[t * p.choices + j] : t < p.offsets[p.experts] ? t : -1;
    if (row < 0) continue;
    const int32_t e = p.expert_of[row];
    const float weight = p.weights ? p.weights[t * p.choices + j] : 1.0f;
    const float* const y = p.y + static_cast<int64_t>(row) * p.width;
    float v[kMoeElements];
#pragma unroll
    for (int k = 0; k < kMoeElements; ++k) v[k] = first + k * step < p.hidden ? y[at[k]] : 0.0f;
    if (p.factor.p || p.bias.p) {
#pragma unroll
      for (int k = 0; k < kMoeElements; ++k)
        if (first + k * step < p.hidden)
          v[k] = v[k] * moe_number(p.factor, e, at[k], 1.0f) + moe_number(p.bias, e, at[k], 0.0f);
    }
#pragma unroll
    for (int k = 0; k < kMoeElements; ++k) sum[k] = fmaf(weight, v[k], sum[k]);
  }
#pragma unroll
  for (int k = 0; k < kMoeElements; ++k)
    if (first + k * step < p.hidden) moe_put(p.out, t, first + k * step, sum[k]);
  depend_launch();
}

}  // namespace flashinfer::cu
