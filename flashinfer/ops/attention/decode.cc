// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/attention/cases.h"
#include "flashinfer/ops/attention/checks.h"

namespace flashinfer {
namespace attention {
namespace {

constexpr const char* kClass = "BatchDecodeWithPagedKVCacheWrapper";
constexpr const char* kInit = "BatchDecodeWithPagedKVCacheWrapper.__init__";
constexpr const char* kPlan = "BatchDecodeWithPagedKVCacheWrapper.plan";
constexpr const char* kRun = "BatchDecodeWithPagedKVCacheWrapper.run";
constexpr const char* kModule = "flashinfer.decode";

void validate_init(const BatchDecodeInit& a) {
  not_served(kInit, "use_cuda_graph=True", a.use_cuda_graph, "there are no CUDA graphs on the CPU");
  not_served(kInit, "paged_kv_indptr_buffer", a.paged_kv_indptr_buffer.has_value(), kNeedsGraph);
  not_served(kInit, "paged_kv_indices_buffer", a.paged_kv_indices_buffer.has_value(), kNeedsGraph);
  not_served(kInit, "paged_kv_last_page_len_buffer", a.paged_kv_last_page_len_buffer.has_value(), kNeedsGraph);
  not_served(kInit, "jit_args", !a.jit_args.is_none(), "custom variants are not available");
}
void launch_init(const BatchDecodeInit& a) {
  Plan p;
  p.kv_layout = a.kv_layout;
  a.self->set(std::move(p));
}

void validate_plan(const BatchDecodePlan& a) {
  not_served(kPlan, "window_right", a.window_right != 0, "only 0 is");
  not_served(kPlan, "block_tables", a.block_tables.has_value(), kNeedsGpu);
  FI_CHECK(a.q_len_per_req >= 1, ValueError, kPlan, ": q_len_per_req is ", a.q_len_per_req, ", but must be at least 1");
  FI_CHECK(!a.fixed_split_size || *a.fixed_split_size >= 1, ValueError, kPlan, ": fixed_split_size is ", a.fixed_split_size.value_or(0),
           ", but must be at least 1");
  FI_CHECK(!a.is_causal || *a.is_causal == (a.q_len_per_req > 1), NotImplementedError, kPlan, ": is_causal is ", a.is_causal.value_or(false),
           ", but q_len_per_req is ", a.q_len_per_req, ": the tokens of a request are causal among themselves");
}
void launch_plan(const BatchDecodePlan& a) {
  Plan p;
  p.kv_layout = a.self->as<Plan>().kv_layout;
  p.num_qo_heads = a.num_qo_heads, p.num_kv_heads = a.num_kv_heads;
  p.head_dim_qk = p.head_dim_vo = a.head_dim;
  p.page_size = a.page_size;
  p.q_data_type = a.data_type.value_or(a.q_data_type);
  p.kv_data_type = a.kv_data_type.value_or(p.q_data_type);
  p.o_data_type = a.o_data_type.value_or(p.q_data_type);
  p.q_len_per_req = a.q_len_per_req;
  p.causal = a.q_len_per_req > 1;
  set_options(p, {kPlan, a.window_left, a.pos_encoding_mode, a.sm_scale, a.logits_soft_cap, a.rope_scale, a.rope_theta});
  set_page_table(p, kPlan, {"indptr", "indices", "last_page_len"}, a.indptr, a.indices, a.last_page_len);
  check_lengths(kPlan, "seq_lens", a.seq_lens, p.kv_len);
  p.nnz_qo = p.batch_size * p.q_len_per_req;
  FI_CHECK(p.nnz_qo <= INT32_MAX, ValueError, kPlan, ": q_len_per_req is ", a.q_len_per_req, ", too large for ", p.batch_size, " requests");
  p.qo_indptr = Tensor::empty({p.batch_size + 1}, DType::kI32);
  for (int64_t b = 0; b <= p.batch_size; ++b) p.qo_indptr.data_as<int32_t>()[b] = static_cast<int32_t>(b * p.q_len_per_req);
  for (int64_t b = 0; b < p.batch_size && p.q_len_per_req > 1; ++b)
    FI_CHECK(p.kv_len.data_as<int32_t>()[b] >= p.q_len_per_req, ValueError, kPlan, ": request ", b, " has ",
             p.kv_len.data_as<int32_t>()[b], " tokens, but q_len_per_req is ", p.q_len_per_req, ": they must be in the cache");
  set_work(p);
  a.self->set(std::move(p));
  a.self->planned = true;
}

ops::KvPlanes planes(const BatchDecodeRun& a) { return ops::kv_planes(kRun, a.paged_kv_cache, a.self->as<Plan>().kv_layout); }
Call call_of_run(const BatchDecodeRun& a) {
  const ops::KvPlanes kv = planes(a);
  return call_of(a, {kv.k, kv.v});
}
void validate_run(const BatchDecodeRun& a) {
  const Plan& p = plan_of(kRun, a.self);
  not_served(kRun, "sinks", a.sinks.has_value(), "attention sinks are not available");
  not_served(kRun, "skip_softmax_threshold_scale_factor", a.skip_softmax_threshold_scale_factor.has_value(), kNeedsGpu);
  not_served(kRun, "kv_cache_sf", !a.kv_cache_sf.is_none(), "NVFP4 caches are not available");
  check_window(kRun, p, a.window_left);
  FI_CHECK(!a.q_len_per_req || *a.q_len_per_req == p.q_len_per_req, ValueError, kRun, ": q_len_per_req is ", a.q_len_per_req.value_or(0),
           ", but plan() was told ", p.q_len_per_req);
  const ops::KvPlanes kv = planes(a);
  check_run(kRun, p, a.q, {kv.k, kv.v}, "paged_kv_cache (K)", "paged_kv_cache (V)");
  check_paged(kRun, p, kv, "indices");
}
op::Shape out_shape(const BatchDecodeRun& a) {
  const Plan& p = plan_of(kRun, a.self);
  return rows_heads_dim(p.nnz_qo, p.num_qo_heads, p.head_dim_vo);
}
op::Shape lse_shape(const BatchDecodeRun& a) {
  const Plan& p = plan_of(kRun, a.self);
  return rows_heads(p.nnz_qo, p.num_qo_heads);
}
DType out_dtype(const BatchDecodeRun& a) { return plan_of(kRun, a.self).o_data_type; }
op::Cost cost(const BatchDecodeRun& a) { return cost_of(plan_of(kRun, a.self), a.q, a.paged_kv_cache.first.item_size()); }

op::Refusal refuse_init(const BatchDecodeInit&) { return {}; }
op::Refusal refuse_plan(const BatchDecodePlan& a) { return op::refuse_unless_cpu(decode_plan_op, &a); }
op::Refusal refuse_run(const BatchDecodeRun& a) {
  if (op::Refusal r = op::refuse_unless_cpu(decode_run_op, &a); !r.empty()) return r;
  return refuse(plan_of(kRun, a.self), call_of_run(a));
}
void launch_run(const BatchDecodeRun& a) { run(plan_of(kRun, a.self), call_of_run(a)); }
void reference(const BatchDecodeRun& a) { run_reference(plan_of(kRun, a.self), call_of_run(a)); }

constexpr op::Field init_fields[] = {
    op::self<&BatchDecodeInit::self>(),
    op::scratch<&BatchDecodeInit::float_workspace_buffer>("float_workspace_buffer", nullptr),
    op::attr<&BatchDecodeInit::kv_layout>("kv_layout", op::choices("NHD|HND", ErrorKind::kKeyError)),
    op::attr<&BatchDecodeInit::use_cuda_graph>("use_cuda_graph"),
    op::attr<&BatchDecodeInit::use_tensor_cores>("use_tensor_cores"),
    op::scratch<&BatchDecodeInit::paged_kv_indptr_buffer>("paged_kv_indptr_buffer", nullptr),
    op::scratch<&BatchDecodeInit::paged_kv_indices_buffer>("paged_kv_indices_buffer", nullptr),
    op::scratch<&BatchDecodeInit::paged_kv_last_page_len_buffer>("paged_kv_last_page_len_buffer", nullptr),
    op::attr<&BatchDecodeInit::backend>("backend", op::backends(kBackends)),
    op::attr<&BatchDecodeInit::jit_args>("jit_args"),
};
constexpr op::Field plan_fields[] = {
    op::self<&BatchDecodePlan::self>(),
    op::in<&BatchDecodePlan::indptr>("indptr", "b+1", op::indices, op::any_layout),
    op::in<&BatchDecodePlan::indices>("indices", "n", op::indices, op::any_layout),
    op::in<&BatchDecodePlan::last_page_len>("last_page_len", "b", op::indices, op::any_layout),
    op::attr<&BatchDecodePlan::num_qo_heads>("num_qo_heads", op::required),
    op::attr<&BatchDecodePlan::num_kv_heads>("num_kv_heads", op::required),
    op::attr<&BatchDecodePlan::head_dim>("head_dim", op::required),
    op::attr<&BatchDecodePlan::page_size>("page_size", op::required),
    op::attr<&BatchDecodePlan::pos_encoding_mode>("pos_encoding_mode", op::choices(kModes, ErrorKind::kKeyError), op::keyword_only),
    op::attr<&BatchDecodePlan::window_left>("window_left"),
    op::attr<&BatchDecodePlan::window_right>("window_right"),
    op::attr<&BatchDecodePlan::logits_soft_cap>("logits_soft_cap"),
    op::attr<&BatchDecodePlan::q_data_type>("q_data_type", op::literal("'float16'")),
    op::attr<&BatchDecodePlan::kv_data_type>("kv_data_type"),
    op::attr<&BatchDecodePlan::o_data_type>("o_data_type"),
    op::attr<&BatchDecodePlan::data_type>("data_type"),
    op::attr<&BatchDecodePlan::sm_scale>("sm_scale"),
    op::attr<&BatchDecodePlan::rope_scale>("rope_scale"),
    op::attr<&BatchDecodePlan::rope_theta>("rope_theta"),
    op::attr<&BatchDecodePlan::non_blocking>("non_blocking"),
    op::in<&BatchDecodePlan::block_tables>("block_tables", nullptr),
    op::in<&BatchDecodePlan::seq_lens>("seq_lens", "b", op::indices, op::any_layout),
    op::attr<&BatchDecodePlan::fixed_split_size>("fixed_split_size"),
    op::attr<&BatchDecodePlan::disable_split_kv>("disable_split_kv"),
    op::attr<&BatchDecodePlan::q_len_per_req>("q_len_per_req"),
    op::attr<&BatchDecodePlan::is_causal>("is_causal"),
};
constexpr op::Field run_fields[] = {
    op::self<&BatchDecodeRun::self>(),
    op::in<&BatchDecodeRun::q>("q", "n h d", op::floats),
    op::paged<&BatchDecodeRun::paged_kv_cache>("paged_kv_cache", nullptr, op::floats | op::fp8),
    op::attr<&BatchDecodeRun::q_scale>("q_scale", op::keyword_only),
    op::attr<&BatchDecodeRun::k_scale>("k_scale"),
    op::attr<&BatchDecodeRun::v_scale>("v_scale"),
    op::out<&BatchDecodeRun::out>("out", nullptr, op::floats, op::shape<out_shape>, op::dtype<out_dtype>),
    op::out<&BatchDecodeRun::lse>("lse", nullptr, DType::kF32, op::shape<lse_shape>, op::when<&BatchDecodeRun::return_lse>),
    op::attr<&BatchDecodeRun::return_lse>("return_lse"),
    op::attr<&BatchDecodeRun::enable_pdl>("enable_pdl"),
    op::attr<&BatchDecodeRun::window_left>("window_left"),
    op::in<&BatchDecodeRun::sinks>("sinks", nullptr),
    op::attr<&BatchDecodeRun::q_len_per_req>("q_len_per_req"),
    op::attr<&BatchDecodeRun::skip_softmax_threshold_scale_factor>("skip_softmax_threshold_scale_factor"),
    op::attr<&BatchDecodeRun::kv_cache_sf>("kv_cache_sf"),
};
constexpr op::Candidate init_candidates[] = {op::candidate<refuse_init, launch_init>("cpu")};
constexpr op::Candidate plan_candidates[] = {op::candidate<refuse_plan, launch_plan>("cpu")};
constexpr op::Candidate run_candidates[] = {op::candidate<refuse_run, launch_run>("cpu"), op::reference<reference>()};
}  // namespace

constinit const op::Op decode_init_op = op::define<BatchDecodeInit, validate_init>(
    kInit, kModule, "Batch decode over a paged KV cache: one query token a request.", init_fields, init_candidates, nullptr, {}, &plan_type);
constinit const op::Op decode_plan_op = op::define<BatchDecodePlan, validate_plan>(
    kPlan, kModule, "Takes the page table and everything that is the same for all layers of a step.", plan_fields, plan_candidates,
    nullptr, {}, &plan_type);
constinit const op::Op decode_run_op = op::define<BatchDecodeRun, validate_run, cost>(
    kRun, kModule, "out = softmax(scale * q k^T) v over each request's pages; lse in base 2.", run_fields, run_candidates,
    ops::attention::batch_decode_cases, {.rtol = -1, .atol = -1}, &plan_type);

}  // namespace attention

BatchDecodeWithPagedKVCacheWrapper::BatchDecodeWithPagedKVCacheWrapper(BatchDecodeInit a)
    : self_(attention::kClass, attention::kModule, attention::plan_type) {
  a.self = &self_;
  op::call(attention::decode_init_op, a);
}
BatchDecodeWithPagedKVCacheWrapper::BatchDecodeWithPagedKVCacheWrapper(const TensorView& workspace, const std::string& kv_layout)
    : BatchDecodeWithPagedKVCacheWrapper(BatchDecodeInit{.float_workspace_buffer = workspace, .kv_layout = kv_layout}) {}
void BatchDecodeWithPagedKVCacheWrapper::plan(BatchDecodePlan a) {
  a.self = &self_;
  op::call(attention::decode_plan_op, a);
}
AttentionResult BatchDecodeWithPagedKVCacheWrapper::run(BatchDecodeRun a) {
  a.self = &self_;
  return op::call(attention::decode_run_op, a);
}

}  // namespace flashinfer
