// SPDX-License-Identifier: Apache-2.0
// BatchAttentionWithAttentionSinkWrapper: paged prefill whose run() takes a sink and a scale by position.
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
  p.pos_encoding_mode = a.pos_encoding_mode;
  p.q_data_type = a.q_data_type, p.kv_data_type = cache_type(a.kv_data_type);
  p.head_dim_qk = a.head_dim_qk, p.head_dim_vo = a.head_dim_vo, p.window_left = std::max<int64_t>(a.window_left, -1);
  set_paged_prefill_graph(p, a);
  a.self->set(std::move(p));
}
void validate(const BatchPrefillPlan& a) { validate_plan(a); }
void launch_plan(const BatchPrefillPlan& a) {
  const Plan& made = a.self->as<Plan>();
  Plan p = plan_of_arguments(a);
  auto same = [](const char* name, const auto& now, const auto& then) {
    FI_CHECK(now == then, ValueError, name, " is ", now, ", but __init__ was given ", then);
  };
  same("q_data_type", name(p.q_data_type), name(made.q_data_type));
  same("kv_data_type", name(p.kv_data_type), name(made.kv_data_type));
  same("head_dim_qk", p.head_dim_qk, made.head_dim_qk);
  same("head_dim_vo", p.head_dim_vo, made.head_dim_vo);
  same("window_left", p.window_left, made.window_left);
  same("pos_encoding_mode", p.pos_encoding_mode, made.pos_encoding_mode);
  a.self->set(std::move(p));
  a.self->planned = true;
}

void validate_run(const BatchSinkRun& a) {
  const Plan& p = plan_of(a.self);
  throw_if_given("sinks", a.sinks.has_value(), "the argument `sink` says the same");
  throw_if_given("skip_softmax_threshold_scale_factor", a.skip_softmax_threshold_scale_factor.has_value(), kNeedsGpu);
  throw_if_given("use_fp16_softmax=True", a.use_fp16_softmax.value_or(false), kNeedsGpu);
  throw_if_given("uses_spcompress=True", a.uses_spcompress.value_or(false), kNeedsGpu);
  check_window(p, a.window_left);
  FI_CHECK(a.sink.size(0) == p.num_qo_heads, ValueError, "sink.shape[0] is ", a.sink.size(0),
           ", but plan() was given num_qo_heads=", p.num_qo_heads);
  FI_CHECK(a.sm_scale - a.sm_scale == 0, ValueError, "sm_scale is ", a.sm_scale, ", but must be finite");
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

constexpr op::Field sink_init_fields[] = {
    op::self<&BatchSinkInit::self>(),
    op::scratch<&BatchSinkInit::float_workspace_buffer>("float_workspace_buffer", nullptr),
    op::attr<&BatchSinkInit::kv_layout>("kv_layout", op::choices("NHD|HND", ErrorKind::kKeyError)),
    op::attr<&BatchSinkInit::use_cuda_graph>("use_cuda_graph"),
    op::scratch<&BatchSinkInit::qo_indptr_buf>("qo_indptr_buf", nullptr),
    op::scratch<&BatchSinkInit::paged_kv_indptr_buf>("paged_kv_indptr_buf", nullptr),
    op::scratch<&BatchSinkInit::paged_kv_indices_buf>("paged_kv_indices_buf", nullptr),
    op::scratch<&BatchSinkInit::paged_kv_last_page_len_buf>("paged_kv_last_page_len_buf", nullptr),
    op::scratch<&BatchSinkInit::custom_mask_buf>("custom_mask_buf", nullptr),
    op::scratch<&BatchSinkInit::mask_indptr_buf>("mask_indptr_buf", nullptr),
    op::attr<&BatchSinkInit::backend>("backend"),
    op::attr<&BatchSinkInit::pos_encoding_mode>("pos_encoding_mode", op::choices(kModes, ErrorKind::kKeyError)),
    op::attr<&BatchSinkInit::use_fp16_qk_reduction>("use_fp16_qk_reduction"),
    op::attr<&BatchSinkInit::q_data_type>("q_data_type"),
    op::attr<&BatchSinkInit::kv_data_type>("kv_data_type"),
    op::attr<&BatchSinkInit::head_dim_qk>("head_dim_qk"),
    op::attr<&BatchSinkInit::head_dim_vo>("head_dim_vo"),
    op::attr<&BatchSinkInit::window_left>("window_left"),
};
constexpr op::Field sink_run_fields[] = {
    op::self<&BatchSinkRun::self>(),
    op::in<&BatchSinkRun::q>("q", "n h d", ops::kQueryTypes),
    op::paged<&BatchSinkRun::paged_kv_cache>("paged_kv_cache", nullptr, kCacheTypes),
    op::in<&BatchSinkRun::sink>("sink", "h", DType::kF32, op::contiguous),
    op::attr<&BatchSinkRun::sm_scale>("sm_scale", op::required),
    op::attr<&BatchSinkRun::q_scale>("q_scale", op::keyword_only),
    op::attr<&BatchSinkRun::k_scale>("k_scale"),
    op::attr<&BatchSinkRun::v_scale>("v_scale"),
    op::out<&BatchSinkRun::out>("out", nullptr, op::floats, op::shape<out_shape<BatchSinkRun>>,
                                op::dtype<out_dtype<BatchSinkRun>>),
    op::out<&BatchSinkRun::lse>("lse", nullptr, DType::kF32, op::shape<lse_shape<BatchSinkRun>>,
                                op::when<&BatchSinkRun::return_lse>),
    op::attr<&BatchSinkRun::return_lse>("return_lse"),
    op::attr<&BatchSinkRun::lse_base>("lse_base", op::choices("log2|ln")),
    op::attr<&BatchSinkRun::lse_layout>("lse_layout", op::choices("NH|HN")),
    op::attr<&BatchSinkRun::enable_pdl>("enable_pdl"),
    op::attr<&BatchSinkRun::window_left>("window_left"),
    op::in<&BatchSinkRun::sinks>("sinks", nullptr),
    op::paged<&BatchSinkRun::kv_cache_sf>("kv_cache_sf", nullptr, kScaleTypes),
    op::attr<&BatchSinkRun::skip_softmax_threshold_scale_factor>("skip_softmax_threshold_scale_factor"),
    op::attr<&BatchSinkRun::use_fp16_softmax>("use_fp16_softmax"),
    op::attr<&BatchSinkRun::uses_spcompress>("uses_spcompress"),
};
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
    sink_run_fields, kRunCandidates<PlanRun<BatchSinkRun, planned, call_of_run>>, ops::attention::sink_cases, {},
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
