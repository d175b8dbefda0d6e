// SPDX-License-Identifier: Apache-2.0
// The GPU attention kernels with a custom variant: the struct that kernels/cpu/variant.h compiles for the CPU, from the
// same text. On tensor cores transformed elements of q and K are rounded to their type; elsewhere all is f32, as on the
// CPU.
#pragma once
#include "flashinfer/ops/attention/kernels/cuda/attention.cuh"
#include "flashinfer/ops/attention/kernels/cuda/attention_simt.cuh"
#include "flashinfer/ops/attention/kernels/variant.h"

namespace flashinfer::cu {
namespace attn {

/// `P` is the generated AttentionVariantParams with the additional members, `V` the user's struct.
template <class P, class V>
struct Hooks : AttentionVariantHooks<P, V> {
  using Has = AttentionVariantHooks<P, V>;
  using Params = P;
  static constexpr bool kCustom = true;

  const P& params;
  const V variant;
  const uint32_t batch, group;
  FI_GLOBAL_FN Hooks(const P& p, int32_t b)
      : params(p),
        variant(p, static_cast<uint32_t>(b), static_cast<uint8_t*>(nullptr)),
        batch(static_cast<uint32_t>(b)),
        group(static_cast<uint32_t>(p.num_qo_heads / p.num_kv_heads)) {}

  /// Factor of the exponents. A factor of 0 or below is applied to the logits instead, because rows are kept relative
  /// to their greatest logit.
  FI_GLOBAL_FN float factor() const { return variant.sm_scale_log2 > 0.0f ? variant.sm_scale_log2 : 1.0f; }
  FI_GLOBAL_FN float query(float x) const {
    if constexpr (Has::kQuery) x = variant.QueryTransform(params, x), lanes_apart();
    return x;
  }
  FI_GLOBAL_FN float key(float x) const {
    if constexpr (Has::kKey) x = variant.KeyTransform(params, x), lanes_apart();
    return x;
  }
  /// Whether the variant lets token i see key j, which the call does not mask.
  FI_GLOBAL_FN bool shows(int32_t i, int32_t j, uint32_t head) const {
    bool seen = true;
    if constexpr (Has::kMask) {
      seen = variant.LogitsMask(params, batch, static_cast<uint32_t>(i), static_cast<uint32_t>(j), head, head / group);
      lanes_apart();
    }
    return seen;
  }
  FI_GLOBAL_FN float logit(float x, int32_t i, int32_t j, uint32_t head) const {
    if constexpr (Has::kLogits) {
      x = variant.LogitsTransform(params, x, batch, static_cast<uint32_t>(i), static_cast<uint32_t>(j), head,
                                  head / group);
      lanes_apart();
    }
    return Has::kSoftmax && !(variant.sm_scale_log2 > 0.0f) ? x * variant.sm_scale_log2 : x;
  }
  /// Four columns of token i's row: `o` is the sum of weighted values, m its maximum (exponents of 2), d the
  /// denominator. A row without visible keys is zeros unless update_m_d gives it a denominator. The LSE of a variant
  /// without softmax has no meaning: NaN.
  FI_GLOBAL_FN float output(float (&o)[4], uint32_t i, uint32_t head, float m, float d) const {
    float rescale = 1.0f;
    if constexpr (Has::kUpdate) variant.update_m_d(params, 0u, head, m, d, rescale);
    const bool some = d > 0.0f || d != d;
    float weight = params.v_scale;
    if constexpr (Has::kSoftmax) weight = some ? rescale * params.v_scale / d : 0.0f;
    if constexpr (Has::kUpdate || Has::kOutput) lanes_apart();
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if constexpr (Has::kOutput)
        o[e] = variant.OutputTransform(params, o[e] * rescale, batch, i, head, m, d, params.v_scale);
      else
        o[e] *= weight;
    }
    return !Has::kSoftmax ? __builtin_bit_cast(float, 0x7fffffffu) : some ? (m + log2f(d)) * params.lse_factor : -kInf;
  }
};

/// The parameters as the variant sees them, with its additional arguments.
FI_GLOBAL_FN AttentionParams with_extras(const AttentionVariantCudaParams& p) {
  AttentionParams a = p.base.a;
  a.extra_tensors = p.tensors, a.extra_scalars = p.scalars;
  return a;
}
}  // namespace attn

template <AttentionCudaConfig C, class P, class V>
FI_GLOBAL_FN void attention_variant(const AttentionVariantCudaParams& p) {
  depend_wait();
  attn::run_tile<C, attn::Hooks<P, V>>(p.base, P(attn::with_extras(p)));
  depend_launch();
}
template <AttentionCoresConfig C, class P, class V>
FI_GLOBAL_FN void attention_cores_variant(const AttentionVariantCudaParams& p) {
  depend_wait();
  attn::run_cores<C, attn::Hooks<P, V>>(p.base, P(attn::with_extras(p)));
}

}  // namespace flashinfer::cu
