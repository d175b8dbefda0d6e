// SPDX-License-Identifier: Apache-2.0
// BatchAttentionWithAttentionSinkWrapper: paged prefill whose run() takes a sink and a scale by position.
#include <cmath>

#include "flashinfer/ops/attention/api/prefill_tables.h"
#include "flashinfer/ops/attention/cases.h"

namespace flashinfer {
namespace attention {
namespace {
using namespace prefill;

constexpr const char* kClass = "BatchAttentionWithAttentionSinkWrapper";
constexpr const char* kSinkModule = "flashinfer.attention";
constexpr const char* kInit = "BatchAttentionWithAttentionSinkWrapper.__init__";
constexpr const char* kPlan = "BatchAttentionWithAttentionSinkWrapper.plan";
constexpr const char* kRun = "BatchAttentionWithAttentionSinkWrapper.run";

void validate_init(const BatchSinkInit& a) {
  if (a.backend != "auto" && a.backend != "fa2" && a.backend != "fa3")
    throw_error(ErrorKind::kAssertionError,
                str("backend is ", op::python_repr(a.backend), ", but must be one of auto, fa2, fa3"));
}
void launch_init(const BatchSinkInit& a) {
  check_workspace(a.float_workspace_buffer);
  Plan p;
  p.kv_layout = a.kv_layout;
  p.pos_encoding_mode = a.pos_encoding_mode, p.window_left = std::max<int64_t>(a.window_left, -1);
  set_paged_prefill_graph(p, a);
  a.self->set(std::move(p));
}
void validate(const BatchPrefillPlan& a) { validate_plan(a); }
void launch_plan(const BatchPrefillPlan& a) {
  const Plan& made = a.self->as<Plan>();
  Plan p = plan_of_arguments(a);
  const char* before = ", but __init__ or the last plan() was given ";
  FI_CHECK(made.window_left < 0 || p.window_left == made.window_left, ValueError, "window_left is ", p.window_left,
           before, made.window_left);
  FI_CHECK(made.pos_encoding_mode == "NONE" || p.pos_encoding_mode == made.pos_encoding_mode, ValueError,
           "pos_encoding_mode is ", op::python_repr(p.pos_encoding_mode), before,
           op::python_repr(made.pos_encoding_mode));
  a.self->set(std::move(p));
  a.self->planned = true;
}

void validate_run(const BatchSinkRun& a) {
  const Plan& p = plan_of(a.self);
  throw_if_given("sinks", a.sinks.has_value(), "the argument `sink` says the same");
  check_skip_softmax(a.skip_softmax_threshold_scale_factor);
  throw_if_given("use_fp16_softmax=True", a.use_fp16_softmax.value_or(false), kNeedsGpu);
  throw_if_given("uses_spcompress=True", a.uses_spcompress.value_or(false), kNeedsGpu);
  check_window(p, a.window_left);
  FI_CHECK(a.sink.size(0) == p.num_qo_heads, ValueError, "sink.shape[0] is ", a.sink.size(0),
           ", but plan() was given num_qo_heads=", p.num_qo_heads);
  FI_CHECK(!a.sm_scale || std::isfinite(*a.sm_scale), ValueError, "sm_scale is ", a.sm_scale.value_or(0),
           ", but must be finite");
  check_paged_run(p, a, "paged_kv_indices");
  check_lse(a);
}
Call call_of_run(const BatchSinkRun& a) {
  Call c = set_lse_format(paged_call(plan_of(a.self), a), a);
  c.sinks = &a.sink;
  c.sm_scale = a.sm_scale;
  return c;
}
op::Cost cost(const BatchSinkRun& a) { return cost_of(plan_of(a.self), a.q); }

constexpr auto sink_init_fields = table_of(
    paged_init_head<BatchSinkInit>, mask_buffers<BatchSinkInit>,
    std::array{
        op::attr<&BatchSinkInit::backend>("backend"),
        op::attr<&BatchSinkInit::pos_encoding_mode>("pos_encoding_mode", op::choices(kModes, ErrorKind::kKeyError)),
        op::attr<&BatchSinkInit::use_fp16_qk_reduction>("use_fp16_qk_reduction"),
        op::attr<&BatchSinkInit::q_data_type>("q_data_type"), op::attr<&BatchSinkInit::kv_data_type>("kv_data_type"),
        op::attr<&BatchSinkInit::head_dim_qk>("head_dim_qk"), op::attr<&BatchSinkInit::head_dim_vo>("head_dim_vo"),
        op::attr<&BatchSinkInit::window_left>("window_left")});
constexpr auto sink_run_fields = table_of(
    paged_run_head<BatchSinkRun>,
    std::array{op::in<&BatchSinkRun::sink>("sink", "h", DType::kF32, op::contiguous),
               op::attr<&BatchSinkRun::sm_scale>("sm_scale", op::required),
               op::attr<&BatchSinkRun::q_scale>("q_scale", op::keyword_only)},
    kv_scales<BatchSinkRun>, run_results<BatchSinkRun, NarrowOutputs>, lse_format<BatchSinkRun>,
    std::array{op::attr<&BatchSinkRun::window_left>("window_left"), op::in<&BatchSinkRun::sinks>("sinks", nullptr)},
    paged_run_tail<BatchSinkRun>);
constexpr op::Candidate init_candidates[] = {op::host<launch_init>()};
constexpr op::Candidate plan_candidates[] = {op::host_arrays<launch_plan>()};
constexpr op::Candidate size_candidates[] = {op::cpu<launch_size>()};

}  // namespace

constinit const op::Op sink_init_op =
    op::define<BatchSinkInit, validate_init>(kInit, kSinkModule, "Paged prefill and decode with attention sinks.",
                                             sink_init_fields, init_candidates, nullptr, {}, &plan_type);
constinit const op::Op sink_plan_op = op::define<BatchPrefillPlan, validate>(
    kPlan, kSinkModule, "Takes the page table, the mask and everything that is the same for all layers of a step.",
    plan_fields, plan_candidates, nullptr, {}, &plan_type);
constinit const op::Op sink_run_op = op::define<BatchSinkRun, validate_run, cost>(
    kRun, kSinkModule,
    "out = sum_j exp(x_j) v_j / (exp(sink) + sum_j exp(x_j)) over each request's pages; lse in base 2.",
    sink_run_fields, NarrowPlanRun<BatchSinkRun, planned, call_of_run>::candidates, ops::attention::sink_cases, {},
    &plan_type);
constinit const op::Op sink_size_op =
    op::define<BatchPrefillWorkspaceSize>("BatchAttentionWithAttentionSinkWrapper.workspace_size", kSinkModule,
                                          "Bytes of partial results and of index arrays that a plan takes.",
                                          size_fields, size_candidates, nullptr, {}, &plan_type);
constinit const op::Op sink_reset_op =
    reset_op("BatchAttentionWithAttentionSinkWrapper.reset_workspace_buffer", kSinkModule, &plan_type);
constinit const op::Op sink_prewarm_op =
    prewarm_op("BatchAttentionWithAttentionSinkWrapper.prewarm_paged_kv_stride_variant", kSinkModule, &plan_type);
namespace {
constexpr PrefillOps kSinkClass{kClass, kSinkModule, &sink_plan_op, nullptr, &sink_size_op, &sink_reset_op};
}  // namespace
}  // namespace attention

BatchAttentionWithAttentionSinkWrapper::BatchAttentionWithAttentionSinkWrapper(BatchSinkInit a)
    : BatchPrefillWithPagedKVCacheWrapper(&attention::kSinkClass) {
  a.self = &self_;
  op::call(attention::sink_init_op, a);
}
AttentionResult BatchAttentionWithAttentionSinkWrapper::run(BatchSinkRun a) {
  a.self = &self_;
  return op::call(attention::sink_run_op, a);
}

}  // namespace flashinfer
