// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/attention/cases.h"
#include "flashinfer/ops/attention/checks.h"

namespace flashinfer {
namespace attention {
namespace {

constexpr const char* kClass = "BatchPrefillWithPagedKVCacheWrapper";
constexpr const char* kInit = "BatchPrefillWithPagedKVCacheWrapper.__init__";
constexpr const char* kPlan = "BatchPrefillWithPagedKVCacheWrapper.plan";
constexpr const char* kRun = "BatchPrefillWithPagedKVCacheWrapper.run";
constexpr const char* kModule = "flashinfer.prefill";

void validate_init(const BatchPrefillInit& a) {
  check_prefill_init(kInit, a);
  not_served(kInit, "paged_kv_indptr_buf", a.paged_kv_indptr_buf.has_value(), kNeedsGraph);
  not_served(kInit, "paged_kv_indices_buf", a.paged_kv_indices_buf.has_value(), kNeedsGraph);
  not_served(kInit, "paged_kv_last_page_len_buf", a.paged_kv_last_page_len_buf.has_value(), kNeedsGraph);
}
void launch_init(const BatchPrefillInit& a) {
  Plan p;
  p.kv_layout = a.kv_layout;
  a.self->set(std::move(p));
}

void validate_plan(const BatchPrefillPlan& a) {
  check_prefill_plan(kPlan, a);
  not_served(kPlan, "block_tables", a.block_tables.has_value(), kNeedsGpu);
}
void launch_plan(const BatchPrefillPlan& a) {
  Plan p = prefill_plan(kPlan, a);
  p.page_size = a.page_size;
  set_page_table(p, kPlan, {"paged_kv_indptr", "paged_kv_indices", "paged_kv_last_page_len"}, a.paged_kv_indptr, a.paged_kv_indices,
                 a.paged_kv_last_page_len);
  finish_prefill_plan(p, kPlan, a);
  a.self->set(std::move(p));
  a.self->planned = true;
}

ops::KvPlanes planes(const BatchPrefillRun& a) { return ops::kv_planes(kRun, a.paged_kv_cache, a.self->as<Plan>().kv_layout); }
Call call_of_run(const BatchPrefillRun& a) {
  const ops::KvPlanes kv = planes(a);
  return prefill_call(a, {kv.k, kv.v});
}
void validate_run(const BatchPrefillRun& a) {
  const Plan& p = plan_of(kRun, a.self);
  not_served(kRun, "sinks", a.sinks.has_value(), "attention sinks are not available");
  not_served(kRun, "kv_cache_sf", !a.kv_cache_sf.is_none(), "NVFP4 caches are not available");
  not_served(kRun, "skip_softmax_threshold_scale_factor", a.skip_softmax_threshold_scale_factor.has_value(), kNeedsGpu);
  not_served(kRun, "use_fp16_softmax=True", a.use_fp16_softmax.value_or(false), kNeedsGpu);
  not_served(kRun, "uses_spcompress=True", a.uses_spcompress.value_or(false), kNeedsGpu);
  check_window(kRun, p, a.window_left);
  const ops::KvPlanes kv = planes(a);
  check_run(kRun, p, a.q, {kv.k, kv.v}, "paged_kv_cache (K)", "paged_kv_cache (V)");
  check_paged(kRun, p, kv, "paged_kv_indices");
  check_lse(kRun, a);
}
op::Shape out_shape(const BatchPrefillRun& a) { return prefill_out_shape(kRun, a); }
op::Shape lse_shape(const BatchPrefillRun& a) { return prefill_lse_shape(kRun, a); }
DType out_dtype(const BatchPrefillRun& a) { return plan_of(kRun, a.self).o_data_type; }
op::Cost cost(const BatchPrefillRun& a) { return cost_of(plan_of(kRun, a.self), a.q, a.paged_kv_cache.first.item_size()); }

op::Refusal refuse_init(const BatchPrefillInit&) { return {}; }
op::Refusal refuse_plan(const BatchPrefillPlan& a) { return op::refuse_unless_cpu(prefill_plan_op, &a); }
op::Refusal refuse_run(const BatchPrefillRun& a) {
  if (op::Refusal r = op::refuse_unless_cpu(prefill_run_op, &a); !r.empty()) return r;
  return refuse(plan_of(kRun, a.self), call_of_run(a));
}
void launch_run(const BatchPrefillRun& a) { run(plan_of(kRun, a.self), call_of_run(a)); }
void reference(const BatchPrefillRun& a) { run_reference(plan_of(kRun, a.self), call_of_run(a)); }

constexpr op::Field init_fields[] = {
    op::self<&BatchPrefillInit::self>(),
    op::scratch<&BatchPrefillInit::float_workspace_buffer>("float_workspace_buffer", nullptr),
    op::attr<&BatchPrefillInit::kv_layout>("kv_layout", op::choices("NHD|HND", ErrorKind::kKeyError)),
    op::attr<&BatchPrefillInit::use_cuda_graph>("use_cuda_graph"),
    op::scratch<&BatchPrefillInit::qo_indptr_buf>("qo_indptr_buf", nullptr),
    op::scratch<&BatchPrefillInit::paged_kv_indptr_buf>("paged_kv_indptr_buf", nullptr),
    op::scratch<&BatchPrefillInit::paged_kv_indices_buf>("paged_kv_indices_buf", nullptr),
    op::scratch<&BatchPrefillInit::paged_kv_last_page_len_buf>("paged_kv_last_page_len_buf", nullptr),
    op::scratch<&BatchPrefillInit::custom_mask_buf>("custom_mask_buf", nullptr),
    op::scratch<&BatchPrefillInit::mask_indptr_buf>("mask_indptr_buf", nullptr),
    op::attr<&BatchPrefillInit::backend>("backend", op::backends(kBackends)),
    op::attr<&BatchPrefillInit::jit_args>("jit_args"),
    op::attr<&BatchPrefillInit::jit_kwargs>("jit_kwargs"),
    op::attr<&BatchPrefillInit::variant_owns_mask>("variant_owns_mask"),
};
constexpr op::Field plan_fields[] = {
    op::self<&BatchPrefillPlan::self>(),
    op::in<&BatchPrefillPlan::qo_indptr>("qo_indptr", "b+1", op::indices, op::any_layout),
    op::in<&BatchPrefillPlan::paged_kv_indptr>("paged_kv_indptr", "b+1", op::indices, op::any_layout),
    op::in<&BatchPrefillPlan::paged_kv_indices>("paged_kv_indices", "n", op::indices, op::any_layout),
    op::in<&BatchPrefillPlan::paged_kv_last_page_len>("paged_kv_last_page_len", "b", op::indices, op::any_layout),
    op::attr<&BatchPrefillPlan::num_qo_heads>("num_qo_heads", op::required),
    op::attr<&BatchPrefillPlan::num_kv_heads>("num_kv_heads", op::required),
    op::attr<&BatchPrefillPlan::head_dim_qk>("head_dim_qk", op::required),
    op::attr<&BatchPrefillPlan::page_size>("page_size", op::required),
    op::attr<&BatchPrefillPlan::head_dim_vo>("head_dim_vo"),
    op::in<&BatchPrefillPlan::custom_mask>("custom_mask", nullptr, kMaskTypes, op::contiguous),
    op::in<&BatchPrefillPlan::packed_custom_mask>("packed_custom_mask", nullptr, DType::kU8, op::contiguous),
    op::attr<&BatchPrefillPlan::causal>("causal"),
    op::attr<&BatchPrefillPlan::pos_encoding_mode>("pos_encoding_mode", op::choices(kModes, ErrorKind::kKeyError)),
    op::attr<&BatchPrefillPlan::use_fp16_qk_reduction>("use_fp16_qk_reduction"),
    op::attr<&BatchPrefillPlan::sm_scale>("sm_scale"),
    op::attr<&BatchPrefillPlan::window_left>("window_left"),
    op::attr<&BatchPrefillPlan::logits_soft_cap>("logits_soft_cap"),
    op::attr<&BatchPrefillPlan::rope_scale>("rope_scale"),
    op::attr<&BatchPrefillPlan::rope_theta>("rope_theta"),
    op::attr<&BatchPrefillPlan::q_data_type>("q_data_type", op::literal("'float16'")),
    op::attr<&BatchPrefillPlan::kv_data_type>("kv_data_type"),
    op::attr<&BatchPrefillPlan::o_data_type>("o_data_type"),
    op::attr<&BatchPrefillPlan::non_blocking>("non_blocking"),
    op::in<&BatchPrefillPlan::prefix_len_ptr>("prefix_len_ptr", nullptr),
    op::in<&BatchPrefillPlan::token_pos_in_items_ptr>("token_pos_in_items_ptr", nullptr),
    op::attr<&BatchPrefillPlan::token_pos_in_items_len>("token_pos_in_items_len"),
    op::in<&BatchPrefillPlan::max_item_len_ptr>("max_item_len_ptr", nullptr),
    op::in<&BatchPrefillPlan::seq_lens>("seq_lens", "b", op::indices, op::any_layout),
    op::in<&BatchPrefillPlan::seq_lens_q>("seq_lens_q", "b", op::indices, op::any_layout),
    op::in<&BatchPrefillPlan::block_tables>("block_tables", nullptr),
    op::attr<&BatchPrefillPlan::max_token_per_sequence>("max_token_per_sequence"),
    op::attr<&BatchPrefillPlan::max_sequence_kv>("max_sequence_kv"),
    op::attr<&BatchPrefillPlan::fixed_split_size>("fixed_split_size"),
    op::attr<&BatchPrefillPlan::disable_split_kv>("disable_split_kv"),
    op::attr<&BatchPrefillPlan::uniform_q_len>("uniform_q_len"),
};
constexpr op::Field run_fields[] = {
    op::self<&BatchPrefillRun::self>(),
    op::in<&BatchPrefillRun::q>("q", "n h d", op::floats),
    op::paged<&BatchPrefillRun::paged_kv_cache>("paged_kv_cache", nullptr, op::floats | op::fp8),
    op::attr<&BatchPrefillRun::q_scale>("q_scale", op::keyword_only),
    op::attr<&BatchPrefillRun::k_scale>("k_scale"),
    op::attr<&BatchPrefillRun::v_scale>("v_scale"),
    op::out<&BatchPrefillRun::out>("out", nullptr, op::floats, op::shape<out_shape>, op::dtype<out_dtype>),
    op::out<&BatchPrefillRun::lse>("lse", nullptr, DType::kF32, op::shape<lse_shape>, op::when<&BatchPrefillRun::return_lse>),
    op::attr<&BatchPrefillRun::return_lse>("return_lse"),
    op::attr<&BatchPrefillRun::lse_base>("lse_base", op::choices("log2|ln")),
    op::attr<&BatchPrefillRun::lse_layout>("lse_layout", op::choices("NH|HN")),
    op::attr<&BatchPrefillRun::enable_pdl>("enable_pdl"),
    op::attr<&BatchPrefillRun::window_left>("window_left"),
    op::in<&BatchPrefillRun::sinks>("sinks", nullptr),
    op::attr<&BatchPrefillRun::kv_cache_sf>("kv_cache_sf"),
    op::attr<&BatchPrefillRun::skip_softmax_threshold_scale_factor>("skip_softmax_threshold_scale_factor"),
    op::attr<&BatchPrefillRun::use_fp16_softmax>("use_fp16_softmax"),
    op::attr<&BatchPrefillRun::uses_spcompress>("uses_spcompress"),
};
constexpr op::Candidate init_candidates[] = {op::candidate<refuse_init, launch_init>("cpu")};
constexpr op::Candidate plan_candidates[] = {op::candidate<refuse_plan, launch_plan>("cpu")};
constexpr op::Candidate run_candidates[] = {op::candidate<refuse_run, launch_run>("cpu"), op::reference<reference>()};
}  // namespace

constinit const op::Op prefill_init_op = op::define<BatchPrefillInit, validate_init>(
    kInit, kModule, "Batch prefill over a paged KV cache: any number of query tokens a request.", init_fields, init_candidates, nullptr, {}, &plan_type);
constinit const op::Op prefill_plan_op = op::define<BatchPrefillPlan, validate_plan>(
    kPlan, kModule, "Takes the page table, the mask and everything that is the same for all layers of a step.", plan_fields, plan_candidates,
    nullptr, {}, &plan_type);
constinit const op::Op prefill_run_op = op::define<BatchPrefillRun, validate_run, cost>(
    kRun, kModule, "out = softmax(scale * q k^T, masked) v over each request's pages; lse in base 2.", run_fields, run_candidates,
    ops::attention::batch_prefill_cases, {}, &plan_type);

}  // namespace attention

BatchPrefillWithPagedKVCacheWrapper::BatchPrefillWithPagedKVCacheWrapper(BatchPrefillInit a)
    : self_(attention::kClass, attention::kModule, attention::plan_type) {
  a.self = &self_;
  op::call(attention::prefill_init_op, a);
}
BatchPrefillWithPagedKVCacheWrapper::BatchPrefillWithPagedKVCacheWrapper(const TensorView& workspace, const std::string& kv_layout)
    : BatchPrefillWithPagedKVCacheWrapper(BatchPrefillInit{.float_workspace_buffer = workspace, .kv_layout = kv_layout}) {}
void BatchPrefillWithPagedKVCacheWrapper::plan(BatchPrefillPlan a) {
  a.self = &self_;
  op::call(attention::prefill_plan_op, a);
}
AttentionResult BatchPrefillWithPagedKVCacheWrapper::run(BatchPrefillRun a) {
  a.self = &self_;
  return op::call(attention::prefill_run_op, a);
}

}  // namespace flashinfer
