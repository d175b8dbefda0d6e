// SPDX-License-Identifier: Apache-2.0
// One prefill request with K and V in a row, beside a batch of decodes over pages.
#include <array>

#include "flashinfer/ops/attention/cuda/together.h"
#include "flashinfer/ops/pod/ops.h"

namespace flashinfer {
namespace pod {
namespace {
using namespace attention;

constexpr const char* kClass = "PODWithPagedKVCacheWrapper";
constexpr const char *kInit = "PODWithPagedKVCacheWrapper.__init__", *kPlan = "PODWithPagedKVCacheWrapper.plan",
                     *kRun = "PODWithPagedKVCacheWrapper.run";

void launch_init(const PodInit& a) {
  check_workspace(a.float_workspace_buffer);
  Plan p;
  p.kv_layout = a.kv_layout;
  set_variant(p, a);
  set_graph(p, a.use_cuda_graph,
            std::array{GraphArgument{"paged_kv_indptr_buffer", a.paged_kv_indptr_buffer, &GraphBuffers::kv_indptr},
                       GraphArgument{"paged_kv_indices_buffer", a.paged_kv_indices_buffer, &GraphBuffers::kv_indices},
                       GraphArgument{"paged_kv_last_page_len_buffer", a.paged_kv_last_page_len_buffer,
                                     &GraphBuffers::last_page_len}});
  a.self->set(std::move(p));
}
void launch_plan(const PodPlan& a) {
  Plan p = next_plan(a.self);
  p.num_qo_heads = a.num_qo_heads, p.num_kv_heads = a.num_kv_heads;
  p.head_dim_qk = p.head_dim_vo = a.head_dim, p.page_size = a.page_size;
  p.q_data_type = a.q_data_type, p.o_data_type = ops::default_output(a.q_data_type);
  p.kv_data_type = type_without_scales(a.kv_data_type.value_or(a.data_type.value_or(a.q_data_type)));
  set_options(p, {.window_left = a.window_left,
                  .pos_encoding_mode = a.pos_encoding_mode,
                  .sm_scale = a.sm_scale,
                  .logits_soft_cap = {},
                  .rope_scale = a.rope_scale,
                  .rope_theta = a.rope_theta});
  set_page_table(p, {"indptr", "indices", "last_page_len"}, a.indptr, a.indices, a.last_page_len);
  p.nnz_qo = p.batch_size;
  p.qo_indptr = Tensor::empty({p.batch_size + 1}, DType::kI32);
  for (int64_t b = 0; b <= p.batch_size; ++b) p.qo_indptr.data_as<int32_t>()[b] = static_cast<int32_t>(b);
  fill_graph_buffers(p, &a.last_page_len);
  set_work(p);
  a.self->set(std::move(p));
  a.self->planned = true;
}

SinglePrefill prefill_half(const PodRun& a) {
  SinglePrefill s{.q = a.q_p, .k = a.k_p, .v = a.v_p};
  s.custom_mask = a.custom_mask_p, s.packed_custom_mask = a.packed_custom_mask_p;
  s.causal = a.causal_p, s.kv_layout = a.kv_layout_p, s.pos_encoding_mode = a.pos_encoding_mode_p;
  s.sm_scale = a.sm_scale_p, s.window_left = a.window_left_p, s.rope_scale = a.rope_scale_p,
  s.rope_theta = a.rope_theta_p;
  s.return_lse = a.return_lse_p, s.out = a.out_p, s.lse = a.lse_p;
  return s;
}
/// Its plan, with the custom variant of both halves.
Plan prefill_plan(const PodRun& a) {
  const SinglePrefill s = prefill_half(a);
  Plan p = single_plan(s);
  p.jit_args = plan_of(a.self).jit_args;
  if (p.jit_args.is_none()) return p;
  check_variant(p);
  set_work(p);
  return p;
}
Call decode_half(const PodRun& a) {
  Call c;
  c.args = a.args;
  c.q = a.q_d, c.kv = cache_planes(a.paged_kv_cache_d, a.self->as<Plan>().kv_layout);
  if (a.out_d) c.out = *a.out_d;
  c.lse = a.lse_d;
  c.q_scale = a.q_scale.value_or(1.0), c.k_scale = a.k_scale.value_or(1.0), c.v_scale = a.v_scale.value_or(1.0);
  return c;
}
/// An argument of run() that repeats the plan must say the same.
template <class T>
void same_as_plan(const char* name, bool given, const T& now, const T& then) {
  FI_CHECK(!given || now == then, ValueError, name, " is ", now, ", but plan() was given ", then);
}
void validate_run(const PodRun& a) {
  const Plan& p = plan_of(a.self);
  throw_if_given("custom_mask_d", a.custom_mask_d.has_value(), "one row a request sees all of its keys");
  throw_if_given("packed_custom_mask_d", a.packed_custom_mask_d.has_value(), "one row a request sees all of its keys");
  same_as_plan("kv_layout_d", a.kv_layout_d != "NHD", a.kv_layout_d, p.kv_layout);
  same_as_plan("pos_encoding_mode_d", a.pos_encoding_mode_d != "NONE", a.pos_encoding_mode_d, p.pos_encoding_mode);
  same_as_plan("sm_scale_d", a.sm_scale_d.has_value(), a.sm_scale_d.value_or(0), p.sm_scale);
  same_as_plan("window_left_d", a.window_left_d >= 0, a.window_left_d, p.window_left);
  same_as_plan("rope_scale_d", a.rope_scale_d.has_value(), a.rope_scale_d.value_or(0), p.rope_scale);
  same_as_plan("rope_theta_d", a.rope_theta_d.has_value(), a.rope_theta_d.value_or(0), p.rope_theta);
  FI_CHECK(
      cache_type(a.paged_kv_cache_d.first.dtype()) != DType::kF4E2M1x2 && cache_type(a.k_p.dtype()) != DType::kF4E2M1x2,
      NotImplementedError, "an NVFP4 cache is not supported: run() takes no kv_cache_sf");
  check_single(prefill_half(a));
  prefill_plan(a);
  const Planes kv = cache_planes(a.paged_kv_cache_d, p.kv_layout);
  check_run(p, a.q_d, kv, "paged_kv_cache_d (K)", "paged_kv_cache_d (V)");
  check_pool(p, kv, "indices");
}
op::Shape out_p_shape(const PodRun& a) { return rows_heads_dim(a.q_p.size(0), a.q_p.size(1), a.v_p.size(2)); }
op::Shape lse_p_shape(const PodRun& a) { return rows_heads(a.q_p.size(0), a.q_p.size(1)); }
op::Shape out_d_shape(const PodRun& a) {
  const Plan& p = plan_of(a.self);
  return rows_heads_dim(p.nnz_qo, p.num_qo_heads, p.head_dim_vo);
}
op::Shape lse_d_shape(const PodRun& a) {
  const Plan& p = plan_of(a.self);
  return rows_heads(p.nnz_qo, p.num_qo_heads);
}
DType out_p_dtype(const PodRun& a) { return ops::default_output(a.q_p.dtype()); }
DType out_d_dtype(const PodRun& a) { return plan_of(a.self).o_data_type; }
op::Cost cost(const PodRun& a) {
  const op::Cost d = cost_of(plan_of(a.self), a.q_d), p = cost_of(prefill_plan(a), a.q_p);
  return {d.bytes + p.bytes, d.flops + p.flops};
}
std::array<PlannedCall, 2> both(const PodRun& a) {
  Call c = single_call(prefill_half(a));
  c.args = a.args;
  return {PlannedCall{owned(prefill_plan(a)), c}, PlannedCall{planned(a), decode_half(a)}};
}
op::Prepared prepare_both(const PodRun& a) {
  Launches launches;
  for (const auto& [plan, call] : both(a)) launches.add([&] { return prepare_cpu(plan, call); });
  return std::move(launches).prepared();
}
op::Prepared prepare_both_cuda(const PodRun& a) { return prepare_together_cuda(both(a)); }
void reference(const PodRun& a) {
  Call c = single_call(prefill_half(a));
  c.args = a.args;
  run_reference(prefill_plan(a), c);
  run_reference(plan_of(a.self), decode_half(a));
}

constexpr op::Field init_fields[] = {
    op::self<&PodInit::self>(),
    op::scratch<&PodInit::float_workspace_buffer>("float_workspace_buffer", nullptr),
    op::attr<&PodInit::kv_layout>("kv_layout", op::choices("NHD|HND", ErrorKind::kKeyError)),
    op::attr<&PodInit::use_cuda_graph>("use_cuda_graph"),
    op::scratch<&PodInit::paged_kv_indptr_buffer>("paged_kv_indptr_buffer", nullptr),
    op::scratch<&PodInit::paged_kv_indices_buffer>("paged_kv_indices_buffer", nullptr),
    op::scratch<&PodInit::paged_kv_last_page_len_buffer>("paged_kv_last_page_len_buffer", nullptr),
    op::attr<&PodInit::jit_args>("jit_args"),
};
constexpr op::Field plan_fields[] = {
    op::self<&PodPlan::self>(),
    op::in<&PodPlan::indptr>("indptr", "b+1", op::indices, op::any_layout),
    op::in<&PodPlan::indices>("indices", "n", op::indices, op::any_layout),
    op::in<&PodPlan::last_page_len>("last_page_len", "b", op::indices, op::any_layout),
    op::attr<&PodPlan::num_qo_heads>("num_qo_heads", op::required),
    op::attr<&PodPlan::num_kv_heads>("num_kv_heads", op::required),
    op::attr<&PodPlan::head_dim>("head_dim", op::required),
    op::attr<&PodPlan::page_size>("page_size", op::required),
    op::attr<&PodPlan::pos_encoding_mode>("pos_encoding_mode", op::choices(kModes, ErrorKind::kKeyError)),
    op::attr<&PodPlan::window_left>("window_left"),
    op::attr<&PodPlan::q_data_type>("q_data_type", op::literal("'float16'")),
    op::attr<&PodPlan::kv_data_type>("kv_data_type"),
    op::attr<&PodPlan::data_type>("data_type"),
    op::attr<&PodPlan::sm_scale>("sm_scale"),
    op::attr<&PodPlan::rope_scale>("rope_scale"),
    op::attr<&PodPlan::rope_theta>("rope_theta"),
    op::attr<&PodPlan::non_blocking>("non_blocking"),
};
constexpr op::Field run_fields[] = {
    op::self<&PodRun::self>(),
    op::in<&PodRun::q_p>("q_p", "n h d", ops::kQueryTypes),
    op::in<&PodRun::k_p>("k_p", "x y dk", op::floats | op::fp8),
    op::in<&PodRun::v_p>("v_p", "x y dv", op::same_as("k_p")),
    op::in<&PodRun::q_d>("q_d", "b hd dd", ops::kQueryTypes),
    op::paged<&PodRun::paged_kv_cache_d>("paged_kv_cache_d", nullptr, kCacheTypes),
    op::in<&PodRun::custom_mask_p>("custom_mask_p", nullptr, kMaskTypes, op::contiguous),
    op::in<&PodRun::packed_custom_mask_p>("packed_custom_mask_p", nullptr, DType::kU8, op::contiguous),
    op::attr<&PodRun::causal_p>("causal_p"),
    op::attr<&PodRun::kv_layout_p>("kv_layout_p", op::choices("NHD|HND", ErrorKind::kKeyError)),
    op::attr<&PodRun::pos_encoding_mode_p>("pos_encoding_mode_p", op::choices(kModes, ErrorKind::kKeyError)),
    op::attr<&PodRun::sm_scale_p>("sm_scale_p"),
    op::attr<&PodRun::window_left_p>("window_left_p"),
    op::attr<&PodRun::rope_scale_p>("rope_scale_p"),
    op::attr<&PodRun::rope_theta_p>("rope_theta_p"),
    op::attr<&PodRun::return_lse_p>("return_lse_p"),
    op::in<&PodRun::custom_mask_d>("custom_mask_d", nullptr),
    op::in<&PodRun::packed_custom_mask_d>("packed_custom_mask_d", nullptr),
    op::attr<&PodRun::causal_d>("causal_d"),
    op::attr<&PodRun::kv_layout_d>("kv_layout_d", op::choices("NHD|HND", ErrorKind::kKeyError)),
    op::attr<&PodRun::pos_encoding_mode_d>("pos_encoding_mode_d", op::choices(kModes, ErrorKind::kKeyError)),
    op::attr<&PodRun::sm_scale_d>("sm_scale_d"),
    op::attr<&PodRun::window_left_d>("window_left_d"),
    op::attr<&PodRun::rope_scale_d>("rope_scale_d"),
    op::attr<&PodRun::rope_theta_d>("rope_theta_d"),
    op::attr<&PodRun::q_scale>("q_scale"),
    op::attr<&PodRun::k_scale>("k_scale"),
    op::attr<&PodRun::v_scale>("v_scale"),
    op::attr<&PodRun::return_lse_d>("return_lse_d"),
    op::attr<&PodRun::use_fp16_qk_reduction>("use_fp16_qk_reduction"),
    op::attr<&PodRun::enable_pdl>("enable_pdl"),
    op::attr<&PodRun::args>("args", op::varargs),
    op::result<&PodRun::out_p>("out_p", nullptr, op::floats, op::shape<out_p_shape>, op::dtype<out_p_dtype>),
    op::result<&PodRun::lse_p>("lse_p", nullptr, DType::kF32, op::shape<lse_p_shape>, op::when<&PodRun::return_lse_p>,
                               op::tuple_with_previous),
    op::result<&PodRun::out_d>("out_d", nullptr, op::floats, op::shape<out_d_shape>, op::dtype<out_d_dtype>),
    op::result<&PodRun::lse_d>("lse_d", nullptr, DType::kF32, op::shape<lse_d_shape>, op::when<&PodRun::return_lse_d>,
                               op::tuple_with_previous),
};
constexpr op::Candidate init_candidates[] = {op::host<launch_init>()};
constexpr op::Candidate plan_candidates[] = {op::host_arrays<launch_plan>()};
constexpr op::Candidate run_candidates[] = {op::cuda<prepare_both_cuda>(), op::cpu<prepare_both>(),
                                            op::reference<reference>()};
}  // namespace

constinit const op::Op pod_init_op =
    op::define<PodInit>(kInit, kModule, "One prefill and a batch of decodes in one call.", init_fields, init_candidates,
                        nullptr, {}, &plan_type);
constinit const op::Op pod_plan_op = op::define<PodPlan>(kPlan, kModule, "Takes the page table of the decode half.",
                                                         plan_fields, plan_candidates, nullptr, {}, &plan_type);
constinit const op::Op pod_run_op =
    op::define<PodRun, validate_run, cost>(kRun, kModule, "single_prefill_with_kv_cache beside batch decode.",
                                           run_fields, run_candidates, ops::pod::pod_cases, {}, &plan_type);
constinit const op::Op pod_reset_op =
    reset_op("PODWithPagedKVCacheWrapper.reset_workspace_buffer", kModule, &plan_type);
namespace {
constexpr const op::Op* kOps[] = {&pod_init_op,       &pod_plan_op,       &pod_run_op,      &pod_reset_op,
                                  &batch_pod_init_op, &batch_pod_plan_op, &batch_pod_run_op};
}  // namespace
}  // namespace pod

PODWithPagedKVCacheWrapper::PODWithPagedKVCacheWrapper(PodInit a)
    : self_(pod::kClass, pod::kModule, attention::plan_type) {
  a.self = &self_;
  op::call(pod::pod_init_op, a);
}
PODWithPagedKVCacheWrapper::PODWithPagedKVCacheWrapper(const TensorView& workspace, const std::string& kv_layout)
    : PODWithPagedKVCacheWrapper(PodInit{.float_workspace_buffer = workspace, .kv_layout = kv_layout}) {}
void PODWithPagedKVCacheWrapper::plan(PodPlan a) {
  a.self = &self_;
  op::call(pod::pod_plan_op, a);
}
op::Results PODWithPagedKVCacheWrapper::run(PodRun a) {
  a.self = &self_;
  return op::call(pod::pod_run_op, a);
}
void PODWithPagedKVCacheWrapper::reset_workspace_buffer(const TensorView& float_workspace,
                                                        const TensorView& int_workspace) {
  op::call(pod::pod_reset_op, attention::ResetWorkspace{&self_, float_workspace, int_workspace});
}

namespace ops::pod {
extern const std::span<const op::Op* const> all;
constinit const std::span<const op::Op* const> all = flashinfer::pod::kOps;
}  // namespace ops::pod

}  // namespace flashinfer
