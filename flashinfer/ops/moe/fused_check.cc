// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "flashinfer/ops/moe/fused_args.h"
#include "flashinfer/ops/quantization/block_launch.h"

namespace flashinfer::moe {
namespace {

void refuse_flags(const Moe& a) {
  const auto flag = [](bool set, const char* name) { FI_CHECK(!set, NotImplementedError, kName, ": ", name, " is True, but is not implemented"); };
  flag(a.use_deepseek_fp8_block_scale, "use_deepseek_fp8_block_scale");
  flag(a.use_w4_group_scaling, "use_w4_group_scaling");
  flag(a.use_mxfp8_act_scaling, "use_mxfp8_act_scaling");
  flag(a.min_latency_mode, "min_latency_mode");
  flag(a.use_packed_weights, "use_packed_weights");
  flag(a.use_wfp4afp8_humming, "use_wfp4afp8_humming");
  FI_CHECK(a.cluster_size == 1 && a.cluster_rank == 0, NotImplementedError, kName, ": cluster_size is ", a.cluster_size, ", but only 1 is implemented");
}
void check_rank(const char* size_name, int64_t size, const char* rank_name, int64_t rank) {
  FI_CHECK(size >= 1 && rank >= 0 && rank < size, ValueError, kName, ": ", rank_name, " is ", rank, ", but must be in [0, ", size, ") (", size_name, ")");
}
void check_shape(const char* name, const TensorView& t, std::initializer_list<int64_t> want) {
  FI_CHECK(std::ranges::equal(t.shape(), want), ValueError, kName, ": ", name, " is ", to_string(t), ", but must be [", [&] {
    std::string s;
    for (int64_t n : want) s += (s.empty() ? "" : ", ") + std::to_string(n);
    return s;
  }(), "]");
}
void check_floats(const char* name, const std::optional<TensorView>& t, int64_t experts, bool used) {
  if (!t) return;
  FI_CHECK(used, ValueError, kName, ": ", name, " is given, but the activation does not take it");
  FI_CHECK(t->dtype() == DType::kF32, ValueError, kName, ": ", name, ".dtype is ", flashinfer::name(t->dtype()), ", but must be float32");
  check_shape(name, *t, {experts});
}
void check_activation(const Moe& a, const Extents& x) {
  const MoeActivation kind = kind_of(a);
  FI_CHECK(a.activation_type >= 0 && a.activation_type <= 12 && a.activation_type != 11, ValueError, kName, ": activation_type is ",
           a.activation_type, ", but must be an ActivationType");
  FI_CHECK(!has_gate(kind) || x.width % 2 == 0, ValueError, kName, ": fc1_expert_weights.shape[1] is ", x.width,
           ", but must be even (the linear half and the gate)");
  const bool swiglu = kind == MoeActivation::kSwiglu || kind == MoeActivation::kSwigluBias, situ = kind == MoeActivation::kSitu;
  check_floats("swiglu_alpha", a.swiglu_alpha, x.experts, swiglu);
  check_floats("swiglu_beta", a.swiglu_beta, x.experts, swiglu);
  check_floats("swiglu_limit", a.swiglu_limit, x.experts, swiglu);
  check_floats("situ_beta", a.situ_beta, x.experts, situ);
  check_floats("situ_linear_beta", a.situ_linear_beta, x.experts, situ);
  const bool clamped = kind == MoeActivation::kClampedRelu2;
  FI_CHECK(clamped == a.clamped_relu2_limit.has_value(), ValueError, kName, ": clamped_relu2_limit is ", a.clamped_relu2_limit ? "given" : "None",
           ", but ClampedRelu2 (12), and only it, has one; activation_type is ", a.activation_type);
  if (!clamped) return;
  FI_CHECK(a.clamped_relu2_limit->numel() == 1 && a.clamped_relu2_limit->dtype() == DType::kF32, ValueError, kName, ": clamped_relu2_limit is ",
           to_string(*a.clamped_relu2_limit), ", but must be one float32");
  FI_CHECK(!a.fc1_expert_biases, ValueError, kName, ": fc1_expert_biases is given, but ClampedRelu2 takes none");
}
void check_factor(const char* what, const TensorView& t, int64_t experts) {
  FI_CHECK(t.dtype() == DType::kF32 && (t.numel() == 1 || (t.rank() == 1 && t.size(0) == experts)), ValueError, kName, ": quant_scales, ", what, ", is ",
           to_string(t), ", but must be float32[", experts, "] or one float32");
}
void check_gs(const char* what, const TensorView& t) {
  FI_CHECK(t.dtype() == DType::kF32, ValueError, kName, ": quant_scales, ", what, ", is ", to_string(t), ", but must be one float32");
  ops::global_scale(kName, str("quant_scales, ", what, ",").c_str(), t);
}
void check_weight_sf(const char* what, const TensorView& t, int64_t experts, int64_t rows, int64_t k) {
  FI_CHECK(k % 16 == 0, ValueError, kName, ": ", what, ": rows have ", k, " elements, but must have a multiple of 16");
  const int64_t bytes = experts * sf_bytes(SfLayout::k128x4, rows, k / 16);
  FI_CHECK(t.nbytes() == bytes && t.is_contiguous(), ValueError, kName, ": quant_scales, ", what, ", is ", to_string(t), ", but must be ", bytes,
           " bytes, contiguous (128x4 for each of ", experts, " experts)");
}
void check_mode(const Moe& a, const Extents& x) {
  FI_CHECK(op::floats.has(a.output_dtype), ValueError, kName, ": output_dtype is ", name(a.output_dtype), ", but must be ", to_string(op::floats));
  const Mode mode = mode_of(a);
  const size_t want = mode == Mode::kPlain ? 0 : mode == Mode::kFp8 ? 4 : 6, given = a.quant_scales ? a.quant_scales->size() : 0;
  FI_CHECK(given == want, ValueError, kName, ": quant_scales has ", given, " tensors, but weights of ", name(a.fc1_expert_weights.dtype()), " need ", want);
  FI_CHECK(!a.input_sf || (mode == Mode::kNvfp4 && is_bytes(a.input)), ValueError, kName, ": input_sf is given, but the input is ",
           name(a.input.dtype()), " with weights of ", name(a.fc1_expert_weights.dtype()));
  if (mode == Mode::kPlain)
    FI_CHECK(a.input.dtype() == a.fc1_expert_weights.dtype(), ValueError, kName, ": input.dtype is ", name(a.input.dtype()),
             ", but fc1_expert_weights.dtype is ", name(a.fc1_expert_weights.dtype()));
  if (mode == Mode::kFp8) {
    FI_CHECK(a.input.dtype() == DType::kF8E4M3, ValueError, kName, ": input.dtype is ", name(a.input.dtype()),
             ", but weights of float8_e4m3fn need an input of float8_e4m3fn");
    check_factor("gemm1 dequant scale", (*a.quant_scales)[0], x.experts);
    check_gs("gemm2 activation quant scale", (*a.quant_scales)[1]);
    check_factor("gemm2 dequant scale", (*a.quant_scales)[2], x.experts);
  }
  if (mode == Mode::kNvfp4) {
    const bool packed = is_bytes(a.input);
    FI_CHECK(packed || a.input.dtype() == DType::kBF16 || a.input.dtype() == DType::kF16, ValueError, kName, ": input.dtype is ",
             name(a.input.dtype()), ", but NVFP4 weights take bfloat16, float16 or packed codes");
    FI_CHECK(packed == a.input_sf.has_value(), ValueError, kName, ": input_sf is ", a.input_sf ? "given" : "None", ", but the input is ",
             name(a.input.dtype()));
    check_gs("gemm1 activation global scale", (*a.quant_scales)[0]);
    check_weight_sf("gemm1 weights block scales", (*a.quant_scales)[1], x.experts, x.width, x.hidden);
    check_factor("gemm1 dequant scale", (*a.quant_scales)[2], x.experts);
    check_gs("gemm2 activation global scale", (*a.quant_scales)[3]);
    check_weight_sf("gemm2 weights block scales", (*a.quant_scales)[4], x.experts, x.hidden, x.inter);
    check_factor("gemm2 dequant scale", (*a.quant_scales)[5], x.experts);
    if (packed) {
      const int64_t bytes = sf_bytes(a.swizzled_input_sf ? SfLayout::k128x4 : SfLayout::kLinear, x.tokens, x.hidden / 16);
      FI_CHECK(a.input_sf->nbytes() == bytes && a.input_sf->is_contiguous(), ValueError, kName, ": input_sf is ", to_string(*a.input_sf), ", but ", x.tokens,
               " rows of ", x.hidden, " elements need ", bytes, " bytes, contiguous");
    }
  }
}
}  // namespace

void validate(const Moe& a) {
  refuse_flags(a);
  check_rank("tp_size", a.tp_size, "tp_rank", a.tp_rank);
  check_rank("ep_size", a.ep_size, "ep_rank", a.ep_rank);
  const Extents x = extents_of(a);
  check_activation(a, x);
  const int64_t per = mode_of(a) == Mode::kNvfp4 ? 2 : 1;
  FI_CHECK(a.fc2_expert_weights.dtype() == a.fc1_expert_weights.dtype(), ValueError, kName, ": fc2_expert_weights.dtype is ",
           name(a.fc2_expert_weights.dtype()), ", but fc1_expert_weights.dtype is ", name(a.fc1_expert_weights.dtype()));
  FI_CHECK(x.inter % per == 0, ValueError, kName, ": the intermediate size is ", x.inter, ", but must be even");
  check_shape("fc2_expert_weights", a.fc2_expert_weights, {x.experts, x.hidden, x.inter / per});
  check_shape("input", a.input, {x.tokens, is_bytes(a.input) ? x.hidden / 2 : x.hidden});
  if (a.fc1_expert_biases) check_shape("fc1_expert_biases", *a.fc1_expert_biases, {x.experts, x.width});
  if (a.fc2_expert_biases) check_shape("fc2_expert_biases", *a.fc2_expert_biases, {x.experts, x.hidden});
  if (a.input.device() != kCpu) return;
  check_mode(a, x);
  if (a.enable_alltoall) return;
  for (int64_t t = 0; t < x.tokens; ++t)
    for (int64_t j = 0; j < x.top_k; ++j) {
      const int64_t e = static_cast<int64_t>(ref::at(a.token_selected_experts, {t, j}));
      FI_CHECK(e >= 0 && e < x.experts * a.ep_size, ValueError, kName, ": token_selected_experts[", t, "][", j, "] is ", e, ", but must be in [0, ",
               x.experts * a.ep_size, ") (", x.experts, " experts on each of ", a.ep_size, " ranks)");
    }
}

}  // namespace flashinfer::moe
