# SPDX-License-Identifier: Apache-2.0
"""Sources of attention variants, for `variant_decl`. One text works on every device and for every back end's name."""

# Adds exp(sink of the head) to the softmax's denominator. Additional tensor: sink (float); scalar: sm_scale.
attention_sink_fa2_decl = r"""
struct AttentionSink : AttentionVariantBase {
  static constexpr bool use_softmax = true;
  template <class Params>
  __device__ __host__ AttentionSink(const Params& params, uint32_t batch_idx, uint8_t*) : AttentionVariantBase(params, batch_idx) {}
  REGISTER_M_D_UPDATE(params, kv_tile_idx, qo_head_idx, m, d, scale, {
    const float sink = kv_tile_idx == 0 ? params.sink[qo_head_idx] * math::log2e : -math::inf;
    const float top = sink > m ? sink : m;
    scale = math::ptx_exp2(m - top);
    d = math::ptx_exp2(sink - top) + d * scale;
    m = top;
  })
};
"""

# The mask of BatchPrefillWithCausalBidirectionalRangesWrapper: row i, at position p of its request, sees key j if j <= p and
# (causal_window_left < 0 or p - j <= causal_window_left), or if j is in the row's span [start, end] of bidirectional_ranges and
# (range_window_left <= 0 or p - j < range_window_left). Additional tensor: bidirectional_ranges (int32_t, two a row); scalars:
# causal_window_left, range_window_left, sm_scale (double).
bidirectional_ranges_fa2_decl = r"""
struct CausalBidirectionalRangesAttention : AttentionVariantBase {
  static constexpr bool use_softmax = true;
  uint32_t qo_len, kv_len, first_row;
  template <class Params>
  __device__ __host__ CausalBidirectionalRangesAttention(const Params& params, uint32_t batch_idx, uint8_t*)
      : AttentionVariantBase(params, batch_idx), qo_len(params.get_qo_len(batch_idx)), kv_len(params.get_kv_len(batch_idx)),
        first_row(params.qo_indptr ? static_cast<uint32_t>(params.qo_indptr[batch_idx]) : 0u) {}
  REGISTER_LOGITS_MASK(params, batch_idx, qo_idx, kv_idx, qo_head_idx, kv_head_idx, {
    const int position = static_cast<int>(kv_len + qo_idx) - static_cast<int>(qo_len), key = static_cast<int>(kv_idx);
    const int behind = position - key, causal = static_cast<int>(params.causal_window_left), range = static_cast<int>(params.range_window_left);
    const int start = params.bidirectional_ranges[2 * (first_row + qo_idx)], end = params.bidirectional_ranges[2 * (first_row + qo_idx) + 1];
    return (behind >= 0 && (causal < 0 || behind <= causal)) ||
           (key >= start && key <= end && (range <= 0 || behind < range));
  })
};
"""

attention_sink_fa3_decl = attention_sink_fa2_decl
attention_sink_decl = {"fa2": attention_sink_fa2_decl, "fa3": attention_sink_fa3_decl}
bidirectional_ranges_decl = {"fa2": bidirectional_ranges_fa2_decl}
