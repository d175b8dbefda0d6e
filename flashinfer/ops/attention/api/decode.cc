// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <mutex>

#include "flashinfer/core/fork_mutex.h"
#include "flashinfer/core/warn.h"
#include "flashinfer/ops/attention/api/decode_tables.h"
#include "flashinfer/ops/attention/cases.h"

namespace flashinfer {
namespace attention {
namespace {
using namespace decode;

constexpr const char* kModule = "flashinfer.decode";
struct Plain {
  static constexpr const char *kInit = "BatchDecodeWithPagedKVCacheWrapper.__init__",
                              *kPlan = "BatchDecodeWithPagedKVCacheWrapper.plan",
                              *kRun = "BatchDecodeWithPagedKVCacheWrapper.run",
                              *kForward = "BatchDecodeWithPagedKVCacheWrapper.forward";
};
struct Graph {
  static constexpr const char *kInit = "CUDAGraphBatchDecodeWithPagedKVCacheWrapper.__init__",
                              *kPlan = "CUDAGraphBatchDecodeWithPagedKVCacheWrapper.plan",
                              *kRun = "CUDAGraphBatchDecodeWithPagedKVCacheWrapper.run",
                              *kForward = "CUDAGraphBatchDecodeWithPagedKVCacheWrapper.forward";
};
constexpr const char *kFast = "fast_decode_plan", *kSize = "BatchDecodeWithPagedKVCacheWrapper.workspace_size";

Plan init_state(const BatchDecodeInit& a) {
  check_workspace(a.float_workspace_buffer);
  Plan p;
  p.kv_layout = a.kv_layout;
  p.any_q_len = !a.use_cuda_graph && (a.backend == "trtllm-gen" || a.backend == "cute-dsl");
  set_variant(p, a);
  set_graph(p, a.use_cuda_graph,
            std::array{GraphArgument{"paged_kv_indptr_buffer", a.paged_kv_indptr_buffer, &GraphBuffers::kv_indptr},
                       GraphArgument{"paged_kv_indices_buffer", a.paged_kv_indices_buffer, &GraphBuffers::kv_indices},
                       GraphArgument{"paged_kv_last_page_len_buffer", a.paged_kv_last_page_len_buffer,
                                     &GraphBuffers::last_page_len}});
  return p;
}
void launch_init(const BatchDecodeInit& a) { a.self->set(init_state(a)); }
void launch_graph_init(const CUDAGraphBatchDecodeInit& a) {
  if (!a.indptr_buffer && !a.indices_buffer && !a.last_page_len_buffer) {
    Plan p = init_state({.float_workspace_buffer = a.workspace_buffer, .kv_layout = a.kv_layout});
    p.use_cuda_graph = p.without_buffers = true;
    return a.self->set(std::move(p));
  }
  a.self->set(init_state({.float_workspace_buffer = a.workspace_buffer,
                          .kv_layout = a.kv_layout,
                          .use_cuda_graph = true,
                          .use_tensor_cores = a.use_tensor_cores,
                          .paged_kv_indptr_buffer = a.indptr_buffer,
                          .paged_kv_indices_buffer = a.indices_buffer,
                          .paged_kv_last_page_len_buffer = a.last_page_len_buffer}));
}

void validate_plan(const BatchDecodePlan& a) {
  throw_if_given("window_right", a.window_right != 0, "only 0 is");
  FI_CHECK(a.q_len_per_req >= 1, ValueError, "q_len_per_req is ", a.q_len_per_req, ", but must be at least 1");
  check_split_size(a.fixed_split_size);
  FI_CHECK(!a.is_causal || *a.is_causal == (a.q_len_per_req > 1), NotImplementedError, "is_causal is ",
           a.is_causal.value_or(false), ", but q_len_per_req is ", a.q_len_per_req,
           ": the tokens of a request are causal among themselves");
}
/// q_len_per_req rows a request.
void set_decode_rows(Plan& p, int64_t q_len) {
  p.q_len_per_req = q_len;
  p.causal = q_len > 1;
  p.nnz_qo = p.batch_size * q_len;
  FI_CHECK(p.nnz_qo <= INT32_MAX, ValueError, "q_len_per_req is ", q_len, ", too large for ", p.batch_size,
           " requests");
  p.qo_indptr = Tensor::empty({p.batch_size + 1}, DType::kI32);
  for (int64_t b = 0; b <= p.batch_size; ++b) p.qo_indptr.data_as<int32_t>()[b] = static_cast<int32_t>(b * q_len);
  for (int64_t b = 0; b < p.batch_size && q_len > 1; ++b)
    FI_CHECK(p.kv_len.data_as<int32_t>()[b] >= q_len, ValueError, "request ", b, " has ",
             p.kv_len.data_as<int32_t>()[b], " tokens, but q_len_per_req is ", q_len,
             ": they must be in the cache, or rows would see an empty KV range");
  if (!p.use_cuda_graph) return;
  if (!p.fixed_q_len) p.fixed_q_len = q_len;
  FI_CHECK(p.fixed_q_len == q_len, ValueError, "q_len_per_req is ", q_len, ", but the first plan() was given ",
           p.fixed_q_len, ", and with use_cuda_graph=True it is frozen");
}
Plan plan_of_arguments(const BatchDecodePlan& a) {
  Plan p = next_plan(a.self);
  p.num_qo_heads = a.num_qo_heads, p.num_kv_heads = a.num_kv_heads;
  p.head_dim_qk = p.head_dim_vo = a.head_dim;
  p.page_size = a.page_size;
  p.q_data_type = a.q_data_type;
  p.kv_data_type = cache_type(a.kv_data_type.value_or(a.data_type.value_or(a.q_data_type)));
  p.o_data_type = a.o_data_type.value_or(ops::default_output(a.q_data_type));
  set_options(p, {a.window_left, a.pos_encoding_mode, a.sm_scale, a.logits_soft_cap, a.rope_scale, a.rope_theta, true});
  set_page_table(p, {"indptr", "indices", "last_page_len"}, a.indptr, a.indices, a.last_page_len);
  set_slopes(p, a.alibi_slopes);
  check_lengths("seq_lens", a.seq_lens, p.kv_len);
  check_block_tables(a.block_tables, p);
  set_decode_rows(p, a.q_len_per_req);
  fill_graph_buffers(p, &a.last_page_len);
  set_work(p);
  return p;
}
void launch_plan(const BatchDecodePlan& a) {
  a.self->set(plan_of_arguments(a));
  a.self->planned = true;
}
void launch_size(const BatchDecodeWorkspaceSize& a) { launch_sizes<BatchDecodePlan>(a, plan_of_arguments); }
void launch_fast(const FastDecodePlan& a) {
  const Plan& before = a.self->as<Plan>();
  FI_CHECK(before.qo_indptr.defined(), ValueError, "needs a prior plan() call");
  const std::optional<DType> given = a.q_data_type ? a.q_data_type : a.data_type;
  const DType q = given.value_or(before.q_data_type);
  const BatchDecodePlan b{
      .self = a.self,
      .indptr = a.global_override_indptr_cpu.value_or(a.indptr),
      .indices = a.indices,
      .last_page_len = a.last_page_len,
      .num_qo_heads = a.num_qo_heads,
      .num_kv_heads = a.num_kv_heads,
      .head_dim = a.head_dim,
      .page_size = a.page_size,
      .pos_encoding_mode = a.pos_encoding_mode,
      .window_left = a.window_left,
      .logits_soft_cap = a.logits_soft_cap,
      .q_data_type = q,
      .kv_data_type = a.kv_data_type.value_or(a.data_type.value_or(given ? q : before.kv_data_type)),
      .o_data_type = given ? ops::default_output(q) : before.o_data_type,
      .sm_scale = a.sm_scale,
      .rope_scale = a.rope_scale,
      .rope_theta = a.rope_theta,
      .q_len_per_req = a.q_len_per_req};
  try {
    a.self->set(plan_of_arguments(b));
  } catch (const Error& e) {
    throw RuntimeError(str("Error in standard plan: ", e.message()));
  }
}

template <class Run>
Call call_of_run(const Run& a) {
  return paged_call(plan_of(a.self), a);
}
/// The plan, for as many rows a request as q has where the back end leaves that to the run: validation, preparation and
/// later runs of the same rows share the one that the first of them makes, with its threads.
PlanRef planned_for_rows(const BatchDecodeRun& a) {
  const Plan& p = plan_of(a.self);
  const int64_t rows = a.q.size(0);
  if (!p.any_q_len || rows == p.nnz_qo || p.batch_size == 0) return borrowed(p);
  FI_CHECK(rows > 0 && rows % p.batch_size == 0, ValueError, "q.shape[0] is ", rows, ", but must be a multiple of ",
           p.batch_size, " requests");
  constexpr size_t kKept = 8;  // a step that verifies drafts has few lengths
  static constinit ForkMutex mutex(ForkLayer::kOps);
  const std::lock_guard lock(mutex);
  auto& kept = p.of_rows.kept;
  if (const auto at = std::ranges::find(kept, rows, [](const PlanRef& known) { return known->nnz_qo; });
      at != kept.end()) {
    std::rotate(at, at + 1, kept.end());
    return kept.back();
  }
  Plan other = p;
  set_decode_rows(other, rows / p.batch_size);
  set_work(other);
  if (kept.size() == kKept) kept.erase(kept.begin());
  return kept.emplace_back(owned(std::move(other)));
}
Call call_for_rows(const BatchDecodeRun& a) { return paged_call(*planned_for_rows(a), a); }

void validate_run(const BatchDecodeRun& a) {
  const PlanRef plan = planned_for_rows(a);
  const Plan& p = *plan;
  check_skip_softmax(a.skip_softmax_threshold_scale_factor);
  check_window(p, a.window_left);
  FI_CHECK(!a.q_len_per_req || *a.q_len_per_req == p.q_len_per_req, ValueError, "q_len_per_req is ",
           a.q_len_per_req.value_or(0), ", but ",
           p.any_q_len ? str("q has ", p.q_len_per_req, " rows a request") : str("plan() was given ", p.q_len_per_req));
  if (a.q_len_per_req) deprecated(str(": q_len_per_req is deprecated: plan() takes it"));
  check_sinks(p, a.sinks);
  check_paged_run(p, a, "indices");
}
void validate_forward(const BatchDecodeForward& a) { check_paged_run(forward_plan(a), a, "indices"); }
op::Cost cost(const BatchDecodeRun& a) { return cost_of(plan_of(a.self), a.q); }

constexpr op::Candidate init_candidates[] = {op::host<launch_init>()};
constexpr op::Candidate graph_init_candidates[] = {op::host<launch_graph_init>()};
constexpr op::Candidate fast_candidates[] = {op::host_arrays<launch_fast>()};
constexpr op::Candidate size_candidates[] = {op::cpu<launch_size>()};
constexpr op::Candidate plan_candidates[] = {op::host_arrays<launch_plan>()};

constexpr const char* kPlanDoc = "Takes the page table and everything that is the same for all layers of a step.";
constexpr const char* kRunDoc = "out = softmax(scale * q k^T) v over each request's pages; lse in base 2.";
constexpr const char* kForwardDoc = "run() with what plan() was given replaced.";
constexpr const char* kSizeDoc = "Bytes of partial results and of index arrays that a plan takes.";
template <class N>
constexpr op::Op define_plan() {
  return op::define<BatchDecodePlan, validate_plan>(N::kPlan, kModule, kPlanDoc, plan_fields, plan_candidates, nullptr,
                                                    {}, &plan_type);
}
template <class N>
constexpr op::Op define_run(op::CaseTable cases) {
  return op::define<BatchDecodeRun, validate_run, cost>(
      N::kRun, kModule, kRunDoc, run_fields, NarrowPlanRun<BatchDecodeRun, planned_for_rows, call_for_rows>::candidates,
      cases, {.rtol = -1, .atol = -1}, &plan_type);
}
template <class N>
constexpr op::Op define_forward(op::CaseTable cases) {
  return op::define<BatchDecodeForward, validate_forward>(
      N::kForward, kModule, kForwardDoc, forward_fields,
      NarrowPlanRun<BatchDecodeForward, replanned, call_of_run>::candidates, cases, {}, &plan_type);
}
constexpr op::Op define_size(const char* name) {
  return op::define<BatchDecodeWorkspaceSize>(name, kModule, kSizeDoc, size_fields, size_candidates, nullptr, {},
                                              &plan_type);
}
}  // namespace

constinit const op::Op decode_init_op = op::also_named(
    op::define<BatchDecodeInit>(Plain::kInit, kModule, "Batch decode over a paged KV cache: one query token a request.",
                                init_fields, init_candidates, nullptr, {}, &plan_type),
    "resolved_backend=backend(auto=fa2)");
constinit const op::Op graph_init_op = op::also_named(
    op::define<CUDAGraphBatchDecodeInit>(Graph::kInit, kModule,
                                         "Batch decode whose plan() also writes its arrays into buffers of fixed size.",
                                         graph_init_fields, graph_init_candidates, nullptr, {}, &plan_type),
    "is_cuda_graph_enabled=True");
constinit const op::Op decode_plan_op = define_plan<Plain>(), graph_plan_op = define_plan<Graph>();
constinit const op::Op decode_run_op = define_run<Plain>(ops::attention::batch_decode_cases),
                       graph_run_op = define_run<Graph>(ops::attention::graph_decode_cases);
constinit const op::Op decode_forward_op = define_forward<Plain>(ops::attention::decode_forward_cases),
                       graph_forward_op = define_forward<Graph>(ops::attention::graph_forward_cases);
constinit const op::Op fast_decode_plan_op =
    op::define<FastDecodePlan>(kFast, kModule, "plan() from host arrays, with the data types of the last plan.",
                               fast_fields, fast_candidates, nullptr, {}, &plan_type);
constinit const op::Op decode_size_op = define_size(kSize),
                       graph_size_op = define_size("CUDAGraphBatchDecodeWithPagedKVCacheWrapper.workspace_size");
constinit const op::Op decode_reset_op =
                           reset_op("BatchDecodeWithPagedKVCacheWrapper.reset_workspace_buffer", kModule, &plan_type),
                       graph_reset_op = reset_op("CUDAGraphBatchDecodeWithPagedKVCacheWrapper.reset_workspace_buffer",
                                                 kModule, &plan_type);
constinit const op::Op decode_prewarm_op = prewarm_op(
                           "BatchDecodeWithPagedKVCacheWrapper.prewarm_paged_kv_stride_variant", kModule, &plan_type),
                       graph_prewarm_op =
                           prewarm_op("CUDAGraphBatchDecodeWithPagedKVCacheWrapper.prewarm_paged_kv_stride_variant",
                                      kModule, &plan_type);

struct DecodeOps {
  const char* class_name;
  const op::Op *plan, *run, *forward, *size, *reset, *on_device;
};
namespace {
constexpr DecodeOps kPlainClass{"BatchDecodeWithPagedKVCacheWrapper",
                                &decode_plan_op,
                                &decode_run_op,
                                &decode_forward_op,
                                &decode_size_op,
                                &decode_reset_op,
                                &decode_on_device_op};
constexpr DecodeOps kGraphClass{"CUDAGraphBatchDecodeWithPagedKVCacheWrapper",
                                &graph_plan_op,
                                &graph_run_op,
                                &graph_forward_op,
                                &graph_size_op,
                                &graph_reset_op,
                                &graph_on_device_op};
}  // namespace
}  // namespace attention

using attention::kModule;
BatchDecodeWithPagedKVCacheWrapper::BatchDecodeWithPagedKVCacheWrapper(const attention::DecodeOps* ops)
    : ops_(ops), self_(ops->class_name, kModule, attention::plan_type) {}
BatchDecodeWithPagedKVCacheWrapper::BatchDecodeWithPagedKVCacheWrapper(BatchDecodeInit a)
    : BatchDecodeWithPagedKVCacheWrapper(&attention::kPlainClass) {
  a.self = &self_;
  op::call(attention::decode_init_op, a);
}
BatchDecodeWithPagedKVCacheWrapper::BatchDecodeWithPagedKVCacheWrapper(const TensorView& workspace,
                                                                       const std::string& kv_layout)
    : BatchDecodeWithPagedKVCacheWrapper(BatchDecodeInit{.float_workspace_buffer = workspace, .kv_layout = kv_layout}) {
}
CUDAGraphBatchDecodeWithPagedKVCacheWrapper::CUDAGraphBatchDecodeWithPagedKVCacheWrapper(CUDAGraphBatchDecodeInit a)
    : BatchDecodeWithPagedKVCacheWrapper(&attention::kGraphClass) {
  a.self = &self_;
  op::call(attention::graph_init_op, a);
}
void BatchDecodeWithPagedKVCacheWrapper::plan(BatchDecodePlan a) {
  a.self = &self_;
  op::call(*ops_->plan, a);
}
AttentionResult BatchDecodeWithPagedKVCacheWrapper::run(BatchDecodeRun a) {
  a.self = &self_;
  return op::call(*ops_->run, a);
}
AttentionResult BatchDecodeWithPagedKVCacheWrapper::forward(BatchDecodeForward a) {
  a.self = &self_;
  return op::call(*ops_->forward, a);
}
void BatchDecodeWithPagedKVCacheWrapper::fast_decode_plan(FastDecodePlan a) {
  a.self = &self_;
  op::call(attention::fast_decode_plan_op, a);
}
void BatchDecodeWithPagedKVCacheWrapper::plan_on_device(const TensorView& seq_lens) {
  op::call(*ops_->on_device, BatchDecodePlanOnDevice{&self_, seq_lens});
}
std::pair<int64_t, int64_t> BatchDecodeWithPagedKVCacheWrapper::workspace_size(const BatchDecodePlan& a) {
  BatchDecodeWorkspaceSize b{a, {}};
  b.self = &self_;
  const Tensor sizes = op::call(*ops_->size, b);
  return {sizes.data_as<int64_t>()[0], sizes.data_as<int64_t>()[1]};
}
void BatchDecodeWithPagedKVCacheWrapper::reset_workspace_buffer(const TensorView& float_workspace,
                                                                const TensorView& int_workspace) {
  op::call(*ops_->reset, attention::ResetWorkspace{&self_, float_workspace, int_workspace});
}

}  // namespace flashinfer
