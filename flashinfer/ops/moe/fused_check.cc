// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "flashinfer/core/layout_error.h"
#include "flashinfer/ops/moe/fused_args.h"
#include "flashinfer/ops/moe/sm90_order.h"
#include "flashinfer/ops/quantization/block/launch.h"

namespace flashinfer::moe {
namespace {

void check_flags(const Moe& a) {
  const auto flag = [](bool set, const char* name) {
    FI_CHECK(!set, NotImplementedError, name, " is True, but is not implemented");
  };
  flag(a.min_latency_mode, "min_latency_mode");
  flag(a.use_wfp4afp8_humming, "use_wfp4afp8_humming");
  FI_CHECK(a.cluster_size == 1 && a.cluster_rank == 0, NotImplementedError, "cluster_size is ", a.cluster_size,
           ", but only 1 is implemented");
  const bool fp8 = a.fc1_expert_weights.dtype() == DType::kF8E4M3, bytes = is_bytes(first_weights(a));
  const auto needs = [&](bool set, bool fits, const char* name, const char* what) {
    FI_CHECK(!set || fits, ValueError, name, " is True, but fc1_expert_weights.dtype is ",
             flashinfer::name(a.fc1_expert_weights.dtype()), ", not ", what);
  };
  needs(a.use_deepseek_fp8_block_scale, fp8, "use_deepseek_fp8_block_scale", "float8_e4m3fn");
  FI_CHECK(!a.use_packed_weights || mode_of(a) == Mode::kInt4, ValueError,
           "use_packed_weights is True, but weights are not 4-bit integers (use_w4_group_scaling and 8 quant_scales)");
  needs(a.use_w4_group_scaling, bytes, "use_w4_group_scaling", "uint8 (MXFP4)");
  needs(a.use_mxfp8_act_scaling, fp8 || bytes, "use_mxfp8_act_scaling", "float8_e4m3fn or uint8 (MXFP4)");
  FI_CHECK(a.use_deepseek_fp8_block_scale + a.use_w4_group_scaling + a.use_mxfp8_act_scaling <= 1, ValueError,
           "of use_deepseek_fp8_block_scale, use_w4_group_scaling and use_mxfp8_act_scaling more than one is True");
}
void check_rank(const char* size_name, int64_t size, const char* rank_name, int64_t rank) {
  FI_CHECK(size >= 1 && rank >= 0 && rank < size, ValueError, rank_name, " is ", rank, ", but must be in [0, ", size,
           ") (", size_name, ")");
}
void check_shape(const char* name, const TensorView& t, std::initializer_list<int64_t> want) {
  FI_CHECK(
      std::ranges::equal(t.shape(), want), ValueError, name, " is ", to_string(t), ", but must be [",
      [&] {
        std::string s;
        for (int64_t n : want) s += (s.empty() ? "" : ", ") + std::to_string(n);
        return s;
      }(),
      "]");
}
void check_floats(const char* name, const std::optional<TensorView>& t, int64_t experts, bool used) {
  if (!t) return;
  FI_CHECK(used, ValueError, name, " is given, but the activation does not take it");
  FI_CHECK(t->dtype() == DType::kF32, ValueError, name, ".dtype is ", flashinfer::name(t->dtype()),
           ", but must be float32");
  check_shape(name, *t, {experts});
}
void check_activation(const Moe& a, const Layer& x) {
  const MoeActivation kind = static_cast<MoeActivation>(a.activation_type);
  FI_CHECK(a.activation_type >= 0 && a.activation_type <= 12 && a.activation_type != 11, ValueError,
           "activation_type is ", a.activation_type, ", but must be an ActivationType");
  FI_CHECK(!has_gate(kind) || x.width % 2 == 0, ValueError, "fc1_expert_weights.shape[1] is ", x.width,
           ", but must be even (the linear half and the gate)");
  const bool swiglu = kind == MoeActivation::kSwiglu || kind == MoeActivation::kSwigluBias,
             situ = kind == MoeActivation::kSitu;
  check_floats("swiglu_alpha", a.swiglu_alpha, x.experts, swiglu);
  check_floats("swiglu_beta", a.swiglu_beta, x.experts, swiglu);
  check_floats("swiglu_limit", a.swiglu_limit, x.experts, swiglu);
  check_floats("situ_beta", a.situ_beta, x.experts, situ);
  check_floats("situ_linear_beta", a.situ_linear_beta, x.experts, situ);
  const bool clamped = kind == MoeActivation::kClampedRelu2;
  FI_CHECK(clamped == a.clamped_relu2_limit.has_value(), ValueError, "clamped_relu2_limit is ",
           a.clamped_relu2_limit ? "given" : "None",
           ", but ClampedRelu2 (12), and only it, has one; activation_type is ", a.activation_type);
  if (!clamped) return;
  FI_CHECK(a.clamped_relu2_limit->numel() == 1 && a.clamped_relu2_limit->dtype() == DType::kF32, ValueError,
           "clamped_relu2_limit is ", to_string(*a.clamped_relu2_limit), ", but must be one float32");
  FI_CHECK(!a.fc1_expert_biases, ValueError, "fc1_expert_biases is given, but ClampedRelu2 takes none");
}
void check_factor(const char* what, const TensorView& t, int64_t experts) {
  FI_CHECK(t.dtype() == DType::kF32 && (t.numel() == 1 || (t.rank() == 1 && t.size(0) == experts)), ValueError,
           "quant_scales, ", what, ", is ", to_string(t), ", but must be float32[", experts, "] or one float32");
}
void check_gs(const char* what, const TensorView& t) {
  FI_CHECK(t.dtype() == DType::kF32, ValueError, "quant_scales, ", what, ", is ", to_string(t),
           ", but must be one float32");
  if (t.device() == kCpu) ops::global_scale(str("quant_scales, ", what, ",").c_str(), t);
}
void check_weight_sf(const char* what, const TensorView& t, Mode mode, bool panels, int64_t experts, int64_t rows,
                     int64_t k) {
  if (panels) {
    gemm::check_packed_sf(str("quant_scales, ", what, ","), t, true, experts, rows, k, weight_block(mode));
    return;
  }
  const int64_t block = weight_block(mode), bytes = experts * sf_bytes(weight_sf_layout(mode), rows, k / block);
  FI_CHECK_LAYOUT(t.nbytes() == bytes, t.is_contiguous(), "quant_scales, ", what, ", is ", to_string(t),
                  ", but must be ", bytes, " bytes, contiguous (",
                  weight_sf_layout(mode) == SfLayout::kLinear ? "linear" : "128x4", " for each of ", experts,
                  " experts)");
}
void check_scale(const Moe& a, const Layer& x, Scale s, const TensorView& t) {
  const Mode mode = mode_of(a);
  if (has_sm90_order(a)) {
    if (s == Scale::kSf1 || s == Scale::kGroups1)
      return check_sm90_scales("scales of gemm1", t, mode, x.experts, x.width, x.hidden);
    if (s == Scale::kSf2 || s == Scale::kGroups2) {
      FI_CHECK(t.rank() == 5, ValueError, "quant_scales, scales of gemm2, is ", to_string(t),
               ", but those of gemm1 have 5 dimensions: both are interleaved for SM90, or none");
      return check_sm90_scales("scales of gemm2", t, mode, x.experts, x.hidden, x.inter);
    }
  }
  switch (s) {
    case Scale::kSf1:
      return check_weight_sf("gemm1 weights block scales", t, mode, has_panels(a), x.experts, x.width, x.hidden);
    case Scale::kSf2:
      FI_CHECK(mode != Mode::kMxfp4 || t.rank() != 5, ValueError, "quant_scales, scales of gemm2, is ", to_string(t),
               ", but those of gemm1 do not have 5 dimensions: both are interleaved for SM90, or none");
      return check_weight_sf("gemm2 weights block scales", t, mode, has_panels(a), x.experts, x.hidden, x.inter);
    case Scale::kGrid1:
    case Scale::kGrid2: {
      const bool first = s == Scale::kGrid1;
      FI_CHECK(t.dtype() == DType::kF32, ValueError, "quant_scales, block scales of gemm", first ? 1 : 2, ", is ",
               to_string(t), ", but must be float32");
      gemm::check_grid(
          first ? "quant_scales, gemm1 weights block scales," : "quant_scales, gemm2 weights block scales,", t, false,
          x.experts, first ? x.width : x.hidden, first ? x.hidden : x.inter, 128, 128);
      return;
    }
    case Scale::kGroups1:
    case Scale::kGroups2: {
      const bool first = s == Scale::kGroups1;
      FI_CHECK(op::floats.has(t.dtype()), ValueError, "quant_scales, group scales of gemm", first ? 1 : 2, ", is ",
               to_string(t), ", but must be ", to_string(op::floats));
      return check_shape(first ? "quant_scales, group scales of gemm1," : "quant_scales, group scales of gemm2,", t,
                         {x.experts, first ? x.width : x.hidden, (first ? x.hidden : x.inter) / 128});
    }
    case Scale::kCast1:
    case Scale::kCast2: {
      const int64_t k = s == Scale::kCast1 ? x.hidden : x.inter;
      FI_CHECK_LAYOUT(op::floats.has(t.dtype()) && (t.numel() == 1 || t.numel() == k), t.is_contiguous(),
                      "quant_scales, activation scale of gemm", s == Scale::kCast1 ? 1 : 2, ", is ", to_string(t),
                      ", but must be one number or ", k);
      return;
    }
    case Scale::kZeros:
      FI_CHECK(t.numel() == 0, NotImplementedError, "quant_scales, weight zeros, is ", to_string(t),
               ", but only none are implemented");
      return;
    case Scale::kFactor1: return check_factor("gemm1 dequant scale", t, x.experts);
    case Scale::kFactor2: return check_factor("gemm2 dequant scale", t, x.experts);
    case Scale::kInput: return check_gs("gemm1 activation global scale", t);
    case Scale::kInter:
      if (mode == Mode::kMxfp4Fp8) return check_factor("gemm2 activation quant scale", t, x.experts);
      return check_gs("gemm2 activation global scale", t);
    default: return;
  }
}
/// The weights' ranks, and that packed ones are allowed.
void check_ranks(const Moe& a) {
  for (const auto& [name, t] :
       {std::pair("fc1_expert_weights", &a.fc1_expert_weights), std::pair("fc2_expert_weights", &a.fc2_expert_weights)})
    FI_CHECK(t->dtype() != DType::kI64 || t->last_dim_contiguous(), ValueError, name, " is ", to_string(*t),
             ", but FP4 codes in int64 must be contiguous along the last dimension");
  const TensorView fc1 = first_weights(a), fc2 = second_weights(a);
  FI_CHECK(!has_sm90_order(a) || (fc1.is_contiguous() && fc2.is_contiguous()), LayoutError, "fc1_expert_weights is ",
           to_string(fc1), " and fc2_expert_weights ", to_string(fc2),
           ", but weights in the order of SM90 must be contiguous");
  const bool narrow = fc1.dtype() == DType::kF8E4M3 || is_bytes(fc1),
             panels = fc1.rank() == 4 && fc1.size(3) == kPanelLine && narrow;
  FI_CHECK(fc1.rank() == 3 || panels, ValueError, "fc1_expert_weights is ", to_string(fc1),
           ", but must be [experts, n, k], or FP8 or FP4 from prepare_quantized_weights");
  FI_CHECK(fc2.rank() == fc1.rank() && (!panels || (fc2.size(3) == kPanelLine && fc2.size(0) == fc1.size(0))),
           ValueError, "fc2_expert_weights is ", to_string(fc2), ", but fc1_expert_weights is ", to_string(fc1),
           panels ? ": both or none must be packed, for as many experts" : "");
  FI_CHECK(!panels || mode_of(a) != Mode::kInt4, ValueError, "fc1_expert_weights is ", to_string(fc1),
           ", but weights of 4-bit integers (8 quant_scales) have no packed form");
}
/// The input's dtype and scale factors.
void check_input(const Moe& a, const Layer& x) {
  const Mode mode = mode_of(a);
  const DType t = a.input.dtype(), w = a.fc1_expert_weights.dtype();
  const bool half = t == DType::kBF16 || t == DType::kF16, packed = is_narrow(a.input);
  FI_CHECK(!a.input_sf || (packed && (x.format == RowFormat::kNvfp4 || x.format == RowFormat::kMxFp8)), ValueError,
           "input_sf is given, but the input is ", name(t), " with weights of ", name(w));
  const auto want = [&](bool fits, const char* what) {
    FI_CHECK(fits, ValueError, "input.dtype is ", name(t), ", but weights of ", name(w), " with these scales take ",
             what);
  };
  switch (x.format) {
    case RowFormat::kPlain:
      want(mode == Mode::kPlain ? t == w : half,
           mode == Mode::kPlain ? "an input of the same dtype" : "bfloat16 or float16");
      return;
    case RowFormat::kFp8:
      if (mode == Mode::kInt4) return want(half, "bfloat16 or float16");
      want(t == DType::kF8E4M3, "an input of float8_e4m3fn");
      return;
    case RowFormat::kFp8Blocks: want(half, "bfloat16 or float16"); return;
    case RowFormat::kMxFp8: want(half || t == DType::kF8E4M3, "bfloat16, float16 or float8_e4m3fn"); break;
    case RowFormat::kNvfp4: want(half || is_bytes(a.input), "bfloat16, float16 or packed codes"); break;
  }
  FI_CHECK(packed == a.input_sf.has_value(), ValueError, "input_sf is ", a.input_sf ? "given" : "None",
           ", but the input is ", name(t));
  if (!packed) return;
  const int64_t bytes =
      sf_bytes(a.swizzled_input_sf ? SfLayout::k128x4 : SfLayout::kLinear, x.tokens, x.hidden / scale_block(x.format));
  FI_CHECK_LAYOUT(a.input_sf->nbytes() == bytes, a.input_sf->is_contiguous(), "input_sf is ", to_string(*a.input_sf),
                  ", but ", x.tokens, " rows of ", x.hidden, " elements need ", bytes, " bytes, contiguous");
}
void check_scales(const Moe& a) {
  FI_CHECK(op::floats.has(a.output_dtype), ValueError, "output_dtype is ", name(a.output_dtype), ", but must be ",
           to_string(op::floats));
  const auto scales = scales_of(mode_of(a));
  const size_t given = a.quant_scales ? a.quant_scales->size() : 0;
  FI_CHECK(given == scales.size(), ValueError, "quant_scales has ", given, " tensors, but weights of ",
           name(a.fc1_expert_weights.dtype()), " with these flags need ", scales.size(),
           is_bytes(first_weights(a)) && scales.size() == 6 ? " (or 5: MXFP4 with rows of float8_e4m3fn)" : "");
}
}  // namespace

void validate(const Moe& a) {
  check_ranks(a);
  check_flags(a);
  check_rank("tp_size", a.tp_size, "tp_rank", a.tp_rank);
  check_rank("ep_size", a.ep_size, "ep_rank", a.ep_rank);
  check_scales(a);
  const Mode mode = mode_of(a);
  if (has_panels(a) && op::inferring()) return;  // extents are the headers'
  const Layer x = extents_of(a);
  check_activation(a, x);
  const int64_t per = has_four_bits(mode) ? 2 : 1;
  FI_CHECK(a.fc2_expert_weights.dtype() == a.fc1_expert_weights.dtype(), ValueError, "fc2_expert_weights.dtype is ",
           name(a.fc2_expert_weights.dtype()), ", but fc1_expert_weights.dtype is ",
           name(a.fc1_expert_weights.dtype()));
  const int64_t block =
      x.format == RowFormat::kFp8Blocks || mode == Mode::kInt4 ? 128 : std::max<int64_t>(weight_block(mode), 1);
  FI_CHECK(x.hidden % block == 0 && x.inter % block == 0, ValueError, "the hidden size is ", x.hidden,
           " and the intermediate size ", x.inter, ", but rows must have a multiple of ", block,
           " elements (that share a scale)");
  if (has_panels(a)) {
    const int64_t n = gemm::packed_columns("fc2_expert_weights", second_weights(a), x.inter);
    FI_CHECK(n == x.hidden, ValueError, "fc2_expert_weights is packed for ", n, " columns, but the hidden size is ",
             x.hidden, " (from input)");
  } else {
    check_shape("fc2_expert_weights", second_weights(a), {x.experts, x.hidden, x.inter / per});
  }
  check_shape("input", a.input, {x.tokens, is_bytes(a.input) ? x.hidden / 2 : x.hidden});
  if (a.fc1_expert_biases) check_shape("fc1_expert_biases", *a.fc1_expert_biases, {x.experts, x.width});
  if (a.fc2_expert_biases) check_shape("fc2_expert_biases", *a.fc2_expert_biases, {x.experts, x.hidden});
  check_input(a, x);
  const auto scales = scales_of(mode);
  for (size_t i = 0; i < scales.size(); ++i) check_scale(a, x, scales[i], (*a.quant_scales)[i]);
  if (a.token_selected_experts.device() != kCpu || a.enable_alltoall) return;
  for (int64_t t = 0; t < x.tokens; ++t)
    for (int64_t j = 0; j < x.top_k; ++j) {
      const int64_t e = static_cast<int64_t>(ref::at(a.token_selected_experts, {t, j}));
      FI_CHECK(e >= 0 && e < x.experts * a.ep_size, ValueError, "token_selected_experts[", t, "][", j, "] is ", e,
               ", but must be in [0, ", x.experts * a.ep_size, ") (", x.experts, " experts on each of ", a.ep_size,
               " ranks)");
    }
}

}  // namespace flashinfer::moe
