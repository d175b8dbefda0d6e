// SPDX-License-Identifier: Apache-2.0
// Two batches over pages, prefills and decodes, in one call.
#include <array>

#include "flashinfer/core/transfer.h"
#include "flashinfer/ops/attention/cuda/together.h"
#include "flashinfer/ops/pod/ops.h"

namespace flashinfer {
namespace pod {
namespace {
using namespace attention;

constexpr const char* kClass = "BatchPODWithPagedKVCacheWrapper";
constexpr const char *kInit = "BatchPODWithPagedKVCacheWrapper.__init__",
                     *kPlan = "BatchPODWithPagedKVCacheWrapper.plan", *kRun = "BatchPODWithPagedKVCacheWrapper.run";

void launch_init(const BatchPodInit& a) {
  check_workspace(a.float_workspace_buffer);
  PlanList l;
  l.kv_layout = a.kv_layout;
  a.self->set(std::move(l));
}
void launch_plan(const BatchPodPlan& a) {
  PlanList l;
  static_cast<Plan&>(l) = next_plan(a.self);
  l.num_qo_heads = a.num_qo_heads, l.num_kv_heads = a.num_kv_heads;
  l.head_dim_qk = l.head_dim_vo = a.head_dim, l.page_size = a.page_size;
  l.q_data_type = a.q_data_type, l.o_data_type = ops::default_output(a.q_data_type);
  l.kv_data_type = type_without_scales(a.kv_data_type.value_or(a.data_type.value_or(a.q_data_type)));
  set_options(l, {.window_left = a.window_left,
                  .pos_encoding_mode = a.pos_encoding_mode,
                  .sm_scale = a.sm_scale,
                  .logits_soft_cap = {},
                  .rope_scale = a.rope_scale,
                  .rope_theta = a.rope_theta});
  Plan p = l, d = l;
  set_page_table(p, {"kv_indptr_p", "kv_indices_p", "last_page_len_p"}, a.kv_indptr_p, a.kv_indices_p,
                 a.last_page_len_p);
  set_page_table(d, {"kv_indptr_d", "kv_indices_d", "last_page_len_d"}, a.kv_indptr_d, a.kv_indices_d,
                 a.last_page_len_d);
  set_rows(p, "qo_indptr_p", a.qo_indptr_p);
  set_rows(d, "qo_indptr_d", a.qo_indptr_d);
  set_work(p);
  set_work(d);
  l.plans = {std::move(p), std::move(d)};
  join(l);
  a.self->set(std::move(l));
  a.self->planned = true;
}

/// The prefill half's plan with the mask that run() is given.
Plan prefill_half(const BatchPodRun& a, const Plans& plans) {
  Plan p = plans[0];
  p.causal = a.causal_p;
  const Tensor mask = a.custom_mask_p ? host_readable(*a.custom_mask_p) : Tensor();
  const Tensor packed = a.packed_custom_mask_p ? host_readable(*a.packed_custom_mask_p) : Tensor();
  const auto view = [](const Tensor& t) { return t.defined() ? std::optional<TensorView>(t.view()) : std::nullopt; };
  set_mask(p, view(mask), view(packed));
  set_work(p);
  return p;
}
Call call_of(const BatchPodRun& a, const TensorView& q, const op::PagedKv& kv, const std::optional<TensorView>& out,
             const std::optional<TensorView>& lse) {
  Call c;
  c.q = q, c.kv = cache_planes(kv, a.self->as<PlanList>().kv_layout);
  if (out) c.out = *out;
  c.lse = lse;
  c.q_scale = a.q_scale.value_or(1.0), c.k_scale = a.k_scale.value_or(1.0), c.v_scale = a.v_scale.value_or(1.0);
  return c;
}
void check_half(const Plan& p, const TensorView& q, const op::PagedKv& cache, const char* k, const char* v,
                const char* indices) {
  const Planes kv = cache_planes(cache, p.kv_layout);
  FI_CHECK(kv.k.dtype != DType::kF4E2M1x2, NotImplementedError,
           "an NVFP4 cache is not supported: run() takes no kv_cache_sf");
  check_run(p, q, kv, k, v);
  check_pool(p, kv, indices);
}
void validate_run(const BatchPodRun& a) {
  const Plans plans(a.self);
  check_half(plans[0], a.q_p, a.paged_kv_cache_p, "paged_kv_cache_p (K)", "paged_kv_cache_p (V)", "kv_indices_p");
  check_half(plans[1], a.q_d, a.paged_kv_cache_d, "paged_kv_cache_d (K)", "paged_kv_cache_d (V)", "kv_indices_d");
  if (a.custom_mask_p || a.packed_custom_mask_p) prefill_half(a, plans);
}
template <int kHalf>
op::Shape out_shape(const BatchPodRun& a) {
  const Plans plans(a.self);
  return rows_heads_dim(plans[kHalf].nnz_qo, plans[kHalf].num_qo_heads, plans[kHalf].head_dim_vo);
}
template <int kHalf>
op::Shape lse_shape(const BatchPodRun& a) {
  const Plans plans(a.self);
  return rows_heads(plans[kHalf].nnz_qo, plans[kHalf].num_qo_heads);
}
DType out_dtype(const BatchPodRun& a) { return ops::default_output(a.q_p.dtype()); }
op::Cost cost(const BatchPodRun& a) {
  const Plans plans(a.self);
  const op::Cost p = cost_of(prefill_half(a, plans), a.q_p), d = cost_of(plans[1], a.q_d);
  return {p.bytes + d.bytes, p.flops + d.flops};
}
Call call_p(const BatchPodRun& a) { return call_of(a, a.q_p, a.paged_kv_cache_p, a.out_p, a.lse_p); }
Call call_d(const BatchPodRun& a) { return call_of(a, a.q_d, a.paged_kv_cache_d, a.out_d, a.lse_d); }
std::array<PlannedCall, 2> both(const BatchPodRun& a) {
  const auto plans = std::make_shared<const Plans>(a.self);
  return {PlannedCall{owned(prefill_half(a, *plans)), call_p(a)}, PlannedCall{PlanRef(plans, &(*plans)[1]), call_d(a)}};
}
op::Prepared prepare_both(const BatchPodRun& a) {
  Launches launches;
  for (const auto& [plan, call] : both(a)) launches.add([&] { return prepare_cpu(plan, call); });
  return std::move(launches).prepared();
}
op::Prepared prepare_both_cuda(const BatchPodRun& a) { return prepare_together_cuda(both(a)); }
void reference(const BatchPodRun& a) {
  const Plans plans(a.self);
  run_reference(prefill_half(a, plans), call_p(a));
  run_reference(plans[1], call_d(a));
}

constexpr op::Field init_fields[] = {
    op::self<&BatchPodInit::self>(),
    op::scratch<&BatchPodInit::float_workspace_buffer>("float_workspace_buffer", nullptr),
    op::attr<&BatchPodInit::kv_layout>("kv_layout", op::choices("NHD|HND", ErrorKind::kKeyError)),
};
constexpr op::Field plan_fields[] = {
    op::self<&BatchPodPlan::self>(),
    op::in<&BatchPodPlan::qo_indptr_p>("qo_indptr_p", "p+1", op::indices, op::any_layout),
    op::in<&BatchPodPlan::kv_indptr_p>("kv_indptr_p", "p+1", op::indices, op::any_layout),
    op::in<&BatchPodPlan::kv_indices_p>("kv_indices_p", "n", op::indices, op::any_layout),
    op::in<&BatchPodPlan::last_page_len_p>("last_page_len_p", "p", op::indices, op::any_layout),
    op::in<&BatchPodPlan::qo_indptr_d>("qo_indptr_d", "d+1", op::indices, op::any_layout),
    op::in<&BatchPodPlan::kv_indptr_d>("kv_indptr_d", "d+1", op::indices, op::any_layout),
    op::in<&BatchPodPlan::kv_indices_d>("kv_indices_d", "m", op::indices, op::any_layout),
    op::in<&BatchPodPlan::last_page_len_d>("last_page_len_d", "d", op::indices, op::any_layout),
    op::attr<&BatchPodPlan::num_qo_heads>("num_qo_heads", op::required),
    op::attr<&BatchPodPlan::num_kv_heads>("num_kv_heads", op::required),
    op::attr<&BatchPodPlan::head_dim>("head_dim", op::required),
    op::attr<&BatchPodPlan::page_size>("page_size", op::required),
    op::attr<&BatchPodPlan::pos_encoding_mode>("pos_encoding_mode", op::choices(kModes, ErrorKind::kKeyError)),
    op::attr<&BatchPodPlan::window_left>("window_left"),
    op::attr<&BatchPodPlan::q_data_type>("q_data_type", op::literal("'float16'")),
    op::attr<&BatchPodPlan::kv_data_type>("kv_data_type"),
    op::attr<&BatchPodPlan::data_type>("data_type"),
    op::attr<&BatchPodPlan::sm_scale>("sm_scale"),
    op::attr<&BatchPodPlan::rope_scale>("rope_scale"),
    op::attr<&BatchPodPlan::rope_theta>("rope_theta"),
    op::attr<&BatchPodPlan::non_blocking>("non_blocking"),
};
constexpr op::Field run_fields[] = {
    op::self<&BatchPodRun::self>(),
    op::in<&BatchPodRun::q_p>("q_p", "n h d", ops::kQueryTypes),
    op::paged<&BatchPodRun::paged_kv_cache_p>("paged_kv_cache_p", nullptr, kCacheTypes),
    op::in<&BatchPodRun::q_d>("q_d", "b h d", op::same_as("q_p")),
    op::paged<&BatchPodRun::paged_kv_cache_d>("paged_kv_cache_d", nullptr, kCacheTypes),
    op::in<&BatchPodRun::custom_mask_p>("custom_mask_p", nullptr, kMaskTypes, op::contiguous),
    op::in<&BatchPodRun::packed_custom_mask_p>("packed_custom_mask_p", nullptr, DType::kU8, op::contiguous),
    op::attr<&BatchPodRun::causal_p>("causal_p"),
    op::attr<&BatchPodRun::q_scale>("q_scale"),
    op::attr<&BatchPodRun::k_scale>("k_scale"),
    op::attr<&BatchPodRun::v_scale>("v_scale"),
    op::attr<&BatchPodRun::return_lse>("return_lse"),
    op::attr<&BatchPodRun::use_fp16_qk_reduction>("use_fp16_qk_reduction"),
    op::attr<&BatchPodRun::enable_pdl>("enable_pdl"),
    op::result<&BatchPodRun::out_p>("out_p", nullptr, op::floats, op::shape<out_shape<0>>, op::dtype<out_dtype>),
    op::result<&BatchPodRun::lse_p>("lse_p", nullptr, DType::kF32, op::shape<lse_shape<0>>,
                                    op::when<&BatchPodRun::return_lse>, op::tuple_with_previous),
    op::result<&BatchPodRun::out_d>("out_d", nullptr, op::floats, op::shape<out_shape<1>>, op::dtype<out_dtype>),
    op::result<&BatchPodRun::lse_d>("lse_d", nullptr, DType::kF32, op::shape<lse_shape<1>>,
                                    op::when<&BatchPodRun::return_lse>, op::tuple_with_previous),
};
constexpr op::Candidate init_candidates[] = {op::host<launch_init>()};
constexpr op::Candidate plan_candidates[] = {op::host_arrays<launch_plan>()};
constexpr op::Candidate run_candidates[] = {op::cuda<prepare_both_cuda>(), op::cpu<prepare_both>(),
                                            op::reference<reference>()};
}  // namespace

constinit const op::Op batch_pod_init_op =
    op::define<BatchPodInit>(kInit, kModule, "A batch of prefills and a batch of decodes in one call.", init_fields,
                             init_candidates, nullptr, {}, &plan_list_type);
constinit const op::Op batch_pod_plan_op =
    op::define<BatchPodPlan>(kPlan, kModule, "Takes the page tables of both halves.", plan_fields, plan_candidates,
                             nullptr, {}, &plan_list_type);
constinit const op::Op batch_pod_run_op =
    op::define<BatchPodRun, validate_run, cost>(kRun, kModule, "Batch prefill beside batch decode.", run_fields,
                                                run_candidates, ops::pod::batch_pod_cases, {}, &plan_list_type);
}  // namespace pod

BatchPODWithPagedKVCacheWrapper::BatchPODWithPagedKVCacheWrapper(BatchPodInit a)
    : self_(pod::kClass, pod::kModule, attention::plan_list_type) {
  a.self = &self_;
  op::call(pod::batch_pod_init_op, a);
}
BatchPODWithPagedKVCacheWrapper::BatchPODWithPagedKVCacheWrapper(const TensorView& workspace,
                                                                 const std::string& kv_layout)
    : BatchPODWithPagedKVCacheWrapper(BatchPodInit{.float_workspace_buffer = workspace, .kv_layout = kv_layout}) {}
void BatchPODWithPagedKVCacheWrapper::plan(BatchPodPlan a) {
  a.self = &self_;
  op::call(pod::batch_pod_plan_op, a);
}
op::Results BatchPODWithPagedKVCacheWrapper::run(BatchPodRun a) {
  a.self = &self_;
  return op::call(pod::batch_pod_run_op, a);
}

}  // namespace flashinfer
