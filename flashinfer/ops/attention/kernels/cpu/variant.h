// SPDX-License-Identifier: Apache-2.0
// Connects a custom variant to the CPU kernel. NoHooks compiles to nothing.
#pragma once
#include "flashinfer/ops/attention/kernels/cpu/rows.h"
#include "flashinfer/ops/attention/kernels/variant.h"

namespace flashinfer::cpu::attention {

struct NoHooks {
  static constexpr bool kCustom = false, kSoftmax = true, kElements = false;
  NoHooks(const AttentionParams&, int64_t) {}
};

/// `P` is the generated AttentionVariantParams with the additional members, `V` the user's struct.
template <class P, class V>
struct Hooks : AttentionVariantHooks<P, V> {
  using Has = AttentionVariantHooks<P, V>;
  using Has::kSoftmax, Has::kQuery, Has::kKey, Has::kLogits, Has::kMask, Has::kUpdate, Has::kOutput;
  static constexpr bool kCustom = true, kElements = kQuery || kKey;

  const P& params;
  const V variant;
  const uint32_t batch;
  Hooks(const AttentionParams& p, int64_t b)
      : params(static_cast<const P&>(p)),
        variant(static_cast<const P&>(p), static_cast<uint32_t>(b), nullptr),
        batch(static_cast<uint32_t>(b)) {}

  /// Factor of the exponents. Rows are kept relative to their greatest logit, so a factor of 0 or below is applied to
  /// the logits instead.
  float factor() const { return kSoftmax && variant.sm_scale_log2 > 0 ? variant.sm_scale_log2 : 1.0f; }

  void query(float* x, int64_t n) const {
    if constexpr (kQuery)
      for (int64_t i = 0; i < n; ++i) x[i] = variant.QueryTransform(params, x[i]);
  }
  void key(float* x, int64_t n) const {
    if constexpr (kKey)
      for (int64_t i = 0; i < n; ++i) x[i] = variant.KeyTransform(params, x[i]);
  }

  /// Logits s[64] of one row for the keys from `first`; clears the bits that LogitsMask hides, and transforms the other
  /// logits (in a vectorisable loop when all are visible).
  void logits(float* s, uint64_t& visible, int64_t token, int64_t first, int64_t head, int64_t kv_head) const {
    const uint32_t row = static_cast<uint32_t>(token), k = static_cast<uint32_t>(first),
                   h = static_cast<uint32_t>(head), g = static_cast<uint32_t>(kv_head);
    if constexpr (kMask)
      for (uint32_t j = 0; j < static_cast<uint32_t>(kBlockKeys); ++j)
        if (visible >> j & 1 && !variant.LogitsMask(params, batch, row, k + j, h, g)) visible &= ~(1ull << j);
    if constexpr (kLogits) {
      if (visible == ~0ull) {
        for (uint32_t j = 0; j < static_cast<uint32_t>(kBlockKeys); ++j)
          s[j] = variant.LogitsTransform(params, s[j], batch, row, k + j, h, g);
      } else {  // a transform may read tensors by kv_idx: never past the last key
        for (uint32_t j = 0; j < static_cast<uint32_t>(kBlockKeys); ++j)
          if (visible >> j & 1) s[j] = variant.LogitsTransform(params, s[j], batch, row, k + j, h, g);
      }
    }
    if (kSoftmax && !(variant.sm_scale_log2 > 0))
      for (int j = 0; j < kBlockKeys; ++j) s[j] *= variant.sm_scale_log2;
  }

  /// Transforms one row of outputs in place: the sum of weighted values `o`, its maximum `m` (in exponents of 2) and
  /// denominator `d`. A row without visible keys is zeros unless update_m_d gives it a denominator.
  void output(float* o, int64_t n, int64_t token, int64_t head, float& m, float& d, float v_scale) const {
    const uint32_t row = static_cast<uint32_t>(token), h = static_cast<uint32_t>(head);
    float rescale = 1.0f;
    if constexpr (kUpdate) variant.update_m_d(params, 0u, h, m, d, rescale);
    if constexpr (kOutput) {
      for (int64_t i = 0; i < n; ++i)
        o[i] = variant.OutputTransform(params, o[i] * rescale, batch, row, h, m, d, v_scale);
    } else {
      const float weight = !kSoftmax ? v_scale : d > 0 || d != d ? rescale * v_scale / d : 0.0f;
      for (int64_t i = 0; i < n; ++i) o[i] *= weight;
    }
  }
};

/// Finishes a row of a variant. Without softmax the LSE has no meaning and is NaN, so that a merge by it fails visibly.
template <class O, class H>
inline void finish_custom(const H& hooks, const AttentionParams& p, const Request& r, int64_t token, int64_t head,
                          float* o, State s, float factor) {
  if constexpr (H::kCustom) {
    const bool empty = s.m == -INFINITY;
    float m = empty ? -INFINITY : s.m * factor, d = empty ? 0.0f : s.l, exact_m = m, exact = empty ? 0.0f : s.lse,
          scale = 1.0f;
    if (empty) memset(o, 0, static_cast<size_t>(p.head_dim_vo) * 4);
    hooks.output(o, p.head_dim_vo, token - r.q_first, head, m, d, p.v_scale);
    store_row<O>(p, token, head, o, splat(1.0f));
    if (!p.lse) return;
    if constexpr (H::kUpdate)
      hooks.variant.update_m_d(hooks.params, 0u, static_cast<uint32_t>(head), exact_m, exact, scale);
    p.lse[token * p.lse_stride_n + head * p.lse_stride_h] = !H::kSoftmax ? NAN
                                                            : exact > 0 || exact != exact
                                                                ? (exact_m + log2f(exact)) * p.lse_factor
                                                                : -INFINITY;
  }
}

/// A row whose weights are the logits themselves: converted to cells of the product, no maximum, no denominator.
template <bool Pairs>
inline void weights_row(const float* s, uint64_t visible, uint32_t* cell) {
  for (int j = 0; j < kBlockKeys; ++j) {
    const float x = visible >> j & 1 ? s[j] : 0.0f;
    if constexpr (Pairs)
      reinterpret_cast<bf16_t*>(cell)[j] = bf16_t(x);
    else
      reinterpret_cast<float*>(cell)[j] = x;
  }
}

}  // namespace flashinfer::cpu::attention
