// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "flashinfer/ops/attention/api/prefill_tables.h"
#include "flashinfer/ops/attention/cases.h"
#include "flashinfer/ops/attention/cuda/run.h"

namespace flashinfer {
namespace attention {
namespace prefill {

void validate_plan(std::string_view op, const BatchPrefillPlan& a) { check_prefill_plan(op, a); }
Plan plan_of_arguments(std::string_view op, const BatchPrefillPlan& a) {
  Plan p = prefill_plan(op, a);
  p.page_size = a.page_size;
  set_page_table(p, op, {"paged_kv_indptr", "paged_kv_indices", "paged_kv_last_page_len"}, a.paged_kv_indptr,
                 a.paged_kv_indices, a.paged_kv_last_page_len);
  check_block_tables(op, a.block_tables, p);
  finish_prefill_plan(p, op, a, &a.paged_kv_last_page_len);
  return p;
}
void launch_size(const BatchPrefillWorkspaceSize& a) {
  const op::Object* self = a.self;
  op::Object scratch(self->class_name, self->module,
                     *self->type);  // a receiver of its own: nothing is planned, no buffer filled
  Plan p;
  p.kv_layout = self->as<Plan>().kv_layout;
  scratch.set(std::move(p));
  BatchPrefillPlan b = a;
  b.self = &scratch;
  put_sizes(plan_of_arguments("workspace_size", b), *a.sizes);
}

}  // namespace prefill

namespace {
using namespace prefill;

constexpr const char* kClass = "BatchPrefillWithPagedKVCacheWrapper";
constexpr const char* kInit = "BatchPrefillWithPagedKVCacheWrapper.__init__";
constexpr const char* kPlan = "BatchPrefillWithPagedKVCacheWrapper.plan";
constexpr const char* kRun = "BatchPrefillWithPagedKVCacheWrapper.run";
constexpr const char* kForward = "BatchPrefillWithPagedKVCacheWrapper.forward";

void launch_init(const BatchPrefillInit& a) {
  check_workspace(kInit, a.float_workspace_buffer);
  Plan p;
  p.kv_layout = a.kv_layout;
  set_variant(p, kInit, a);
  set_paged_prefill_graph(p, kInit, a);
  a.self->set(std::move(p));
}
void validate(const BatchPrefillPlan& a) { validate_plan(kPlan, a); }
void launch_plan(const BatchPrefillPlan& a) {
  a.self->set(plan_of_arguments(kPlan, a));
  a.self->planned = true;
}

void validate_run(const BatchPrefillRun& a) {
  const Plan& p = plan_of(kRun, a.self);
  throw_if_given(kRun, "skip_softmax_threshold_scale_factor", a.skip_softmax_threshold_scale_factor.has_value(),
                 kNeedsGpu);
  throw_if_given(kRun, "use_fp16_softmax=True", a.use_fp16_softmax.value_or(false), kNeedsGpu);
  throw_if_given(kRun, "uses_spcompress=True", a.uses_spcompress.value_or(false), kNeedsGpu);
  check_window(kRun, p, a.window_left);
  check_sinks(kRun, p, a.sinks);
  check_paged_run(kRun, p, a, "paged_kv_indices");
  check_lse(kRun, a);
}
void validate_forward(const BatchPrefillForward& a) {
  check_paged_run(kForward, forward_plan(kForward, a), a, "paged_kv_indices");
}
op::Cost cost(const BatchPrefillRun& a) { return cost_of(plan_of(kRun, a.self), a.q); }

const Plan& used_plan(const BatchPrefillRun& a) { return plan_of(kRun, a.self); }
Plan used_plan(const BatchPrefillForward& a) { return forward_plan(kForward, a); }
Call call_of_run(const BatchPrefillRun& a) { return set_lse_format(paged_call(kRun, plan_of(kRun, a.self), a), a); }
Call call_of_run(const BatchPrefillForward& a) { return paged_call(kForward, plan_of(kForward, a.self), a); }

op::Refusal accept(const BatchPrefillInit&) { return {}; }
/// Index arrays on a GPU: the plan is made by the host all the same.
void launch_plan_from_device(const BatchPrefillPlan& a) { ops::with_host_arrays(prefill_plan_op, a, launch_plan); }
op::Refusal refuse_plan(const BatchPrefillPlan& a) { return op::refuse_unless_cpu(prefill_plan_op, &a); }
op::Refusal refuse_size(const BatchPrefillWorkspaceSize& a) { return op::refuse_unless_cpu(prefill_size_op, &a); }
template <class Run>
op::Refusal refuse_run(const Run& a) {
  if (op::Refusal r =
          op::refuse_unless_cpu(std::is_same_v<Run, BatchPrefillRun> ? prefill_run_op : prefill_forward_op, &a);
      !r.empty())
    return r;
  return refuse(plan_of(kRun, a.self), call_of_run(a));
}
template <class Run>
void launch_run(const Run& a) {
  run(used_plan(a), call_of_run(a));
}
template <class Run>
op::Refusal refuse_run_cuda(const Run& a) {
  return refuse_cuda(std::is_same_v<Run, BatchPrefillRun> ? prefill_run_op : prefill_forward_op, &a, used_plan(a),
                     call_of_run(a));
}
template <class Run>
void launch_run_cuda(const Run& a) {
  run_cuda(used_plan(a), call_of_run(a));
}
template <class Run>
void reference(const Run& a) {
  run_reference(used_plan(a), call_of_run(a));
}

constexpr op::Candidate init_candidates[] = {op::candidate<accept, launch_init>("cpu")};
constexpr op::Candidate plan_candidates[] = {
    op::candidate<ops::accept_any<BatchPrefillPlan>, launch_plan_from_device>("cuda"),
    op::candidate<refuse_plan, launch_plan>("cpu")};
constexpr op::Candidate size_candidates[] = {op::candidate<refuse_size, launch_size>("cpu")};
template <class Run>
constexpr op::Candidate run_candidates[] = {op::candidate<refuse_run_cuda<Run>, launch_run_cuda<Run>>("cuda"),
                                            op::candidate<refuse_run<Run>, launch_run<Run>>("cpu"),
                                            op::reference<reference<Run>>()};

}  // namespace

constinit const op::Op prefill_init_op = op::define<BatchPrefillInit>(
    kInit, kModule, "Batch prefill over a paged KV cache: any number of query tokens a request.", init_fields,
    init_candidates, nullptr, {}, &plan_type);
constinit const op::Op prefill_plan_op = op::define<BatchPrefillPlan, validate>(
    kPlan, kModule, "Takes the page table, the mask and everything that is the same for all layers of a step.",
    plan_fields, plan_candidates, nullptr, {}, &plan_type);
constinit const op::Op prefill_run_op = op::define<BatchPrefillRun, validate_run, cost>(
    kRun, kModule, "out = softmax(scale * q k^T, masked) v over each request's pages; lse in base 2.", run_fields,
    run_candidates<BatchPrefillRun>, ops::attention::batch_prefill_cases, {}, &plan_type);
constinit const op::Op prefill_forward_op = op::define<BatchPrefillForward, validate_forward>(
    kForward, kModule, "run() with what plan() was told replaced.", forward_fields, run_candidates<BatchPrefillForward>,
    ops::attention::prefill_forward_cases, {}, &plan_type);
constinit const op::Op prefill_size_op =
    op::define<BatchPrefillWorkspaceSize>("BatchPrefillWithPagedKVCacheWrapper.workspace_size", kModule,
                                          "Bytes of partial results and of index arrays that a plan takes.",
                                          size_fields, size_candidates, nullptr, {}, &plan_type);
constinit const op::Op prefill_reset_op =
    reset_op("BatchPrefillWithPagedKVCacheWrapper.reset_workspace_buffer", kModule, &plan_type);
constinit const op::Op prefill_prewarm_op =
    prewarm_op("BatchPrefillWithPagedKVCacheWrapper.prewarm_paged_kv_stride_variant", kModule, &plan_type);
namespace {
constexpr PrefillOps kPrefillClass{kClass,           kModule,          &prefill_plan_op, &prefill_forward_op,
                                   &prefill_size_op, &prefill_reset_op};
}  // namespace
}  // namespace attention

BatchPrefillWithPagedKVCacheWrapper::BatchPrefillWithPagedKVCacheWrapper(const attention::PrefillOps* ops)
    : ops_(ops), self_(ops->class_name, ops->module, attention::plan_type) {}
BatchPrefillWithPagedKVCacheWrapper::BatchPrefillWithPagedKVCacheWrapper(BatchPrefillInit a)
    : BatchPrefillWithPagedKVCacheWrapper(&attention::kPrefillClass) {
  a.self = &self_;
  op::call(attention::prefill_init_op, a);
}
BatchPrefillWithPagedKVCacheWrapper::BatchPrefillWithPagedKVCacheWrapper(const TensorView& workspace,
                                                                         const std::string& kv_layout)
    : BatchPrefillWithPagedKVCacheWrapper(
          BatchPrefillInit{.float_workspace_buffer = workspace, .kv_layout = kv_layout}) {}
void BatchPrefillWithPagedKVCacheWrapper::plan(BatchPrefillPlan a) {
  a.self = &self_;
  op::call(*ops_->plan, a);
}
AttentionResult BatchPrefillWithPagedKVCacheWrapper::run(BatchPrefillRun a) {
  a.self = &self_;
  return op::call(attention::prefill_run_op, a);
}
AttentionResult BatchPrefillWithPagedKVCacheWrapper::forward(BatchPrefillForward a) {
  a.self = &self_;
  return op::call(*ops_->forward, a);
}
std::pair<int64_t, int64_t> BatchPrefillWithPagedKVCacheWrapper::workspace_size(const BatchPrefillPlan& a) {
  BatchPrefillWorkspaceSize b{a, {}};
  b.self = &self_;
  const Tensor sizes = op::call(*ops_->size, b);
  return {sizes.data_as<int64_t>()[0], sizes.data_as<int64_t>()[1]};
}
void BatchPrefillWithPagedKVCacheWrapper::reset_workspace_buffer(const TensorView& float_workspace,
                                                                 const TensorView& int_workspace) {
  op::call(*ops_->reset, attention::ResetWorkspace{&self_, float_workspace, int_workspace});
}

}  // namespace flashinfer
