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

/// The activation of gate g (or of the one number) and linear half u.
FI_GLOBAL_FN float moe_activation(const MoeActCudaParams& p, int32_t e, float g, float u) {
  switch (p.kind) {
    case MoeActivation::kGelu: return moe_gelu(g);
    case MoeActivation::kRelu: return moe_relu(g);
    case MoeActivation::kSilu: return moe_silu(g);
    case MoeActivation::kIdentity: return g;
    case MoeActivation::kRelu2: return moe_relu(g) * moe_relu(g);
    case MoeActivation::kClampedRelu2: {
      const float most = moe_number(p.relu2_limit, 0, 0, 0.0f), t = most * tanhf(moe_relu(g) / most);
      return t * t;
    }
    case MoeActivation::kGeglu: return moe_gelu(g) * u;
    case MoeActivation::kGegluTanh: return moe_gelu_tanh(g) * u;
    case MoeActivation::kSwigluStep: {
      const float most = moe_number(p.limit, e, 0, 7.0f) * moe_number(p.limit_factor, e, 0, 1.0f);
      return moe_least(most, moe_silu(g)) * moe_clamp(u, most);
    }
    case MoeActivation::kSitu: {
      const float b = moe_number(p.situ_beta, e, 0, p.situ_otherwise[0]),
                  l = moe_number(p.situ_linear, e, 0, p.situ_otherwise[1]), most = moe_number(p.limit, e, 0, kInf);
      g = moe_least(most, g), u = moe_clamp(u, most);
      return b * tanhf(g / b) / (1.0f + expf(-g)) * (l * tanhf(u / l));
    }
    default: {  // Swiglu and SwigluBias
      const float alpha = moe_number(p.alpha, e, 0, 1.0f), beta = moe_number(p.beta, e, 0, 0.0f),
                  most = moe_number(p.limit, e, 0, kInf);
      g = moe_least(most, g), u = moe_clamp(u, most);
      return g / (1.0f + expf(-(alpha * g))) * (u + beta);
    }
  }
}

/// Block (x, y): row x, elements [y, y + 1) * C.threads.
template <MoeCudaConfig C>
FI_GLOBAL_FN void moe_activate(const MoeActCudaParams& p) {
  depend_wait();
  const auto r = static_cast<int32_t>(block_x());
  const int32_t i = static_cast<int32_t>(block_y() * static_cast<uint32_t>(C.threads) + thread_x());
  if (i < p.inter) {
    float y = 0.0f;
    const bool used = p.offsets == nullptr || r < p.offsets[p.experts];
    if (used) {
      const int32_t e = p.expert_of ? p.expert_of[r] : 0, entry = p.entry_of ? p.entry_of[r] : r,
                    token = entry / p.choices;
      float by = moe_number(p.token_factor, token, 0, 1.0f);
      if (p.entry_weights) by *= p.entry_weights[entry];
      const auto element = [&](int32_t logical) {
        const int32_t at = moe_column(p.columns, logical);
        float v = p.x[static_cast<int64_t>(r) * p.width + at] * by;
        v = v * moe_number(p.factor, e, at, 1.0f) + moe_number(p.bias, e, at, 0.0f);
        const int32_t choice = entry - token * p.choices;
        if (p.delta.p && choice < p.delta_choices)
          v += moe_number(p.delta, static_cast<int64_t>(token) * p.delta_choices + choice, logical, 0.0f);
        return v;
      };
      const float first = element(i);
      y = has_gate(p.kind) ? moe_activation(p, e, element(p.inter + i), first) : moe_activation(p, e, first, 0.0f);
      y *= moe_number(p.scale, e, 0, 1.0f) / moe_number(p.scale_divisor, e, 0, 1.0f);
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

/// Block (x, y): token x, columns [y, y + 1) * C.threads.
template <MoeCudaConfig C>
FI_GLOBAL_FN void moe_sum(const MoeSumCudaParams& p) {
  depend_wait();
  const auto t = static_cast<int32_t>(block_x());
  const int32_t i = static_cast<int32_t>(block_y() * static_cast<uint32_t>(C.threads) + thread_x());
  if (i < p.hidden) {
    const int32_t at = moe_column(p.columns, i), rows = p.row_of ? p.choices : 1;
    float sum = 0.0f;
    for (int32_t j = 0; j < rows; ++j) {
      const int32_t row = p.row_of ? p.row_of[t * p.choices + j] : t < p.offsets[p.experts] ? t : -1;
      if (row < 0) continue;
      const int32_t e = p.expert_of[row];
      const float v = p.y[static_cast<int64_t>(row) * p.width + at] * moe_number(p.factor, e, at, 1.0f) +
                      moe_number(p.bias, e, at, 0.0f);
      sum = fmaf(p.weights ? p.weights[t * p.choices + j] : 1.0f, v, sum);
    }
    moe_put(p.out, t, i, sum);
  }
  depend_launch();
}

}  // namespace flashinfer::cu
