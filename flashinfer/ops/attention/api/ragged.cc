// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/attention/api/fields.h"
#include "flashinfer/ops/attention/cases.h"

namespace flashinfer {
namespace attention {
namespace {

constexpr const char* kClass = "BatchPrefillWithRaggedKVCacheWrapper";
constexpr const char* kInit = "BatchPrefillWithRaggedKVCacheWrapper.__init__";
constexpr const char* kPlan = "BatchPrefillWithRaggedKVCacheWrapper.plan";
constexpr const char* kRun = "BatchPrefillWithRaggedKVCacheWrapper.run";
constexpr const char* kForward = "BatchPrefillWithRaggedKVCacheWrapper.forward";
constexpr const char* kModule = "flashinfer.prefill";

void launch_init(const BatchRaggedInit& a) {
  check_workspace(a.float_workspace_buffer);
  Plan p;
  p.kv_layout = a.kv_layout;
  p.paged = false;
  set_variant(p, a);
  const GraphArgument buffers[] = {{"qo_indptr_buf", a.qo_indptr_buf, &GraphBuffers::qo_indptr},
                                   {"kv_indptr_buf", a.kv_indptr_buf, &GraphBuffers::kv_indptr},
                                   {"custom_mask_buf", a.custom_mask_buf, &GraphBuffers::mask, false},
                                   {"mask_indptr_buf", a.mask_indptr_buf, &GraphBuffers::mask_indptr, false}};
  set_graph(p, a.use_cuda_graph, buffers);
  a.self->set(std::move(p));
}

void validate_plan(const BatchRaggedPlan& a) { check_prefill_plan(a); }
/// `given` must name the rows of `rows`, in rows or in elements.
void check_same_rows(const char* name, const std::optional<TensorView>& given, const char* other, const Tensor& rows,
                     int64_t row) {
  if (!given) return;
  const int64_t n = rows.size(0);
  FI_CHECK(given->rank() == 1 && given->size(0) >= n, ValueError, name, " is ", to_string(*given), ", but must be [", n,
           "] (requests, plus 1)");
  const int64_t unit = op::index_at(*given, n - 1) == rows.data_as<int32_t>()[n - 1] ? 1 : row;
  for (int64_t b = 0; b < n; ++b)
    FI_CHECK(op::index_at(*given, b) == rows.data_as<int32_t>()[b] * unit, ValueError, name, "[", b, "] is ",
             op::index_at(*given, b), ", but must be row ", rows.data_as<int32_t>()[b], " of ", unit,
             " elements, as in ", other);
}
void launch_plan(const BatchRaggedPlan& a) {
  Plan p = prefill_plan(a);
  p.batch_size = a.kv_indptr.size(0) - 1;
  const Tensor in_rows = offsets_in_rows("kv_indptr", a.kv_indptr, a.seq_lens, p.num_kv_heads * p.head_dim_qk);
  const TensorView kv_indptr = in_rows.defined() ? in_rows.view() : a.kv_indptr;
  p.nnz_kv = op::check_indptr("kv_indptr", kv_indptr);
  p.kv_indptr = to_int32("kv_indptr", kv_indptr, p.batch_size + 1);
  p.kv_len = Tensor::empty({p.batch_size}, DType::kI32);
  const int32_t* first = p.kv_indptr.data_as<int32_t>();
  for (int64_t b = 0; b < p.batch_size; ++b) p.kv_len.data_as<int32_t>()[b] = first[b + 1] - first[b];
  finish_prefill_plan(p, a);
  check_same_rows("v_indptr", a.v_indptr, "kv_indptr", p.kv_indptr, p.num_kv_heads * p.head_dim_vo);
  check_same_rows("o_indptr", a.o_indptr, "qo_indptr", p.qo_indptr, p.num_qo_heads * p.head_dim_vo);
  a.self->set(std::move(p));
  a.self->planned = true;
}

/// K, V and their scales as planes.
template <class Run>
Call call_of_run(const Run& a) {
  const Plan& p = a.self->template as<Plan>();
  const Planes kv = token_planes(a.k, a.v, p.kv_layout);
  if constexpr (std::is_same_v<Run, BatchRaggedForward>) {
    Call c;
    c.q = a.q, c.kv = kv;
    if (a.out) c.out = *a.out;
    c.lse = a.lse;
    return c;
  } else {
    Call c = set_lse_format(call_of(p, a, kv), a);
    c.kv_sf = scale_planes(a.kv_cache_sf, p.kv_layout, kv, false);
    return c;
  }
}
template <class Run>
void check_tensors(const Plan& p, const Run& a) {
  const Planes kv = token_planes(a.k, a.v, p.kv_layout);
  check_run(p, a.q, kv, "k", "v");
  FI_CHECK(kv.v.dtype == kv.k.dtype, ValueError, "v.dtype is ", name(kv.v.dtype), ", but k.dtype is ",
           name(kv.k.dtype));
  for (const auto& [plane, who] : {std::pair(&kv.k, "k"), std::pair(&kv.v, "v")})
    FI_CHECK(plane->page_size >= p.nnz_kv, ValueError, who, " has ", plane->page_size,
             " tokens, but kv_indptr[-1] of plan() is ", p.nnz_kv);
}
void validate_run(const BatchRaggedRun& a) {
  const Plan& p = plan_of(a.self);
  throw_if_given("o_scale", a.o_scale.has_value(), kNeedsGpu);
  check_tensors(p, a);
  scale_planes(a.kv_cache_sf, p.kv_layout, token_planes(a.k, a.v, p.kv_layout), false);
  check_lse(a);
  check_args(p, a);
}
void validate_forward(const BatchRaggedForward& a) {
  const Plan p = forward_plan(a);
  FI_CHECK(p.kv_data_type != DType::kF4E2M1x2, ValueError, "an NVFP4 cache needs kv_cache_sf, which only run() takes");
  check_tensors(p, a);
}
op::Cost cost(const BatchRaggedRun& a) { return cost_of(plan_of(a.self), a.q); }

template <class B>
constexpr std::array ragged_run_head = {op::self<&B::self>(), op::in<&B::q>("q", "n h d", ops::kQueryTypes),
                                        op::in<&B::k>("k", "x y dk", kCacheTypes),
                                        op::in<&B::v>("v", "x y dv", kCacheTypes)};
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
    op::in<&BatchRaggedPlan::prefix_len_ptr>("prefix_len_ptr", nullptr, kPrefixTypes, op::any_layout),
    op::in<&BatchRaggedPlan::token_pos_in_items_ptr>("token_pos_in_items_ptr", nullptr, kItemTypes),
    op::attr<&BatchRaggedPlan::token_pos_in_items_len>("token_pos_in_items_len"),
    op::in<&BatchRaggedPlan::max_item_len_ptr>("max_item_len_ptr", nullptr, kItemTypes),
    op::attr<&BatchRaggedPlan::fixed_split_size>("fixed_split_size"),
    op::attr<&BatchRaggedPlan::disable_split_kv>("disable_split_kv"),
    op::in<&BatchRaggedPlan::seq_lens>("seq_lens", nullptr, op::indices, op::any_layout),
    op::in<&BatchRaggedPlan::seq_lens_q>("seq_lens_q", nullptr, op::indices, op::any_layout),
    op::attr<&BatchRaggedPlan::max_token_per_sequence>("max_token_per_sequence"),
    op::attr<&BatchRaggedPlan::max_sequence_kv>("max_sequence_kv"),
    op::in<&BatchRaggedPlan::v_indptr>("v_indptr", nullptr, op::indices, op::any_layout),
    op::in<&BatchRaggedPlan::o_indptr>("o_indptr", nullptr, op::indices, op::any_layout),
    op::attr<&BatchRaggedPlan::uniform_q_len>("uniform_q_len"),
    op::in<&BatchRaggedPlan::alibi_slopes>("alibi_slopes", nullptr, DType::kF32, op::any_layout, op::internal),
};
constexpr auto run_fields = table_of(
    ragged_run_head<BatchRaggedRun>,
    std::array{op::attr<&BatchRaggedRun::args>("args", op::varargs), op::attr<&BatchRaggedRun::q_scale>("q_scale")},
    kv_scales<BatchRaggedRun>, std::array{op::attr<&BatchRaggedRun::o_scale>("o_scale")}, run_results<BatchRaggedRun>,
    lse_format<BatchRaggedRun>,
    std::array{op::paged<&BatchRaggedRun::kv_cache_sf>("kv_cache_sf", nullptr, kScaleTypes)});
constexpr auto forward_fields = table_of(ragged_run_head<BatchRaggedForward>, forward_masking<BatchRaggedForward>,
                                         forward_tail<BatchRaggedForward>);
constexpr op::Candidate init_candidates[] = {op::host<launch_init>()};
constexpr op::Candidate plan_candidates[] = {op::host_arrays<launch_plan>()};

}  // namespace

constinit const op::Op ragged_init_op = op::define<BatchRaggedInit>(
    kInit, kModule, "Batch prefill over ragged keys and values: the requests' rows one after another.", init_fields,
    init_candidates, nullptr, {}, &plan_type);
constinit const op::Op ragged_plan_op = op::define<BatchRaggedPlan, validate_plan>(
    kPlan, kModule, "Takes the lengths, the mask and everything that is the same for all layers of a step.",
    plan_fields, plan_candidates, nullptr, {}, &plan_type);
constinit const op::Op ragged_run_op = op::define<BatchRaggedRun, validate_run, cost>(
    kRun, kModule, "out = softmax(scale * q k^T, masked) v over each request's rows; lse in base 2.", run_fields,
    kRunCandidates<PlanRun<BatchRaggedRun, planned, call_of_run>>, ops::attention::batch_ragged_cases, {}, &plan_type);
constinit const op::Op ragged_forward_op = op::define<BatchRaggedForward, validate_forward>(
    kForward, kModule, "run() with what plan() was given replaced.", forward_fields,
    kRunCandidates<PlanRun<BatchRaggedForward, replanned, call_of_run>>, ops::attention::ragged_forward_cases, {},
    &plan_type);
constinit const op::Op ragged_reset_op =
    reset_op("BatchPrefillWithRaggedKVCacheWrapper.reset_workspace_buffer", kModule, &plan_type);
}  // namespace attention

BatchPrefillWithRaggedKVCacheWrapper::BatchPrefillWithRaggedKVCacheWrapper(BatchRaggedInit a)
    : self_(attention::kClass, attention::kModule, attention::plan_type) {
  a.self = &self_;
  op::call(attention::ragged_init_op, a);
}
BatchPrefillWithRaggedKVCacheWrapper::BatchPrefillWithRaggedKVCacheWrapper(const TensorView& workspace,
                                                                           const std::string& kv_layout)
    : BatchPrefillWithRaggedKVCacheWrapper(
          BatchRaggedInit{.float_workspace_buffer = workspace, .kv_layout = kv_layout}) {}
void BatchPrefillWithRaggedKVCacheWrapper::plan(BatchRaggedPlan a) {
  a.self = &self_;
  op::call(attention::ragged_plan_op, a);
}
AttentionResult BatchPrefillWithRaggedKVCacheWrapper::run(BatchRaggedRun a) {
  a.self = &self_;
  return op::call(attention::ragged_run_op, a);
}
AttentionResult BatchPrefillWithRaggedKVCacheWrapper::forward(BatchRaggedForward a) {
  a.self = &self_;
  return op::call(attention::ragged_forward_op, a);
}
void BatchPrefillWithRaggedKVCacheWrapper::reset_workspace_buffer(const TensorView& float_workspace,
                                                                  const TensorView& int_workspace) {
  op::call(attention::ragged_reset_op, attention::ResetWorkspace{&self_, float_workspace, int_workspace});
}

}  // namespace flashinfer
