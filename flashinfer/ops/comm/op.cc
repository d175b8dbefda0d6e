// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/comm/op.h"

#include <cmath>

#include "flashinfer/core/int_math.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/ops/comm/context_parallel_ops.h"
#include "flashinfer/ops/comm/kernels/params.h"
#include "flashinfer/ops/comm/moe_a2a_layout.h"
#include "flashinfer/ops/comm/moe_reduction.h"
#include "flashinfer/ops/comm/peers.h"
#include "flashinfer/ops/comm/shared_sum.h"
#include "flashinfer/ops/comm/workspace.h"

namespace flashinfer {
namespace ops::comm {
namespace {
using A = AllReduceFusion;
using P = AllReduceFusionPattern;
using op::Shape;

// ---- patterns ----
AllReduceQuant quant_of(const A& a) {
  switch (P{static_cast<uint8_t>(a.pattern)}) {
    case P::kArResidualRmsNormFp8Quant:
    case P::kArResidualRmsNormOutFp8Quant:
    case P::kMoeFinalizeArResidualRmsNormFp8Quant: return AllReduceQuant::kFp8;
    case P::kArResidualRmsNormFp4Quant:
    case P::kArResidualRmsNormOutFp4Quant: return AllReduceQuant::kNvfp4;
    case P::kArResidualRmsNormPerTokenGroupFp8PackedQuant:
    case P::kArResidualRmsNormOutPerTokenGroupFp8PackedQuant: return AllReduceQuant::kGroupFp8;
    case P::kArResidualRmsNormDynamicFp8Quant:
    case P::kArResidualRmsNormOutDynamicFp8Quant: return AllReduceQuant::kDynamicFp8;
    case P::kMoeReductionArResidualRmsNorm:
    case P::kMoeFinalizeArResidualRmsNorm: return a.quant_out ? AllReduceQuant::kNvfp4 : AllReduceQuant::kNone;
    default: return AllReduceQuant::kNone;
  }
}
/// Pattern 6 computes the results that it is given memory for, or the normalised rows.
bool wants_only_sum(const A& a) {
  return is_moe_reduction(a) && a.output && !a.norm_out && !a.quant_out && !a.residual_out;
}
bool has_norm(const A& a) { return a.pattern != 0 && !wants_only_sum(a); }
bool returns_sum(const A& a) { return !has_norm(a); }
bool quantises(const A& a) { return quant_of(a) != AllReduceQuant::kNone; }
bool is_fp4(const A& a) { return quant_of(a) == AllReduceQuant::kNvfp4; }
/// Patterns whose name has "Out", and the one without quantisation.
bool returns_norm(const A& a) {
  if (is_moe_reduction(a)) return a.norm_out || (!a.quant_out && !a.residual_out && !a.output);
  return a.pattern == 1 || a.pattern == 4 || a.pattern == 5 || a.pattern == 7 || a.pattern == 9 || a.pattern == 11;
}
bool returns_codes(const A& a) { return quantises(a) && !returns_norm(a); }
bool returns_residual(const A& a) { return is_moe_reduction(a) && a.residual_out && !a.norm_out && !a.quant_out; }
/// Results that the function does not return: written where the caller gives memory for them.
bool is_never_made(const A&) { return false; }

// ---- shapes ----
/// The input of patterns 7 and 12 has rows of experts.
int64_t tokens(const A& a) { return is_moe_finalize(a) && a.residual_in ? a.residual_in->size(0) : a.input.size(0); }
int64_t hidden(const A& a) { return a.input.size(1); }
Shape rows_shape(const A& a) { return {2, {tokens(a), hidden(a)}}; }
SfLayout layout_of(const A& a) { return static_cast<SfLayout>(a.layout_code.value_or(0)); }
Shape codes_shape(const A& a) { return {2, {tokens(a), is_fp4(a) ? hidden(a) / 2 : hidden(a)}}; }
DType codes_dtype(const A& a) {
  if (!is_fp4(a)) return DType::kF8E4M3;
  return a.quant_out && a.quant_out->dtype() == DType::kF4E2M1x2 ? DType::kF4E2M1x2 : DType::kU8;
}
/// Words of four exponents.
int64_t scale_words(const A& a) { return ceil_div(hidden(a) / *a.block_quant_group_size, 4); }

// ---- checks ----
void check_given(bool given, const char* name, const A& a) {
  FI_CHECK(given, ValueError, name, " is required for pattern ", a.pattern, ", but is None");
}
void check_rows(const std::optional<TensorView>& t, const char* name, const A& a) {
  FI_CHECK(!t || t->size(0) == tokens(a), ValueError, name, ".shape[0] is ", t->size(0), ", but must be ", tokens(a),
           " (", is_moe_finalize(a) ? "residual_in" : "input", ")");
}
void check_pattern(const A& a) {
  FI_CHECK(a.pattern >= 0 && a.pattern <= 12, ValueError, "pattern is ", a.pattern, ", but must be in [0, 12]");
  FI_CHECK(a.moe_finalize_backend == "trtllm" || a.moe_finalize_backend == "cake", ValueError,
           "moe_finalize_backend is '", a.moe_finalize_backend, "', but must be 'trtllm' or 'cake'");
  check_rows(a.residual_in, "residual_in", a);
  check_moe(a);
}
void check_norm(const A& a) {
  check_given(a.residual_in.has_value(), "residual_in", a);
  check_given(a.rms_gamma.has_value(), "rms_gamma", a);
  FI_CHECK(a.rms_eps >= 0, ValueError, "rms_eps is ", a.rms_eps, ", but must be at least 0");
  const DType w = a.rms_gamma->dtype();
  FI_CHECK(w == a.input.dtype() || w == DType::kF32, ValueError, "rms_gamma.dtype is ", name(w), ", but must be ",
           name(a.input.dtype()), " (as input) or float32");
}
float scale_of(const A& a) {
  if (!a.scale_factor) return 1;
  const TensorView* t = a.scale_factor->tensor();
  if (!t) return static_cast<float>(a.scale_factor->number());
  FI_CHECK(t->numel() == 1 && t->dtype() == DType::kF32, ValueError, "scale_factor is ", to_string(*t),
           ", but must be a number or one float32");
  return host_can_read(t->device()) ? t->data_as<float>()[0] : 1;
}
/// As a kernel for GPUs reads it.
FactorSource scale_source(const A& a) {
  const TensorView* t = a.scale_factor ? a.scale_factor->tensor() : nullptr;
  if (t) return {.data = t->data(), .value = 1, .dtype = t->dtype()};
  return {.value = a.scale_factor ? static_cast<float>(a.scale_factor->number()) : 1};
}
void check_scale_bytes(const A& a) {
  FI_CHECK(!a.layout_code || (*a.layout_code >= 0 && *a.layout_code <= 2), ValueError, "layout_code is ",
           a.layout_code.value_or(0), ", but must be 0 (128x4), 1 (8x4) or 2 (linear)");
  FI_CHECK(hidden(a) % 16 == 0, ValueError, "input.shape[1] is ", hidden(a), ", but must be a multiple of 16 for FP4");
  const int64_t bytes = sf_bytes(layout_of(a), tokens(a), hidden(a) / 16);
  FI_CHECK(a.scale_out->numel() == bytes && a.scale_out->item_size() == 1, ValueError, "scale_out is ",
           to_string(*a.scale_out), ", but must have ", bytes, " bytes (layout_code ", a.layout_code.value_or(0), ", ",
           tokens(a), " rows of ", hidden(a) / 16, " scales)");
}
void check_scale_words(const A& a) {
  const int64_t group = a.block_quant_group_size.value_or(0);
  FI_CHECK(group > 0 && hidden(a) % group == 0, ValueError, "block_quant_group_size is ", group,
           ", but must be positive and divide input.shape[1], ", hidden(a));
  const TensorView& s = *a.scale_out;
  const int64_t stride = round_up(tokens(a), 4);
  const bool fits =
      s.dtype() == DType::kI32 && s.rank() == 2 && s.size(0) == tokens(a) && s.size(1) == scale_words(a) &&
      (s.numel() <= 1 || ((s.size(0) <= 1 || s.stride(0) == 1) && (s.size(1) <= 1 || s.stride(1) == stride)));
  FI_CHECK(fits, ValueError, "scale_out is ", to_string(s), ", but must be int32 [", tokens(a), ", ", scale_words(a),
           "] with strides (1, ", stride, ")");
}
void check_quant(const A& a) {
  if (returns_norm(a)) check_given(a.quant_out.has_value(), "quant_out", a);
  if (a.quant_out) {
    const TensorView& q = *a.quant_out;
    const Shape s = codes_shape(a);
    FI_CHECK(q.rank() == 2 && q.size(0) == s.size[0] && q.size(1) == s.size[1], ValueError, "quant_out is ",
             to_string(q), ", but must be [", s.size[0], ", ", s.size[1], "]");
  }
  const AllReduceQuant quant = quant_of(a);
  if (quant != AllReduceQuant::kFp8) check_given(a.scale_out.has_value(), "scale_out", a);
  if (quant == AllReduceQuant::kFp8 || quant == AllReduceQuant::kNvfp4) {
    const float scale = scale_of(a);
    FI_CHECK(std::isnormal(scale) && scale > 0, ValueError, "scale_factor is ", scale,
             ", but must be a positive number");
  }
  if (quant == AllReduceQuant::kNvfp4) check_scale_bytes(a);
  if (quant == AllReduceQuant::kGroupFp8) check_scale_words(a);
  if (quant == AllReduceQuant::kDynamicFp8)
    FI_CHECK(a.scale_out->dtype() == DType::kF32 && a.scale_out->numel() == tokens(a), ValueError, "scale_out is ",
             to_string(*a.scale_out), ", but must be float32 [", tokens(a), ", 1]");
}
const AllReduceState& state_of(const A& a) {
  FI_CHECK(a.workspace->type == &all_reduce_state, TypeError, "workspace is a ", a.workspace->class_name,
           ", but must be an AllReduceFusionWorkspace");
  return a.workspace->as<AllReduceState>();
}
bool fits(const A& a, const AllReduceState& s) {
  return tokens(a) * hidden(a) * a.input.item_size() <= s.max_token_num * s.hidden_dim * size_of(s.dtype);
}
void check_workspace(const A& a) {
  const AllReduceState& s = all_reduce_state_for(a.workspace, a.input, "input");
  FI_CHECK(fits(a, s), ValueError, "Workspace validation failed: input is ", to_string(a.input), " (", a.input.nbytes(),
           " bytes), but the workspace was made for ", s.max_token_num, " tokens of ", s.hidden_dim, " ",
           name(s.dtype));
  FI_CHECK(a.use_oneshot.value_or(true) || tokens(a) > s.world_size, ValueError,
           "Workspace validation failed: use_oneshot is False, but ", tokens(a), " tokens cannot be split over ",
           s.world_size, " ranks");
}
void validate(const A& a) {
  check_pattern(a);
  check_rows(a.output, "output", a);
  check_rows(a.residual_out, "residual_out", a);
  check_rows(a.norm_out, "norm_out", a);
  if (has_norm(a)) check_norm(a);
  if (quantises(a)) check_quant(a);
  check_workspace(a);
}

// ---- the call ----
flashinfer::comm::Signature signature_of(const A& a, bool one_shot) {
  return {{a.pattern, tokens(a), hidden(a), static_cast<int64_t>(a.input.dtype()), one_shot, a.fp32_acc}};
}
bool gpu_one_shot(const A& a, const AllReduceState& s) {
  if (tokens(a) <= s.world_size || is_moe_finalize(a)) return true;
  return a.use_oneshot.value_or(gpu_wants_one_shot(tokens(a) * hidden(a) * a.input.item_size(), s.world_size));
}
/// Two shots read each input W times less often, but need a second wait: they pay from four ranks and 256 KB on.
bool wants_one_shot(const A& a, const AllReduceState& s) {
  if (!can_split(a.input, s)) return true;
  if (a.use_oneshot) return *a.use_oneshot;
  return s.world_size < 4 || a.input.nbytes() < 256 * 1024;
}

AllReduceConfig config_of(const A& a) {
  return {.dtype = a.input.dtype(),
          .weight = has_norm(a) ? a.rms_gamma->dtype() : a.input.dtype(),
          .fp32_acc = a.fp32_acc,
          .norm = has_norm(a),
          .quant = quant_of(a)};
}
AllReduceConfig sum_config(const A& a) {
  return {a.input.dtype(), a.input.dtype(), a.fp32_acc, 0, AllReduceQuant::kNone};
}
/// Bytes of a result that leaves no room in the caches: with inputs and residual of two ranks, 32 MB.
constexpr int64_t kPastCaches = 4 << 20;
void* data_or_null(const std::optional<TensorView>& t) { return t ? t->data() : nullptr; }

AllReduceParams params_of(const A& a) {
  AllReduceParams p{};
  p.d = hidden(a);
  p.past_caches = tokens(a) * hidden(a) * a.input.item_size() >= kPastCaches;
  p.out = returns_sum(a) ? a.output->data() : nullptr;
  if (has_norm(a)) {
    p.residual_in = a.residual_in->data(), p.gamma = a.rms_gamma->data();
    p.residual_out = data_or_null(a.residual_out);
    p.norm_out = returns_norm(a) ? a.norm_out->data() : nullptr;
    p.eps = static_cast<float>(a.rms_eps), p.weight_bias = static_cast<float>(a.weight_bias);
  }
  if (quantises(a)) {
    p.quant_out = a.quant_out->data(), p.scale_out = data_or_null(a.scale_out);
    p.scale = scale_of(a), p.layout = layout_of(a), p.group = a.block_quant_group_size.value_or(0);
    p.scale_stride = round_up(tokens(a), 4);
    if (is_fp4(a)) p.padded_rows = sf_padded_rows(p.layout, tokens(a));
    if (quant_of(a) == AllReduceQuant::kGroupFp8) p.padded_rows = p.scale_stride;
  }
  return p;
}

/// Bytes that a row of a call reads and writes.
int64_t row_bytes(const A& a, int ranks) { return (ranks + (has_norm(a) ? 3 : 1)) * hidden(a) * a.input.item_size(); }

void launch(jit::CpuFn finish, jit::CpuFn sum, const A& a) {
  const AllReduceState& s = state_of(a);
  const bool one_shot = wants_one_shot(a, s);
  const AllReduceParams p = params_of(a);
  const SharedSum call{a.input, finish, sum, has_norm(a), p, signature_of(a, one_shot), describe_call};
  if (one_shot)
    sum_one_shot(call, s);
  else
    sum_two_shots(call, s);
}
/// Pattern 6 with the sum as one more result: first the sum, then, of that alone, what follows it.
void launch_in_two(jit::CpuFn finish, jit::CpuFn sum, const A& a) {
  A first = a;
  first.norm_out = first.quant_out = first.residual_out = std::nullopt;
  launch(sum, sum, first);
  AllReduceState alone = state_of(a);
  alone.rank = 0, alone.world_size = 1;
  sum_one_shot({*a.output, finish, sum, true, params_of(a), signature_of(a, true), describe_call}, alone);
}
void launch_moe(jit::CpuFn finish, jit::CpuFn sum, jit::CpuFn reduce, const A& a) {
  const Tensor own = reduce_experts(reduce, a);
  A b = a;
  b.input = own;
  if (is_moe_finalize(a)) b.use_oneshot = true;
  if (is_moe_reduction(a) && a.output && has_norm(a)) return launch_in_two(finish, sum, b);
  launch(finish, sum, b);
}
op::Prepared prepare(const A& a) {
  const jit::Loaded& kernel = jit::cpu_kernel<kAllReduceKernel>(config_of(a));
  if (!kernel.fn) return op::Unsupported{kernel.why_not};
  const jit::Loaded& sum = has_norm(a) ? jit::cpu_kernel<kAllReduceKernel>(sum_config(a)) : kernel;
  if (!sum.fn) return op::Unsupported{sum.why_not};
  if (!is_moe(a)) return [fn = kernel.fn, sum = sum.fn, &a] { launch(fn, sum, a); };
  const jit::Loaded& reduce = moe_kernel(a);
  if (!reduce.fn) return op::Unsupported{reduce.why_not};
  return [fn = kernel.fn, sum = sum.fn, reduce = reduce.fn, &a] { launch_moe(fn, sum, reduce, a); };
}

op::Prepared prepare_cuda(const A& a) {
  const AllReduceState& s = state_of(a);
  AllReduceOnGpu call{.input = a.input,
                      .config = config_of(a),
                      .params = params_of(a),
                      .tokens = tokens(a),
                      .scale = scale_source(a),
                      .one_shot = gpu_one_shot(a, s)};
  call.signature = signature_of(a, call.one_shot);
  call.experts = experts_on_gpu(a);
  if (is_moe_reduction(a)) call.params.out = data_or_null(a.output);
  return prepare_on_gpu(call, s.memory->gpu);
}

void number_call(A& a) { a.call = number_of_call(a.workspace); }

op::Cost cost(const A& a) {
  const double n = static_cast<double>(a.input.numel()), w = static_cast<double>(state_of(a).world_size);
  return {.bytes = static_cast<double>(tokens(a) * row_bytes(a, static_cast<int>(w))) + n, .flops = n * (w + 6)};
}

constexpr const char* kPatterns =
    "AllReduceFusionPattern: "
    "kAllReduce=0|kARResidualRMSNorm=1|kARResidualRMSNormFP8Quant=2|kARResidualRMSNormFP4Quant=3"
    "|kARResidualRMSNormOutFP8Quant=4|kARResidualRMSNormOutFP4Quant=5|kMoEReductionARResidualRMSNorm=6"
    "|kMoEFinalizeARResidualRMSNorm=7|kARResidualRMSNormPerTokenGroupFP8PackedQuant=8"
    "|kARResidualRMSNormOutPerTokenGroupFP8PackedQuant=9|kARResidualRMSNormDynamicFP8Quant=10"
    "|kARResidualRMSNormOutDynamicFP8Quant=11|kMoEFinalizeARResidualRMSNormFP8Quant=12";
constexpr op::Field fields[] = {
    op::in<&A::input>("input", "m d", op::floats, op::contiguous),
    op::attr<&A::workspace>("workspace", op::required),
    op::attr<&A::pattern>("pattern", op::required),
    op::attr<&A::launch_with_pdl>("launch_with_pdl"),
    op::attr<&A::trigger_completion_at_end>("trigger_completion_at_end"),
    op::out<&A::output>("output", "t d", op::shape<rows_shape>, op::same_as("input"), op::contiguous,
                        op::may_alias("input"), op::when<returns_sum>),
    op::out<&A::residual_out>("residual_out", "t d", op::same_as("input"), op::contiguous, op::may_alias("residual_in"),
                              op::when<returns_residual>),
    op::out<&A::norm_out>("norm_out", "t d", op::shape<rows_shape>, op::same_as("input"), op::contiguous,
                          op::may_alias("input"), op::when<returns_norm>),
    op::out<&A::quant_out>("quant_out", nullptr, op::shape<codes_shape>, op::dtype<codes_dtype>, op::contiguous,
                           op::when<returns_codes>),
    op::out<&A::scale_out>("scale_out", nullptr, op::any_layout, op::when<is_never_made>, op::not_returned),
    op::in<&A::residual_in>("residual_in", "t d", op::same_as("input"), op::contiguous),
    op::in<&A::rms_gamma>("rms_gamma", "d", op::floats, op::contiguous),
    op::attr<&A::rms_eps>("rms_eps"),
    op::in<&A::scale_factor>("scale_factor", nullptr),
    op::attr<&A::layout_code>("layout_code"),
    op::attr<&A::use_oneshot>("use_oneshot"),
    op::attr<&A::fp32_acc>("fp32_acc"),
    op::attr<&A::moe_reduction_device_num_experts>("moe_reduction_device_num_experts"),
    op::in<&A::moe_reduction_scale_input>("moe_reduction_scale_input", nullptr, op::floats, op::contiguous),
    op::in<&A::moe_reduction_active_experts_token_input>("moe_reduction_active_experts_token_input", nullptr,
                                                         op::floats, op::contiguous),
    op::in<&A::moe_reduction_token_input>("moe_reduction_token_input", nullptr, op::floats, op::contiguous),
    op::in<&A::expanded_idx_to_permuted_idx>("expanded_idx_to_permuted_idx", nullptr, DType::kI32, op::contiguous),
    op::in<&A::expert_scale_factor>("expert_scale_factor", nullptr, op::floats, op::contiguous),
    op::in<&A::shared_expert_output>("shared_expert_output", nullptr, op::floats, op::contiguous),
    op::attr<&A::block_quant_group_size>("block_quant_group_size"),
    op::attr<&A::weight_bias>("weight_bias"),
    op::attr<&A::moe_finalize_backend>("moe_finalize_backend", op::keyword_only),
    op::attr<&A::call>("call", op::internal),
};
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda>(), op::cpu<prepare>()};
constinit const op::Op fusion_op = op::collective(op::define<A, validate, cost, number_call>(
    "allreduce_fusion", "flashinfer.comm",
    "The sum of all ranks' inputs, and what follows it in a layer: residual, RMSNorm, quantisation (pattern).", fields,
    candidates, nullptr));

constexpr const op::Op* kOps[] = {&workspace_init_op,     &workspace_destroy_op,  &fusion_op,
                                  &moe_a2a_initialize_op, &moe_a2a_dispatch_op,   &moe_a2a_combine_op,
                                  &moe_a2a_sanitize_op,   &decode_cp_alltoall_op, &decode_cp_reduce_op,
                                  &all_gather_op,         &reduce_scatter_op,     &mixed_comm_op,
                                  &ulysses_scatter_op,    &ulysses_gather_op,     &quantized_all_reduce_op};
}  // namespace
extern const std::span<const op::Op* const> all;
constinit const std::span<const op::Op* const> all = kOps;
}  // namespace ops::comm

Tensor allreduce_fusion(const AllReduceFusion& args) { return op::call(ops::comm::fusion_op, args); }

}  // namespace flashinfer
