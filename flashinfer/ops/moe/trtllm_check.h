// SPDX-License-Identifier: Apache-2.0
// What the tables of the trtllm family cannot say.
#pragma once
#include <cmath>
#include <initializer_list>
#include <string>

#include "flashinfer/core/int_math.h"
#include "flashinfer/core/layout_error.h"
#include "flashinfer/ops/moe/trtllm_layer.h"

namespace flashinfer::moe::trtllm {

/// Errors of one op.
struct Check {
  void shape(const char* name, const TensorView& t, std::initializer_list<int64_t> want) const {
    std::string text;
    for (int64_t n : want) text += (text.empty() ? "" : ", ") + std::to_string(n);
    FI_CHECK(std::ranges::equal(t.shape(), want), ValueError, name, " is ", to_string(t), ", but must be [", text, "]");
  }
  void dtype(const char* name, const TensorView& t, DTypeSet set) const {
    FI_CHECK(set.has(t.dtype()), ValueError, name, ".dtype is ", flashinfer::name(t.dtype()), ", but must be ",
             to_string(set));
  }
  /// f32, `experts` numbers or one.
  void factor(const char* name, const std::optional<TensorView>& t, int64_t experts) const {
    if (!t) return;
    dtype(name, *t, DType::kF32);
    FI_CHECK(t->numel() == 1 || (t->rank() == 1 && t->size(0) == experts), ValueError, name, " is ", to_string(*t),
             ", but must be [", experts, "] or one number");
  }
  void rows(const char* name, const std::optional<TensorView>& t, int64_t experts, int64_t n) const {
    if (!t) return;
    dtype(name, *t, op::floats);
    shape(name, *t, {experts, n});
  }
  void bytes(const char* name, const TensorView& t, int64_t want, const std::string& why) const {
    FI_CHECK_LAYOUT(t.numel() == want, t.is_contiguous(), name, " is ", to_string(t), ", but must be ", want,
                    " scales, contiguous (", why, ")");
  }
  void given(const char* name, const std::optional<TensorView>& t, bool wanted, const char* why) const {
    FI_CHECK(t.has_value() == wanted, ValueError, name, " is ", t ? "given" : "None", ", but ", why);
  }
};

template <class B>
void check_extents(const Check& c, const B& a) {
  FI_CHECK(a.num_experts > 0 && a.local_num_experts > 0 && a.local_expert_offset >= 0 &&
               a.local_expert_offset + a.local_num_experts <= a.num_experts,
           ValueError, "local_expert_offset is ", a.local_expert_offset, " and local_num_experts ", a.local_num_experts,
           ", but they must be within num_experts, ", a.num_experts);
  FI_CHECK(a.top_k >= 1 && a.top_k <= a.num_experts, ValueError, "top_k is ", a.top_k, ", but must be in [1, ",
           a.num_experts, "] (num_experts)");
  FI_CHECK(a.intermediate_size > 0, ValueError, "intermediate_size is ", a.intermediate_size, ", but must be positive");
  const int64_t kind = a.activation_type;
  FI_CHECK(kind >= 0 && kind <= 12 && kind != 11, ValueError, "activation_type is ", kind,
           ", but must be an ActivationType");
  FI_CHECK(kind != 12, ValueError, "activation_type is 12, ClampedRelu2, but this op has no argument for its limit");
  const bool swiglu = kind == 3 || kind == 5, situ = kind == 10;
  const auto parameter = [&](const char* name, const std::optional<TensorView>& t, bool has, const char* whose) {
    if (!t) return;
    FI_CHECK(has, ValueError, name, " is given, but belongs to ", whose, "; activation_type is ", kind);
    c.dtype(name, *t, DType::kF32);
    c.shape(name, *t, {experts_of(a)});
    for (int64_t e = 0; situ && t->device() == kCpu && e < t->size(0); ++e)
      FI_CHECK(number(*t, e) > 0 && std::isfinite(number(*t, e)), ValueError, name, "[", e, "] is ", number(*t, e),
               ", but must be finite and positive for Situ");
  };
  parameter("gemm1_alpha", a.gemm1_alpha, swiglu || situ, "Swiglu 3, SwigluBias 5 and Situ 10");
  parameter("gemm1_beta", a.gemm1_beta, swiglu || situ, "Swiglu 3, SwigluBias 5 and Situ 10");
  parameter("gemm1_clamp_limit", a.gemm1_clamp_limit, swiglu || situ || kind == 7,
            "Swiglu 3, SwigluBias 5, SwigluStep 7 and Situ 10");
  const auto valid = [&](const char* name, const std::optional<int64_t>& t, int64_t size) {
    FI_CHECK(!t || (*t > 0 && *t <= size), ValueError, name, " is ", *t, ", but must be in [1, ", size, "]");
  };
  valid("valid_hidden_size", a.valid_hidden_size, hidden_of(a));
  valid("valid_intermediate_size", a.valid_intermediate_size, a.intermediate_size);
  FI_CHECK(a.do_finalize || valid_hidden(a) == hidden_of(a), NotImplementedError, "valid_hidden_size is ",
           valid_hidden(a), " of ", hidden_of(a),
           " and do_finalize False, but the width of gemm2_output is not documented for it: set do_finalize");
  const int64_t shared = shared_of(a);
  constexpr bool kShares = B::kFormat == MoeFormat::kFp8Block || B::kFormat == MoeFormat::kFp4Block;
  FI_CHECK(shared == 0 || kShares, ValueError, "num_fused_shared_experts is ", shared, ", but this format has none");
  FI_CHECK(
      shared == 0 || (shared > 0 && a.local_num_experts == a.num_experts && (B::kGiven || a.routing_method_type == 2)),
      ValueError, "num_fused_shared_experts is ", shared,
      ", but shared experts need DeepSeekV3 routing and all experts here (local_num_experts is ", a.local_num_experts,
      " of ", a.num_experts, ", routing_method_type ", a.routing_method_type, ")");
  FI_CHECK(a.hidden_states_scale_layout.value_or(2) == 2, NotImplementedError, "hidden_states_scale_layout is ",
           *a.hidden_states_scale_layout, ", but only SfLayout.layout_linear (2) is implemented");
  if (a.gemm1_lora_delta) {
    c.dtype("gemm1_lora_delta", *a.gemm1_lora_delta, op::floats);
    c.shape("gemm1_lora_delta", *a.gemm1_lora_delta,
            {a.hidden_states.size(0), a.top_k, gated(a) ? 2 * a.intermediate_size : a.intermediate_size});
  }
  if (a.per_token_scale) {
    c.dtype("per_token_scale", *a.per_token_scale, DType::kF32);
    c.shape("per_token_scale", *a.per_token_scale, {a.hidden_states.size(0)});
  }
  FI_CHECK(a.fp8_quantization_type == 1 || a.fp8_quantization_type == 2, ValueError, "fp8_quantization_type is ",
           a.fp8_quantization_type, ", but must be DeepSeekFp8 (1) or MxFp8 (2)");
}

template <class B>
void check_weight(const Check& c, const B& a, bool first, const TensorView& w, const std::optional<TensorView>& scale,
                  int64_t n, int64_t k, int64_t used) {
  const char *name = first ? "gemm1_weights" : "gemm2_weights",
             *scale_name = first ? "gemm1_weights_scale" : "gemm2_weights_scale";
  const int64_t e = experts_of(a);
  constexpr bool kFp8 = B::kFormat == MoeFormat::kFp8PerTensor || B::kFormat == MoeFormat::kFp8PerChannel ||
                        B::kFormat == MoeFormat::kFp8Block;
  c.dtype(name, w,
          kFp8             ? DTypeSet(DType::kF8E4M3)
          : four_bits<B>() ? DTypeSet(DType::kU8) | DType::kF4E2M1x2
                           : DTypeSet(DType::kBF16));
  FI_CHECK(a.weight_layout == 0 || (a.weight_layout == 2 && !mx(a)), ValueError, "weight_layout is ", a.weight_layout,
           ", but must be MajorK (0)", mx(a) ? "" : " or BlockMajorK (2)");
  const int64_t in_item = four_bits<B>() ? 2 : 1, block = by_blocks(a) ? 128 / w.item_size() * in_item : 0,
                step = deepseek(a) ? 128 : std::max<int64_t>(weight_block(a), 1);
  FI_CHECK(k % std::max(block, step) == 0, ValueError, "rows of ", name, " have ", k,
           " elements, but must have a multiple of ", std::max(block, step));
  FI_CHECK(used % std::max(block, step) == 0, ValueError, first ? "valid_hidden_size" : "valid_intermediate_size",
           " is ", used, ", but must be a multiple of ", std::max(block, step), " (blocks of ", name, ")");
  if (block)
    c.shape(name, w, {e, k / block, n, block / in_item});
  else
    c.shape(name, w, {e, n, k / in_item});
  FI_CHECK(!shuffled(a) || n % 32 == 0, ValueError, name, " has ", n,
           " rows, but shuffled weights have a multiple of 32");
  if (deepseek(a)) {
    c.dtype(scale_name, *scale, DType::kF32);
    c.shape(scale_name, *scale, {e, ceil_div(n, 128), k / 128});
  } else if (const int64_t fine = weight_block(a)) {
    c.dtype(scale_name, *scale,
            B::kFormat == MoeFormat::kMxint4 ? DTypeSet(DType::kBF16) : DTypeSet(DType::kU8) | DType::kF8E4M3);
    c.bytes(scale_name, *scale, e * sf_bytes(weight_sf_layout(a), n, k / fine),
            str(e, " matrices of ", n, " x ", k / fine, ", ", shuffled(a) ? "128x4" : "linear"));
  }
}

template <class B>
void check_hidden(const Check& c, const B& a) {
  const RowFormat format = rows_of(a);
  const int64_t h = hidden_of(a), t = a.hidden_states.size(0);
  constexpr DTypeSet kHalves = DTypeSet(DType::kBF16) | DType::kF16;
  switch (B::kFormat) {
    case MoeFormat::kBf16:
    case MoeFormat::kMxint4: c.dtype("hidden_states", a.hidden_states, DType::kBF16); break;
    case MoeFormat::kFp8Block: c.dtype("hidden_states", a.hidden_states, kHalves | DType::kF8E4M3); break;
    case MoeFormat::kFp4Block:
      c.dtype("hidden_states", a.hidden_states,
              DTypeSet(DType::kBF16) | DType::kF8E4M3 | DType::kU8 | DType::kF4E2M1x2);
      break;
    default: c.dtype("hidden_states", a.hidden_states, DType::kF8E4M3);
  }
  const bool scaled = B::kFormat == MoeFormat::kFp8PerChannel || (has_scales(format) && is_narrow(a.hidden_states));
  c.given("hidden_states_scale", a.hidden_states_scale, scaled,
          scaled ? "hidden states of this format come with it" : "hidden states of this format have none");
  if (!scaled) return;
  const TensorView& s = *a.hidden_states_scale;
  if (format == RowFormat::kFp8 || format == RowFormat::kFp8Blocks) {
    c.dtype("hidden_states_scale", s, DType::kF32);
    if (format == RowFormat::kFp8Blocks) return c.shape("hidden_states_scale", s, {h / 128, t});
    return c.bytes("hidden_states_scale", s, t, "one a token");
  }
  c.dtype("hidden_states_scale", s, DTypeSet(DType::kU8) | DType::kF8E4M3);
  c.bytes("hidden_states_scale", s, t * (h / scale_block(format)), str(t, " rows of ", h / scale_block(format)));
}

template <class B>
void check_routing_arguments(const Check& c, const B& a) {
  const int64_t t = a.hidden_states.size(0);
  if (a.routing_replay_out)
    FI_CHECK(a.routing_replay_out->size(0) >= t && a.routing_replay_out->size(1) == a.top_k, ValueError,
             "routing_replay_out is ", to_string(*a.routing_replay_out), ", but must be [", t, " or more, ", a.top_k,
             "]");
  if constexpr (!B::kGiven) {
    c.shape("routing_logits", a.routing_logits, {t, a.num_experts});
    if (a.routing_bias) c.shape("routing_bias", *a.routing_bias, {a.num_experts});
    check_routing(routing_of(a));
  } else {
    if (a.routing_bias) c.shape("routing_bias", *a.routing_bias, {a.num_experts});
    c.dtype("topk_ids", a.topk_ids.first, DType::kI32);
    c.shape("topk_ids", a.topk_ids.first, {t, a.top_k});
    if (!a.topk_ids.stacked) {
      c.dtype("topk_ids[1]", a.topk_ids.second, DTypeSet(DType::kBF16) | DType::kF32);
      c.shape("topk_ids[1]", a.topk_ids.second, {t, a.top_k});
    }
    if (a.hidden_states.device() != kCpu) return;
    const Routed r = given_routing(a.topk_ids, t, a.top_k);
    for (size_t i = 0; i < r.ids.size(); ++i)
      FI_CHECK(r.ids[i] >= -1 && r.ids[i] < a.num_experts, ValueError, "topk_ids[", static_cast<int64_t>(i) / a.top_k,
               "][", static_cast<int64_t>(i) % a.top_k, "] names expert ", r.ids[i], ", but must name one of ",
               a.num_experts, ", or -1: none");
  }
}

template <class B>
void check(const B& a) {
  const Check c;
  check_extents(c, a);
  constexpr bool kPerChannel = B::kFormat == MoeFormat::kFp8PerChannel,
                 kPerTensor = B::kFormat == MoeFormat::kFp8PerTensor;
  constexpr bool kScaled = B::kFormat == MoeFormat::kFp8Block || four_bits<B>();
  c.given("gemm1_weights_scale", a.gemm1_weights_scale, kScaled,
          kScaled ? "weights of this format have it" : "weights of this format have none");
  c.given("gemm2_weights_scale", a.gemm2_weights_scale, kScaled,
          kScaled ? "weights of this format have it" : "weights of this format have none");
  c.given("gemm1_per_channel_weight_scale", a.gemm1_per_channel_weight_scale, kPerChannel,
          "it belongs to the per channel format");
  c.given("gemm2_per_channel_weight_scale", a.gemm2_per_channel_weight_scale, kPerChannel,
          "it belongs to the per channel format");
  const int64_t h = hidden_of(a), n = gated(a) ? 2 * a.intermediate_size : a.intermediate_size, e = experts_of(a);
  const int64_t rows = second_rows(a);
  check_weight(c, a, true, a.gemm1_weights, a.gemm1_weights_scale, n, h, valid_hidden(a));
  check_weight(c, a, false, a.gemm2_weights, a.gemm2_weights_scale, rows, a.intermediate_size, valid_inter(a));
  c.rows("gemm1_per_channel_weight_scale", a.gemm1_per_channel_weight_scale, e, n);
  c.rows("gemm2_per_channel_weight_scale", a.gemm2_per_channel_weight_scale, e, rows);
  c.rows("gemm1_bias", a.gemm1_bias, e, n);
  c.rows("gemm2_bias", a.gemm2_bias, e, rows);
  constexpr bool kScalars = kPerTensor || kPerChannel || B::kFormat == MoeFormat::kFp4Block;
  const bool scalars = kPerTensor || kPerChannel || (kScalars && a.output1_scale_scalar);
  c.given("output1_scale_scalar", a.output1_scale_scalar, scalars,
          "weights of this format have none, or the three scalars go together");
  c.given("output1_scale_gate_scalar", a.output1_scale_gate_scalar, scalars, "it and output1_scale_scalar go together");
  if (!scalars || !kScalars)
    c.given("output2_scale_scalar", a.output2_scale_scalar, kScalars && a.output2_scale_scalar,
            "weights of this format have none");
  if (kPerTensor || kPerChannel)
    c.given("output2_scale_scalar", a.output2_scale_scalar, true, "weights of this format have it");
  c.factor("output1_scale_scalar", a.output1_scale_scalar, e);
  c.factor("output1_scale_gate_scalar", a.output1_scale_gate_scalar, e);
  c.factor("output2_scale_scalar", a.output2_scale_scalar, e);
  check_hidden(c, a);
  FI_CHECK(a.do_finalize || !a.output, ValueError, "output is given, but do_finalize is False");
  FI_CHECK(!a.use_routing_scales_on_input || kPerTensor || kPerChannel, ValueError,
           "use_routing_scales_on_input is True, but this format has none");
  if (a.hidden_states.device() == kCpu && a.output1_scale_gate_scalar)
    for (int64_t i = 0; i < a.output1_scale_gate_scalar->numel(); ++i)
      FI_CHECK(number(*a.output1_scale_gate_scalar, i) != 0, ValueError, "output1_scale_gate_scalar[", i, "] is 0");
  check_routing_arguments(c, a);
}

}  // namespace flashinfer::moe::trtllm
