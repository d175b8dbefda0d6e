// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/attention/api/fields.h"
#include "flashinfer/ops/attention/cases.h"
#include "flashinfer/ops/attention/cuda/together.h"

namespace flashinfer {
namespace attention {
namespace {

constexpr const char *kClass = "BatchAttention", *kModule = "flashinfer.attention";
constexpr const char *kInit = "BatchAttention.__init__", *kPlan = "BatchAttention.plan", *kRun = "BatchAttention.run";

void launch_init(const BatchAttentionInit& a) {
  Plan p;
  p.kv_layout = a.kv_layout;
  a.self->set(std::move(p));
}
void validate_plan(const BatchAttentionPlan& a) {
  throw_if_given("use_profiler=True", a.use_profiler, kNeedsGpu);
  const int64_t batch = a.kv_len_arr.size(0);
  op::check_indptr_room("qo_indptr", a.qo_indptr, batch, "kv_len_arr");
  op::check_indptr_room("kv_indptr", a.kv_indptr, batch, "kv_len_arr");
}
void launch_plan(const BatchAttentionPlan& a) {
  Plan p = next_plan(a.self);
  p.num_qo_heads = a.num_qo_heads, p.num_kv_heads = a.num_kv_heads;
  p.head_dim_qk = a.head_dim_qk, p.head_dim_vo = a.head_dim_vo, p.page_size = a.page_size;
  p.q_data_type = a.q_data_type, p.o_data_type = ops::default_output(a.q_data_type);
  p.kv_data_type = cache_type(a.kv_data_type);
  p.causal = a.causal;
  set_options(p, {.sm_scale = a.sm_scale, .logits_soft_cap = a.logits_soft_cap, .rope_scale = {}, .rope_theta = {}});
  const int64_t entries = a.kv_len_arr.size(0) + 1;
  set_page_table_of_lengths(p, {"kv_indptr", "kv_indices", "kv_len_arr"}, a.kv_indptr.slice(0, 0, entries),
                            a.kv_indices, a.kv_len_arr);
  set_rows(p, "qo_indptr", a.qo_indptr.slice(0, 0, entries));
  set_work(p);
  a.self->set(std::move(p));
  a.self->planned = true;
}

Call call_of_run(const BatchAttentionRun& a) {
  const Plan& p = a.self->as<Plan>();
  Call c;
  c.q = a.q, c.kv = cache_planes(a.kv_cache, p.kv_layout);
  c.kv_sf = scale_planes(a.kv_cache_sf, p.kv_layout, c.kv, true);
  if (a.out) c.out = *a.out;
  c.lse = a.lse;
  c.k_scale = a.k_scale.value_or(1.0), c.v_scale = a.v_scale.value_or(1.0);
  return c;
}
void validate_run(const BatchAttentionRun& a) {
  const Plan& p = plan_of(a.self);
  throw_if_given("profiler_buffer", a.profiler_buffer.has_value(), kNeedsGpu);
  FI_CHECK(a.logits_soft_cap == 0 || a.logits_soft_cap == p.logits_soft_cap, ValueError, "logits_soft_cap is ",
           a.logits_soft_cap, ", but plan() was given ", p.logits_soft_cap);
  const Planes kv = cache_planes(a.kv_cache, p.kv_layout);
  check_run(p, a.q, kv, "kv_cache (K)", "kv_cache (V)");
  check_pool(p, kv, "kv_indices");
  scale_planes(a.kv_cache_sf, p.kv_layout, kv, true);
}
op::Cost cost(const BatchAttentionRun& a) { return cost_of(plan_of(a.self), a.q); }

constexpr op::Field init_fields[] = {
    op::self<&BatchAttentionInit::self>(),
    op::attr<&BatchAttentionInit::kv_layout>("kv_layout", op::choices("NHD|HND", ErrorKind::kKeyError)),
    op::attr<&BatchAttentionInit::device>("device", op::literal("'cuda'")),
};
constexpr op::Field plan_fields[] = {
    op::self<&BatchAttentionPlan::self>(),
    op::in<&BatchAttentionPlan::qo_indptr>("qo_indptr", "qo", op::indices, op::any_layout),
    op::in<&BatchAttentionPlan::kv_indptr>("kv_indptr", "kv", op::indices, op::any_layout),
    op::in<&BatchAttentionPlan::kv_indices>("kv_indices", "n", op::indices, op::any_layout),
    op::in<&BatchAttentionPlan::kv_len_arr>("kv_len_arr", "b", op::indices, op::any_layout),
    op::attr<&BatchAttentionPlan::num_qo_heads>("num_qo_heads", op::required),
    op::attr<&BatchAttentionPlan::num_kv_heads>("num_kv_heads", op::required),
    op::attr<&BatchAttentionPlan::head_dim_qk>("head_dim_qk", op::required),
    op::attr<&BatchAttentionPlan::head_dim_vo>("head_dim_vo", op::required),
    op::attr<&BatchAttentionPlan::page_size>("page_size", op::required),
    op::attr<&BatchAttentionPlan::causal>("causal"),
    op::attr<&BatchAttentionPlan::sm_scale>("sm_scale"),
    op::attr<&BatchAttentionPlan::logits_soft_cap>("logits_soft_cap"),
    op::attr<&BatchAttentionPlan::q_data_type>("q_data_type"),
    op::attr<&BatchAttentionPlan::kv_data_type>("kv_data_type"),
    op::attr<&BatchAttentionPlan::use_profiler>("use_profiler"),
};
constexpr op::Field run_fields[] = {
    op::self<&BatchAttentionRun::self>(),
    op::in<&BatchAttentionRun::q>("q", "n h d", ops::kQueryTypes),
    op::paged<&BatchAttentionRun::kv_cache>("kv_cache", nullptr, kCacheTypes),
    op::out<&BatchAttentionRun::out>("out", nullptr, op::floats, op::shape<out_shape<BatchAttentionRun>>,
                                     op::dtype<out_dtype<BatchAttentionRun>>),
    op::out<&BatchAttentionRun::lse>("lse", nullptr, DType::kF32, op::shape<lse_shape<BatchAttentionRun>>),
    op::attr<&BatchAttentionRun::k_scale>("k_scale"),
    op::attr<&BatchAttentionRun::v_scale>("v_scale"),
    op::attr<&BatchAttentionRun::logits_soft_cap>("logits_soft_cap"),
    op::scratch<&BatchAttentionRun::profiler_buffer>("profiler_buffer", nullptr),
    op::paged<&BatchAttentionRun::kv_cache_sf>("kv_cache_sf", nullptr, kScaleTypes),
};
constexpr op::Candidate init_candidates[] = {op::host<launch_init>()};
constexpr op::Candidate plan_candidates[] = {op::host_arrays<launch_plan>()};
using RunOf = PlanRun<BatchAttentionRun, planned, call_of_run>;
/// Prefills and decodes in one launch.
op::Prepared prepare_run_cuda(const BatchAttentionRun& a) {
  const PlannedCall call{planned(a), call_of_run(a)};
  return prepare_together_cuda({&call, 1});
}
constexpr op::Candidate run_candidates[] = {op::cuda<prepare_run_cuda>(), op::cpu<RunOf::cpu>(),
                                            op::reference<RunOf::reference>()};
}  // namespace

constinit const op::Op batch_init_op = op::define<BatchAttentionInit>(
    kInit, kModule, "Prefill and decode requests in one batch.", init_fields, init_candidates, nullptr, {}, &plan_type);
constinit const op::Op batch_plan_op = op::define<BatchAttentionPlan, validate_plan>(
    kPlan, kModule, "Takes the page table and everything that is the same for all layers of a step.", plan_fields,
    plan_candidates, nullptr, {}, &plan_type);
constinit const op::Op batch_run_op = op::define<BatchAttentionRun, validate_run, cost>(
    kRun, kModule, "out = softmax(scale * q k^T, causal) v over each request's pages; lse in base 2.", run_fields,
    run_candidates, ops::attention::batch_attention_cases, {}, &plan_type);
constinit const op::Op batch_prewarm_op =
    prewarm_op("BatchAttention.prewarm_paged_kv_stride_variant", kModule, &plan_type);
}  // namespace attention

BatchAttention::BatchAttention(BatchAttentionInit a)
    : self_(attention::kClass, attention::kModule, attention::plan_type) {
  a.self = &self_;
  op::call(attention::batch_init_op, a);
}
void BatchAttention::plan(BatchAttentionPlan a) {
  a.self = &self_;
  op::call(attention::batch_plan_op, a);
}
op::Results BatchAttention::run(BatchAttentionRun a) {
  a.self = &self_;
  return op::call(attention::batch_run_op, a);
}

}  // namespace flashinfer
