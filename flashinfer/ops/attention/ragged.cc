// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/attention/cases.h"
#include "flashinfer/ops/attention/checks.h"

namespace flashinfer {
namespace attention {
namespace {

constexpr const char* kClass = "BatchPrefillWithRaggedKVCacheWrapper";
constexpr const char* kInit = "BatchPrefillWithRaggedKVCacheWrapper.__init__";
constexpr const char* kPlan = "BatchPrefillWithRaggedKVCacheWrapper.plan";
constexpr const char* kRun = "BatchPrefillWithRaggedKVCacheWrapper.run";
constexpr const char* kModule = "flashinfer.prefill";

void validate_init(const BatchRaggedInit& a) {
  check_prefill_init(kInit, a);
  not_served(kInit, "kv_indptr_buf", a.kv_indptr_buf.has_value(), kNeedsGraph);
}
void launch_init(const BatchRaggedInit& a) {
  Plan p;
  p.kv_layout = a.kv_layout;
  p.paged = false;
  a.self->set(std::move(p));
}

void validate_plan(const BatchRaggedPlan& a) {
  check_prefill_plan(kPlan, a);
  not_served(kPlan, "v_indptr", a.v_indptr.has_value(), kNeedsGpu);
  not_served(kPlan, "o_indptr", a.o_indptr.has_value(), kNeedsGpu);
}
void launch_plan(const BatchRaggedPlan& a) {
  Plan p = prefill_plan(kPlan, a);
  p.batch_size = a.kv_indptr.size(0) - 1;
  p.nnz_kv = op::check_indptr(kPlan, "kv_indptr", a.kv_indptr);
  p.kv_indptr = to_int32(kPlan, "kv_indptr", a.kv_indptr, p.batch_size + 1);
  p.kv_len = Tensor::empty({p.batch_size}, DType::kI32);
  const int32_t* first = p.kv_indptr.data_as<int32_t>();
  for (int64_t b = 0; b < p.batch_size; ++b) p.kv_len.data_as<int32_t>()[b] = first[b + 1] - first[b];
  finish_prefill_plan(p, kPlan, a);
  a.self->set(std::move(p));
  a.self->planned = true;
}

Call call_of_run(const BatchRaggedRun& a) { return prefill_call(a, token_planes(a.k, a.v, a.self->as<Plan>().kv_layout)); }
void validate_run(const BatchRaggedRun& a) {
  const Plan& p = plan_of(kRun, a.self);
  not_served(kRun, "o_scale", a.o_scale.has_value(), kNeedsGpu);
  not_served(kRun, "kv_cache_sf", !a.kv_cache_sf.is_none(), "NVFP4 caches are not available");
  const Planes kv = token_planes(a.k, a.v, p.kv_layout);
  check_run(kRun, p, a.q, kv, "k", "v");
  FI_CHECK(kv.v.dtype == kv.k.dtype, ValueError, kRun, ": v.dtype is ", name(kv.v.dtype), ", but k.dtype is ", name(kv.k.dtype));
  for (const auto& [plane, who] : {std::pair(&kv.k, "k"), std::pair(&kv.v, "v")})
    FI_CHECK(plane->page_size == p.nnz_kv, ValueError, kRun, ": ", who, " has ", plane->page_size,
             " tokens, but kv_indptr[-1] of plan() is ", p.nnz_kv);
  check_lse(kRun, a);
}
op::Shape out_shape(const BatchRaggedRun& a) { return prefill_out_shape(kRun, a); }
op::Shape lse_shape(const BatchRaggedRun& a) { return prefill_lse_shape(kRun, a); }
DType out_dtype(const BatchRaggedRun& a) { return plan_of(kRun, a.self).o_data_type; }
op::Cost cost(const BatchRaggedRun& a) { return cost_of(plan_of(kRun, a.self), a.q, a.k.item_size()); }

op::Refusal refuse_init(const BatchRaggedInit&) { return {}; }
op::Refusal refuse_plan(const BatchRaggedPlan& a) { return op::refuse_unless_cpu(ragged_plan_op, &a); }
op::Refusal refuse_run(const BatchRaggedRun& a) {
  if (op::Refusal r = op::refuse_unless_cpu(ragged_run_op, &a); !r.empty()) return r;
  return refuse(plan_of(kRun, a.self), call_of_run(a));
}
void launch_run(const BatchRaggedRun& a) { run(plan_of(kRun, a.self), call_of_run(a)); }
void reference(const BatchRaggedRun& a) { run_reference(plan_of(kRun, a.self), call_of_run(a)); }

constexpr op::Field init_fields[] = {
    op::self<&BatchRaggedInit::self>(),
    op::scratch<&BatchRaggedInit::float_workspace_buffer>("float_workspace_buffer", nullptr),
    op::attr<&BatchRaggedInit::kv_layout>("kv_layout", op::choices("NHD|HND", ErrorKind::kKeyError)),
    op::attr<&BatchRaggedInit::use_cuda_graph>("use_cuda_graph"),
    op::scratch<&BatchRaggedInit::qo_indptr_buf>("qo_indptr_buf", nullptr),
    op::scratch<&BatchRaggedInit::kv_indptr_buf>("kv_indptr_buf", nullptr),
    op::scratch<&BatchRaggedInit::custom_mask_buf>("custom_mask_buf", nullptr),
    op::scratch<&BatchRaggedInit::mask_indptr_buf>("mask_indptr_buf", nullptr),
    op::attr<&BatchRaggedInit::backend>("backend", op::backends(kBackends)),
    op::attr<&BatchRaggedInit::jit_args>("jit_args"),
    op::attr<&BatchRaggedInit::jit_kwargs>("jit_kwargs"),
    op::attr<&BatchRaggedInit::variant_owns_mask>("variant_owns_mask"),
};
constexpr op::Field plan_fields[] = {
    op::self<&BatchRaggedPlan::self>(),
    op::in<&BatchRaggedPlan::qo_indptr>("qo_indptr", "b+1", op::indices, op::any_layout),
    op::in<&BatchRaggedPlan::kv_indptr>("kv_indptr", "b+1", op::indices, op::any_layout),
    op::attr<&BatchRaggedPlan::num_qo_heads>("num_qo_heads", op::required),
    op::attr<&BatchRaggedPlan::num_kv_heads>("num_kv_heads", op::required),
    op::attr<&BatchRaggedPlan::head_dim_qk>("head_dim_qk", op::required),
    op::attr<&BatchRaggedPlan::head_dim_vo>("head_dim_vo"),
    op::in<&BatchRaggedPlan::custom_mask>("custom_mask", nullptr, kMaskTypes, op::contiguous),
    op::in<&BatchRaggedPlan::packed_custom_mask>("packed_custom_mask", nullptr, DType::kU8, op::contiguous),
    op::attr<&BatchRaggedPlan::causal>("causal"),
    op::attr<&BatchRaggedPlan::pos_encoding_mode>("pos_encoding_mode", op::choices(kModes, ErrorKind::kKeyError)),
    op::attr<&BatchRaggedPlan::use_fp16_qk_reduction>("use_fp16_qk_reduction"),
    op::attr<&BatchRaggedPlan::window_left>("window_left"),
    op::attr<&BatchRaggedPlan::logits_soft_cap>("logits_soft_cap"),
    op::attr<&BatchRaggedPlan::sm_scale>("sm_scale"),
    op::attr<&BatchRaggedPlan::rope_scale>("rope_scale"),
    op::attr<&BatchRaggedPlan::rope_theta>("rope_theta"),
    op::attr<&BatchRaggedPlan::q_data_type>("q_data_type", op::literal("'float16'")),
    op::attr<&BatchRaggedPlan::kv_data_type>("kv_data_type"),
    op::attr<&BatchRaggedPlan::o_data_type>("o_data_type"),
    op::attr<&BatchRaggedPlan::non_blocking>("non_blocking"),
    op::in<&BatchRaggedPlan::prefix_len_ptr>("prefix_len_ptr", nullptr),
    op::in<&BatchRaggedPlan::token_pos_in_items_ptr>("token_pos_in_items_ptr", nullptr),
    op::attr<&BatchRaggedPlan::token_pos_in_items_len>("token_pos_in_items_len"),
    op::in<&BatchRaggedPlan::max_item_len_ptr>("max_item_len_ptr", nullptr),
    op::attr<&BatchRaggedPlan::fixed_split_size>("fixed_split_size"),
    op::attr<&BatchRaggedPlan::disable_split_kv>("disable_split_kv"),
    op::in<&BatchRaggedPlan::seq_lens>("seq_lens", "b", op::indices, op::any_layout),
    op::in<&BatchRaggedPlan::seq_lens_q>("seq_lens_q", "b", op::indices, op::any_layout),
    op::attr<&BatchRaggedPlan::max_token_per_sequence>("max_token_per_sequence"),
    op::attr<&BatchRaggedPlan::max_sequence_kv>("max_sequence_kv"),
    op::in<&BatchRaggedPlan::v_indptr>("v_indptr", nullptr),
    op::in<&BatchRaggedPlan::o_indptr>("o_indptr", nullptr),
    op::attr<&BatchRaggedPlan::uniform_q_len>("uniform_q_len"),
};
constexpr op::Field run_fields[] = {
    op::self<&BatchRaggedRun::self>(),
    op::in<&BatchRaggedRun::q>("q", "n h d", op::floats),
    op::in<&BatchRaggedRun::k>("k", "x y dk", op::floats | op::fp8),
    op::in<&BatchRaggedRun::v>("v", "x y dv", op::floats | op::fp8),
    op::attr<&BatchRaggedRun::q_scale>("q_scale", op::keyword_only),
    op::attr<&BatchRaggedRun::k_scale>("k_scale"),
    op::attr<&BatchRaggedRun::v_scale>("v_scale"),
    op::attr<&BatchRaggedRun::o_scale>("o_scale"),
    op::out<&BatchRaggedRun::out>("out", nullptr, op::floats, op::shape<out_shape>, op::dtype<out_dtype>),
    op::out<&BatchRaggedRun::lse>("lse", nullptr, DType::kF32, op::shape<lse_shape>, op::when<&BatchRaggedRun::return_lse>),
    op::attr<&BatchRaggedRun::return_lse>("return_lse"),
    op::attr<&BatchRaggedRun::lse_base>("lse_base", op::choices("log2|ln")),
    op::attr<&BatchRaggedRun::lse_layout>("lse_layout", op::choices("NH|HN")),
    op::attr<&BatchRaggedRun::enable_pdl>("enable_pdl"),
    op::attr<&BatchRaggedRun::kv_cache_sf>("kv_cache_sf"),
};
constexpr op::Candidate init_candidates[] = {op::candidate<refuse_init, launch_init>("cpu")};
constexpr op::Candidate plan_candidates[] = {op::candidate<refuse_plan, launch_plan>("cpu")};
constexpr op::Candidate run_candidates[] = {op::candidate<refuse_run, launch_run>("cpu"), op::reference<reference>()};
}  // namespace

constinit const op::Op ragged_init_op = op::define<BatchRaggedInit, validate_init>(
    kInit, kModule, "Batch prefill over keys and values of all requests one after another.", init_fields, init_candidates, nullptr, {}, &plan_type);
constinit const op::Op ragged_plan_op = op::define<BatchRaggedPlan, validate_plan>(
    kPlan, kModule, "Takes the lengths, the mask and everything that is the same for all layers of a step.", plan_fields, plan_candidates,
    nullptr, {}, &plan_type);
constinit const op::Op ragged_run_op = op::define<BatchRaggedRun, validate_run, cost>(
    kRun, kModule, "out = softmax(scale * q k^T, masked) v over each request's rows; lse in base 2.", run_fields, run_candidates,
    ops::attention::batch_ragged_cases, {}, &plan_type);

}  // namespace attention

BatchPrefillWithRaggedKVCacheWrapper::BatchPrefillWithRaggedKVCacheWrapper(BatchRaggedInit a)
    : self_(attention::kClass, attention::kModule, attention::plan_type) {
  a.self = &self_;
  op::call(attention::ragged_init_op, a);
}
BatchPrefillWithRaggedKVCacheWrapper::BatchPrefillWithRaggedKVCacheWrapper(const TensorView& workspace, const std::string& kv_layout)
    : BatchPrefillWithRaggedKVCacheWrapper(BatchRaggedInit{.float_workspace_buffer = workspace, .kv_layout = kv_layout}) {}
void BatchPrefillWithRaggedKVCacheWrapper::plan(BatchRaggedPlan a) {
  a.self = &self_;
  op::call(attention::ragged_plan_op, a);
}
AttentionResult BatchPrefillWithRaggedKVCacheWrapper::run(BatchRaggedRun a) {
  a.self = &self_;
  return op::call(attention::ragged_run_op, a);
}

}  // namespace flashinfer
