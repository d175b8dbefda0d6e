// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "flashinfer/ops/attention/api/prefill_tables.h"
#include "flashinfer/ops/attention/cases.h"

namespace flashinfer {
namespace attention {
namespace prefill {

void validate_plan(const BatchPrefillPlan& a) { check_prefill_plan(a); }
Plan plan_of_arguments(const BatchPrefillPlan& a) {
  Plan p = prefill_plan(a);
  p.page_size = a.page_size;
  set_page_table(p, {"paged_kv_indptr", "paged_kv_indices", "paged_kv_last_page_len"}, a.paged_kv_indptr,
                 a.paged_kv_indices, a.paged_kv_last_page_len);
  check_block_tables(a.block_tables, p);
  finish_prefill_plan(p, a, &a.paged_kv_last_page_len);
  return p;
}
void launch_size(const BatchPrefillWorkspaceSize& a) { launch_sizes<BatchPrefillPlan>(a, plan_of_arguments); }

}  // namespace prefill

namespace {
using namespace prefill;

constexpr const char* kClass = "BatchPrefillWithPagedKVCacheWrapper";
constexpr const char* kInit = "BatchPrefillWithPagedKVCacheWrapper.__init__";
constexpr const char* kPlan = "BatchPrefillWithPagedKVCacheWrapper.plan";
constexpr const char* kRun = "BatchPrefillWithPagedKVCacheWrapper.run";
constexpr const char* kForward = "BatchPrefillWithPagedKVCacheWrapper.forward";

void launch_init(const BatchPrefillInit& a) {
  check_workspace(a.float_workspace_buffer);
  Plan p;
  p.kv_layout = a.kv_layout;
  set_variant(p, a);
  set_paged_prefill_graph(p, a);
  a.self->set(std::move(p));
}
void validate(const BatchPrefillPlan& a) { validate_plan(a); }
void launch_plan(const BatchPrefillPlan& a) {
  a.self->set(plan_of_arguments(a));
  a.self->planned = true;
}

void validate_run(const BatchPrefillRun& a) {
  const Plan& p = plan_of(a.self);
  check_skip_softmax(a.skip_softmax_threshold_scale_factor);
  throw_if_given("use_fp16_softmax=True", a.use_fp16_softmax.value_or(false), kNeedsGpu);
  throw_if_given("uses_spcompress=True", a.uses_spcompress.value_or(false), kNeedsGpu);
  check_window(p, a.window_left);
  check_sinks(p, a.sinks);
  check_paged_run(p, a, "paged_kv_indices");
  check_lse(a);
}
void validate_forward(const BatchPrefillForward& a) { check_paged_run(forward_plan(a), a, "paged_kv_indices"); }
op::Cost cost(const BatchPrefillRun& a) { return cost_of(plan_of(a.self), a.q); }

Call call_of_run(const BatchPrefillRun& a) { return set_lse_format(paged_call(plan_of(a.self), a), a); }
Call call_of_forward(const BatchPrefillForward& a) { return paged_call(plan_of(a.self), a); }

constexpr op::Candidate init_candidates[] = {op::host<launch_init>()};
constexpr op::Candidate plan_candidates[] = {op::host_arrays<launch_plan>()};
constexpr op::Candidate size_candidates[] = {op::cpu<launch_size>()};

}  // namespace

constinit const op::Op prefill_init_op = op::define<BatchPrefillInit>(
    kInit, kModule, "Batch prefill over a paged KV cache: any number of query tokens a request.", init_fields,
    init_candidates, nullptr, {}, &plan_type);
constinit const op::Op prefill_plan_op = op::define<BatchPrefillPlan, validate>(
    kPlan, kModule, "Takes the page table, the mask and everything that is the same for all layers of a step.",
    plan_fields, plan_candidates, nullptr, {}, &plan_type);
constinit const op::Op prefill_run_op = op::define<BatchPrefillRun, validate_run, cost>(
    kRun, kModule, "out = softmax(scale * q k^T, masked) v over each request's pages; lse in base 2.", run_fields,
    NarrowPlanRun<BatchPrefillRun, planned, call_of_run>::candidates, ops::attention::batch_prefill_cases, {},
    &plan_type);
constinit const op::Op prefill_forward_op = op::define<BatchPrefillForward, validate_forward>(
    kForward, kModule, "run() with what plan() was given replaced.", forward_fields,
    NarrowPlanRun<BatchPrefillForward, replanned, call_of_forward>::candidates, ops::attention::prefill_forward_cases,
    {}, &plan_type);
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
