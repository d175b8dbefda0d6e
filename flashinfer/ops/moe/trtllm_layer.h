// SPDX-License-Identifier: Apache-2.0
// From the arguments of the trtllm family to a Layer.
#pragma once
#include <algorithm>

#include "flashinfer/core/context.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/moe/cuda/layer.h"
#include "flashinfer/ops/moe/routing.h"
#include "flashinfer/ops/moe/trtllm.h"

namespace flashinfer::moe::trtllm {

/// Experts that every token goes to, behind the routed ones in the weights.
template <class B>
int64_t shared_of(const B& a) {
  return a.num_fused_shared_experts.value_or(0);
}
template <class B>
int64_t experts_of(const B& a) {
  return a.local_num_experts + shared_of(a);
}
template <class B>
int64_t choices_of(const B& a) {
  return a.top_k + shared_of(a);
}
template <class B>
bool gated(const B& a) {
  return has_gate(static_cast<MoeActivation>(a.activation_type));
}
template <class B>
bool deepseek(const B& a) {
  return B::kFormat == MoeFormat::kFp8Block && a.fp8_quantization_type == 1;
}
/// Scales are those of MXFP8 (else of DeepSeek's blocks).
template <class B>
bool mx(const B& a) {
  return B::kFormat == MoeFormat::kFp8Block && a.fp8_quantization_type == 2;
}
template <class B>
bool shuffled(const B& a) {
  return B::kFormat == MoeFormat::kBf16 || B::kFormat == MoeFormat::kFp8Block ? a.use_shuffled_weight : true;
}
/// Weights as [E, k / b, n, b] with blocks of 128 bytes. There is no argument for it with int4: a fourth dimension says
/// it.
template <class B>
bool by_blocks(const B& a) {
  return B::kFormat == MoeFormat::kMxint4 ? a.gemm1_weights.rank() == 4 : a.weight_layout == 2;
}
template <class B>
constexpr bool four_bits() {
  return B::kFormat == MoeFormat::kFp4Block || B::kFormat == MoeFormat::kMxint4;
}
inline bool is_bytes(const TensorView& t) { return t.dtype() == DType::kU8 || t.dtype() == DType::kF4E2M1x2; }
template <class B>
int64_t hidden_of(const B& a) {
  return a.hidden_states.size(1) * (is_bytes(a.hidden_states) ? 2 : 1);
}
template <class B>
int64_t valid_hidden(const B& a) {
  return a.valid_hidden_size.value_or(hidden_of(a));
}
template <class B>
int64_t valid_inter(const B& a) {
  return a.valid_intermediate_size.value_or(a.intermediate_size);
}
/// Rows of gemm2_weights: a column of the result each, all of them or the valid ones in whole 128.
template <class B>
int64_t second_rows(const B& a) {
  const int axis = by_blocks(a) ? 2 : 1;
  const int64_t rounded = round_up(valid_hidden(a), 128);
  return a.gemm2_weights.rank() > axis && a.gemm2_weights.size(axis) == rounded ? rounded : hidden_of(a);
}
template <class B>
RowFormat rows_of(const B& a) {
  switch (B::kFormat) {
    case MoeFormat::kFp8PerTensor:
    case MoeFormat::kFp8PerChannel: return RowFormat::kFp8;
    case MoeFormat::kFp8Block: return mx(a) ? RowFormat::kMxFp8 : RowFormat::kFp8Blocks;
    case MoeFormat::kFp4Block:
      return is_bytes(a.hidden_states)                   ? RowFormat::kNvfp4
             : a.hidden_states.dtype() == DType::kF8E4M3 ? RowFormat::kMxFp8
                                                         : RowFormat::kPlain;
    default: return RowFormat::kPlain;
  }
}
/// Elements along k that share a byte in the weights' scales; 0: none.
template <class B>
int64_t weight_block(const B& a) {
  if (B::kFormat == MoeFormat::kMxint4 || mx(a)) return 32;
  if (B::kFormat != MoeFormat::kFp4Block) return 0;
  if (a.hidden_states.dtype() != DType::kBF16) return is_bytes(a.hidden_states) ? 16 : 32;
  // By the number of scales, of which NVFP4 has twice as many from k = 128 on.
  const int64_t n = gated(a) ? 2 * a.intermediate_size : a.intermediate_size;
  const int64_t fine = experts_of(a) * sf_bytes(SfLayout::k128x4, n, hidden_of(a) / 16);
  return a.gemm1_weights_scale && a.gemm1_weights_scale->nbytes() == fine ? 16 : 32;
}
template <class B>
SfLayout weight_sf_layout(const B& a) {
  return shuffled(a) ? SfLayout::k128x4 : SfLayout::kLinear;
}

template <class B>
MoeRouting routing_of(const B& a) {
  MoeRouting r{.routing_logits = a.routing_logits,
               .routing_method = a.routing_method_type,
               .top_k = a.top_k,
               .routing_bias = a.routing_bias};
  r.n_group = a.n_group.value_or(0), r.topk_group = a.topk_group.value_or(0);
  r.routed_scaling_factor = a.routed_scaling_factor.value_or(1.0), r.norm_topk_prob = a.norm_topk_prob;
  if (B::kFormat != MoeFormat::kFp8Block && a.routing_method_type != 2) r.n_group = r.topk_group = 0;
  return without_unused(r);
}

template <class B>
void set_weights(const B& a, Layer& l, Weights& w, const TensorView& data, const std::optional<TensorView>& scale,
                 int64_t n, int64_t k) {
  w.data = data;
  w.fp4 = B::kFormat == MoeFormat::kFp4Block, w.int4 = B::kFormat == MoeFormat::kMxint4;
  if (by_blocks(a)) w.block_k = data.size(3);
  w.shuffle = !shuffled(a) ? 0 : deepseek(a) ? 16 : 32;
  w.interleaved = shuffled(a) && !deepseek(a) && &w == &l.first && has_gate(l.kind);
  if (deepseek(a)) {
    w.grid = {.p = scale->template data_as<float>(),
              .lines = 128,
              .line_stride = scale->stride(1),
              .k_stride = scale->stride(2),
              .batch = scale->stride(0)};
    w.grid_k = 128;
  } else if (w.int4) {
    w.grid_k = 32;  // values: read_int4_scales
  } else if (const int64_t block = weight_block(a)) {
    w.sf = {.bytes = static_cast<const uint8_t*>(scale->data()),
            .columns = k / block,
            .batch = sf_bytes(weight_sf_layout(a), n, k / block),
            .block = static_cast<int32_t>(block),
            .layout = weight_sf_layout(a),
            .e8m0 = block == 32};
  }
}
/// Everything but the routing, the hidden states' scales and what is computed from scales.
template <class B>
Layer layer_of(const B& a) {
  Layer l;
  l.format = rows_of(a), l.kind = static_cast<MoeActivation>(a.activation_type);
  l.tokens = a.hidden_states.size(0), l.top_k = choices_of(a), l.experts = experts_of(a);
  l.hidden = valid_hidden(a), l.inter = a.intermediate_size, l.width = gated(a) ? 2 * l.inter : l.inter;
  l.second_rows = second_rows(a), l.second_depth = valid_inter(a);
  const int64_t full = hidden_of(a);
  l.x = a.hidden_states;
  set_weights(a, l, l.first, a.gemm1_weights, a.gemm1_weights_scale, l.width, full);
  set_weights(a, l, l.second, a.gemm2_weights, a.gemm2_weights_scale, l.second_rows, l.inter);
  l.first.factor = a.output1_scale_gate_scalar, l.second.factor = a.output2_scale_scalar;
  l.first.column_factor = a.gemm1_per_channel_weight_scale, l.second.column_factor = a.gemm2_per_channel_weight_scale;
  l.first.bias = a.gemm1_bias, l.second.bias = a.gemm2_bias;
  l.alpha = a.gemm1_alpha, l.beta = a.gemm1_beta, l.limit = a.gemm1_clamp_limit;
  l.weights_on_input = a.use_routing_scales_on_input;
  l.delta = a.gemm1_lora_delta;
  if (a.output) l.out = *a.output;
  if (a.gemm2_output) l.rows_out = *a.gemm2_output;
  if (a.expanded_idx_to_permuted_idx) l.row_of = *a.expanded_idx_to_permuted_idx;
  if (a.gemm1_activation_output) l.inter_out = *a.gemm1_activation_output;
  return l;
}

// trtllm_layer.cc
/// Ids from the offset on, and weights, of a routing that is given.
Routed given_routing(const op::PagedKv& ids, int64_t tokens, int64_t top_k);
/// f32 scales of a bf16 tensor in the order of 128x4, [E, n, columns], of the experts that are used.
Tensor int4_scales(const TensorView& scales, int64_t experts, int64_t n, int64_t columns,
                   const std::vector<int32_t>& used);
/// Scales of hidden states as rows: f32 of [h / 128, t], or bytes of [t, columns].
Tensor row_scales(const TensorView& scales, RowFormat format, int64_t tokens, int64_t columns);
/// a * b of each of `experts`, and as many ones.
Tensor product_of(const TensorView& a, const TensorView& b, int64_t experts);
Tensor ones(int64_t experts);
/// a / b of each of `experts`.
Tensor quotient(const TensorView& a, const TensorView& b, int64_t experts);

/// The whole layer; `keep` holds what it points to.
template <class B>
Layer routed(const B& a, Routed (*route_with)(const MoeRouting&), std::vector<Tensor>& keep) {
  Layer l = layer_of(a);
  const Routed r = B::kGiven ? given_routing(a.topk_ids, l.tokens, a.top_k) : route_with(routing_of(a));
  for (int64_t t = 0; t < l.tokens; ++t)
    for (int64_t j = 0; j < l.top_k; ++j) {
      const auto at = static_cast<size_t>(t * a.top_k + j);
      const bool routed_here = j < a.top_k;  // the others are shared
      const int64_t e = routed_here ? r.ids[at] - a.local_expert_offset : a.local_num_experts + j - a.top_k;
      const double weight = routed_here ? r.weights[at] : 1.0;
      l.ids.push_back(e >= 0 && e < (routed_here ? a.local_num_experts : l.experts) ? static_cast<int32_t>(e) : -1);
      l.weights.push_back(static_cast<float>(weight));
      if (a.routing_replay_out && routed_here) ref::put(*a.routing_replay_out, {t, j}, r.ids[at]);
      if (a.expert_weights) ref::put(*a.expert_weights, {t, j}, weight);
    }
  const auto hold = [&](Tensor t) { return keep.emplace_back(std::move(t)).view(); };
  if (a.hidden_states_scale && has_scales(l.format))
    l.x_scales = row_scales(*a.hidden_states_scale, l.format, l.tokens, hidden_of(a) / scale_block(l.format));
  if (B::kFormat == MoeFormat::kFp8PerChannel) l.row_factor = a.hidden_states_scale->view({l.tokens});
  if (a.per_token_scale) l.row_factor = *a.per_token_scale;
  if (l.kind == MoeActivation::kSwigluStep && l.limit && a.output1_scale_gate_scalar)
    l.limit = hold(product_of(*l.limit, *a.output1_scale_gate_scalar, l.experts));
  if (l.kind == MoeActivation::kSitu) {
    l.situ_beta = a.gemm1_alpha ? *a.gemm1_alpha : hold(ones(l.experts));
    l.situ_linear = a.gemm1_beta ? *a.gemm1_beta : hold(ones(l.experts));
  }
  if (a.output1_scale_gate_scalar)
    l.inter_factor = hold(quotient(*a.output1_scale_scalar, *a.output1_scale_gate_scalar, l.experts));
  if constexpr (B::kFormat == MoeFormat::kMxint4) {
    const auto grid = [&](Weights& w, const TensorView& scales, int64_t n, int64_t k) {
      const TensorView t = hold(int4_scales(scales, l.experts, n, k / 32, l.ids));
      w.grid = {.p = t.data_as<float>(), .lines = 1, .line_stride = k / 32, .k_stride = 1, .batch = n * (k / 32)};
    };
    grid(l.first, *a.gemm1_weights_scale, l.width, hidden_of(a));
    grid(l.second, *a.gemm2_weights_scale, l.second_rows, l.inter);
  }
  return l;
}

/// The layer for a GPU: nothing is computed from contents of tensors, but named in `g` where the kernels find it.
template <class B>
Layer gpu_layer(const B& a, GpuCall& g) {
  Layer l = layer_of(a);
  g.choices = {.offset = a.local_expert_offset,
               .given = static_cast<int32_t>(a.top_k),
               .local = static_cast<int32_t>(a.local_num_experts)};
  if (a.routing_replay_out) g.choices.replay = results_of(*a.routing_replay_out);
  if (a.expert_weights) g.choices.weights_out = results_of(*a.expert_weights);
  if (B::kGiven) {
    g.choices.from = numbers_of(a.topk_ids.first);
    if (!a.topk_ids.stacked) g.choices.from_weights = numbers_of(a.topk_ids.second);
  } else {
    g.route = route_params(routing_of(a));
  }
  if (a.hidden_states_scale && has_scales(l.format)) {
    const TensorView& s = *a.hidden_states_scale;
    if (l.format == RowFormat::kFp8Blocks)
      l.x_grid = {.p = s.template data_as<float>(), .line_stride = s.stride(1), .k_stride = s.stride(0)};
    else
      l.x_sf = {.bytes = static_cast<const uint8_t*>(s.data()),
                .columns = hidden_of(a) / scale_block(l.format),
                .block = static_cast<int32_t>(scale_block(l.format)),
                .layout = SfLayout::kLinear,
                .e8m0 = l.format == RowFormat::kMxFp8};
  }
  if (B::kFormat == MoeFormat::kFp8PerChannel) l.row_factor = a.hidden_states_scale->view({l.tokens});
  if (a.per_token_scale) l.row_factor = *a.per_token_scale;
  if (l.kind == MoeActivation::kSwigluStep && l.limit) g.limit_factor = a.output1_scale_gate_scalar;
  if (l.kind == MoeActivation::kSitu) l.situ_beta = a.gemm1_alpha, l.situ_linear = a.gemm1_beta;
  g.situ_beta = g.situ_linear = 1;
  if (a.output1_scale_gate_scalar)
    l.inter_factor = a.output1_scale_scalar, g.inter_divisor = a.output1_scale_gate_scalar;
  if constexpr (B::kFormat == MoeFormat::kMxint4) {
    const auto grid = [](Weights& w, const TensorView& scales, int64_t n, int64_t k) {
      w.grid = {.p = static_cast<const float*>(scales.data()),
                .batch = sf_bytes(SfLayout::k128x4, n, k / 32),
                .dtype = scales.dtype(),
                .tiles = k / 32};
    };
    grid(l.first, *a.gemm1_weights_scale, l.width, hidden_of(a));
    grid(l.second, *a.gemm2_weights_scale, l.second_rows, l.inter);
  }
  return l;
}

}  // namespace flashinfer::moe::trtllm
