// SPDX-License-Identifier: Apache-2.0
// The two older wrappers: one contiguous prefix that all requests share, pages for what each has alone.
#include "flashinfer/ops/attention/api/checks.h"
#include "flashinfer/ops/attention/api/methods.h"
#include "flashinfer/ops/cascade/cases.h"
#include "flashinfer/ops/cascade/levels.h"
#include "flashinfer/ops/cascade/wrappers.h"

namespace flashinfer {
namespace cascade {
namespace {
using namespace attention;

constexpr const char* kModule = "flashinfer.cascade";
constexpr const char *kDecode = "BatchDecodeWithSharedPrefixPagedKVCacheWrapper",
                     *kPrefill = "BatchPrefillWithSharedPrefixPagedKVCacheWrapper";
constexpr const char *kDecodeInit = "BatchDecodeWithSharedPrefixPagedKVCacheWrapper.__init__",
                     *kDecodePlan = "BatchDecodeWithSharedPrefixPagedKVCacheWrapper.begin_forward",
                     *kDecodeForward = "BatchDecodeWithSharedPrefixPagedKVCacheWrapper.forward",
                     *kPrefillInit = "BatchPrefillWithSharedPrefixPagedKVCacheWrapper.__init__",
                     *kPrefillPlan = "BatchPrefillWithSharedPrefixPagedKVCacheWrapper.begin_forward",
                     *kPrefillForward = "BatchPrefillWithSharedPrefixPagedKVCacheWrapper.forward";

void launch_init(const SharedPrefixInit& a) {
  check_workspace(a.float_workspace_buffer);
  Plan p;
  p.kv_layout = a.kv_layout;
  a.self->set(std::move(p));
}
void launch_decode_plan(const SharedDecodePlan& a) {
  Plan p = next_plan(a.self);
  p.num_qo_heads = a.num_qo_heads, p.num_kv_heads = a.num_kv_heads;
  p.head_dim_qk = p.head_dim_vo = a.head_dim, p.page_size = a.page_size;
  p.q_data_type = p.kv_data_type = type_without_scales(a.data_type), p.o_data_type = DType::kF32;
  set_options(p, {.sm_scale = {}, .logits_soft_cap = {}, .rope_scale = {}, .rope_theta = {}});
  set_page_table(p, {"unique_kv_indptr", "unique_kv_indices", "unique_kv_last_page_len"}, a.unique_kv_indptr,
                 a.unique_kv_indices, a.unique_kv_last_page_len);
  p.nnz_qo = p.batch_size;
  p.qo_indptr = Tensor::empty({p.batch_size + 1}, DType::kI32);
  for (int64_t b = 0; b <= p.batch_size; ++b) p.qo_indptr.data_as<int32_t>()[b] = static_cast<int32_t>(b);
  set_work(p);
  a.self->set(std::move(p));
  a.self->planned = true;
}
void launch_prefill_plan(const SharedPrefillPlan& a) {
  Plan p = next_plan(a.self);
  p.num_qo_heads = a.num_qo_heads, p.num_kv_heads = a.num_kv_heads;
  p.head_dim_qk = p.head_dim_vo = a.head_dim, p.page_size = a.page_size;
  p.o_data_type = DType::kF32;
  set_options(p, {.sm_scale = {}, .logits_soft_cap = {}, .rope_scale = {}, .rope_theta = {}});
  set_page_table(p, {"paged_kv_indptr", "paged_kv_indices", "paged_kv_last_page_len"}, a.paged_kv_indptr,
                 a.paged_kv_indices, a.paged_kv_last_page_len);
  set_rows(p, "qo_indptr", a.qo_indptr);
  set_work(p);
  a.self->set(std::move(p));
  a.self->planned = true;
}

/// The plan of each request's own keys: the prefill wrapper learns types, mask and scale only now.
Plan unique_plan(const SharedDecodeForward& a) { return plan_of(a.self); }
Plan unique_plan(const SharedPrefillForward& a) {
  Plan p = plan_of(a.self);
  p.q_data_type = a.q.dtype(), p.kv_data_type = a.k_shared.dtype();
  p.causal = a.causal;
  set_options(p, {.sm_scale = a.sm_scale, .logits_soft_cap = {}, .rope_scale = {}, .rope_theta = {}});
  set_work(p);
  return p;
}
template <class Block>
void validate(const Block& a) {
  const Plan p = unique_plan(a);
  const Planes unique = cache_planes(a.unique_kv_cache, p.kv_layout),
               shared = token_planes(a.k_shared, a.v_shared, p.kv_layout);
  FI_CHECK(p.kv_data_type != DType::kU8 && unique.k.dtype != DType::kF4E2M1x2, NotImplementedError,
           "an NVFP4 cache is not supported");
  check_run(p, a.q, unique, "unique_kv_cache (K)", "unique_kv_cache (V)");
  check_run(p, a.q, shared, "k_shared", "v_shared");
  check_pool(p, unique, "the indices");
  FI_CHECK(shared.v.dtype == shared.k.dtype && shared.v.page_size == shared.k.page_size, ValueError, "v_shared is ",
           to_string(a.v_shared), ", but k_shared is ", to_string(a.k_shared));
  FI_CHECK(shared.k.page_size <= INT32_MAX && p.nnz_qo * p.num_qo_heads <= INT32_MAX, ValueError, "k_shared has ",
           shared.k.page_size, " tokens for ", p.nnz_qo, " rows, more than 32 bits hold");
}
template <class Block>
std::vector<Level> levels_of(const Block& a) {
  const PlanRef unique = owned(unique_plan(a));
  const Planes shared = token_planes(a.k_shared, a.v_shared, unique->kv_layout);
  std::vector<Level> levels{{owned(shared_plan(*unique, a.q.size(0), shared.k.page_size)), {}}, {unique, {}}};
  levels[0].call.kv = shared, levels[1].call.kv = cache_planes(a.unique_kv_cache, unique->kv_layout);
  for (Level& l : levels) l.call.q = a.q;
  return levels;
}
template <class Block>
op::Shape out_shape(const Block& a) {
  const Plan& p = plan_of(a.self);
  return rows_heads_dim(p.nnz_qo, p.num_qo_heads, p.head_dim_vo);
}
template <class Block>
DType out_dtype(const Block& a) {
  return ops::default_output(a.q.dtype());
}

constexpr op::Field init_fields[] = {
    op::self<&SharedPrefixInit::self>(),
    op::scratch<&SharedPrefixInit::float_workspace_buffer>("float_workspace_buffer", nullptr),
    op::attr<&SharedPrefixInit::kv_layout>("kv_layout", op::choices("NHD|HND", ErrorKind::kKeyError)),
};
constexpr op::Field decode_plan_fields[] = {
    op::self<&SharedDecodePlan::self>(),
    op::in<&SharedDecodePlan::unique_kv_indptr>("unique_kv_indptr", "b+1", op::indices, op::any_layout),
    op::in<&SharedDecodePlan::unique_kv_indices>("unique_kv_indices", "n", op::indices, op::any_layout),
    op::in<&SharedDecodePlan::unique_kv_last_page_len>("unique_kv_last_page_len", "b", op::indices, op::any_layout),
    op::attr<&SharedDecodePlan::num_qo_heads>("num_qo_heads", op::required),
    op::attr<&SharedDecodePlan::num_kv_heads>("num_kv_heads", op::required),
    op::attr<&SharedDecodePlan::head_dim>("head_dim", op::required),
    op::attr<&SharedDecodePlan::page_size>("page_size", op::required),
    op::attr<&SharedDecodePlan::data_type>("data_type", op::literal("'float16'")),
};
constexpr op::Field decode_fields[] = {
    op::self<&SharedDecodeForward::self>(),
    op::in<&SharedDecodeForward::q>("q", "n h d", ops::kQueryTypes),
    op::in<&SharedDecodeForward::k_shared>("k_shared", "x y d", op::floats | op::fp8),
    op::in<&SharedDecodeForward::v_shared>("v_shared", "x y d", op::same_as("k_shared")),
    op::paged<&SharedDecodeForward::unique_kv_cache>("unique_kv_cache", nullptr, kCacheTypes),
    op::result<&SharedDecodeForward::out>("out", nullptr, op::floats, op::shape<out_shape<SharedDecodeForward>>,
                                          op::dtype<out_dtype<SharedDecodeForward>>),
};
constexpr op::Field prefill_plan_fields[] = {
    op::self<&SharedPrefillPlan::self>(),
    op::in<&SharedPrefillPlan::qo_indptr>("qo_indptr", "b+1", op::indices, op::any_layout),
    op::in<&SharedPrefillPlan::paged_kv_indptr>("paged_kv_indptr", "b+1", op::indices, op::any_layout),
    op::in<&SharedPrefillPlan::paged_kv_indices>("paged_kv_indices", "n", op::indices, op::any_layout),
    op::in<&SharedPrefillPlan::paged_kv_last_page_len>("paged_kv_last_page_len", "b", op::indices, op::any_layout),
    op::attr<&SharedPrefillPlan::num_qo_heads>("num_qo_heads", op::required),
    op::attr<&SharedPrefillPlan::num_kv_heads>("num_kv_heads", op::required),
    op::attr<&SharedPrefillPlan::head_dim>("head_dim", op::required),
    op::attr<&SharedPrefillPlan::page_size>("page_size", op::required),
};
constexpr op::Field prefill_fields[] = {
    op::self<&SharedPrefillForward::self>(),
    op::in<&SharedPrefillForward::q>("q", "n h d", ops::kQueryTypes),
    op::in<&SharedPrefillForward::k_shared>("k_shared", "x y d", op::floats | op::fp8),
    op::in<&SharedPrefillForward::v_shared>("v_shared", "x y d", op::same_as("k_shared")),
    op::paged<&SharedPrefillForward::unique_kv_cache>("unique_kv_cache", nullptr, kCacheTypes),
    op::attr<&SharedPrefillForward::causal>("causal"),
    op::attr<&SharedPrefillForward::use_fp16_qk_reduction>("use_fp16_qk_reduction"),
    op::attr<&SharedPrefillForward::sm_scale>("sm_scale"),
    op::attr<&SharedPrefillForward::rope_scale>("rope_scale"),
    op::attr<&SharedPrefillForward::rope_theta>("rope_theta"),
    op::result<&SharedPrefillForward::out>("out", nullptr, op::floats, op::shape<out_shape<SharedPrefillForward>>,
                                           op::dtype<out_dtype<SharedPrefillForward>>),
};
constexpr op::Candidate init_candidates[] = {op::host<launch_init>()};
constexpr op::Candidate decode_plan_candidates[] = {op::host_arrays<launch_decode_plan>()};
constexpr op::Candidate prefill_plan_candidates[] = {op::host_arrays<launch_prefill_plan>()};
template <class Block>
constexpr std::span<const op::Candidate> forward_candidates = kRunCandidates<LevelsRun<Block, levels_of>>;
constexpr const char *kInitDoc = "Attention over a contiguous prefix that all requests share and pages of their own.",
                     *kPlanDoc = "Takes the page table of what each request has alone.",
                     *kForwardDoc = "out = attention over the shared prefix, read once, and each request's own pages.";
}  // namespace

constinit const op::Op shared_decode_init_op =
    op::define<SharedPrefixInit>(kDecodeInit, kModule, kInitDoc, init_fields, init_candidates, nullptr, {}, &plan_type);
constinit const op::Op shared_prefill_init_op = op::define<SharedPrefixInit>(
    kPrefillInit, kModule, kInitDoc, init_fields, init_candidates, nullptr, {}, &plan_type);
constinit const op::Op shared_decode_plan_op = op::define<SharedDecodePlan>(
    kDecodePlan, kModule, kPlanDoc, decode_plan_fields, decode_plan_candidates, nullptr, {}, &plan_type);
constinit const op::Op shared_prefill_plan_op = op::define<SharedPrefillPlan>(
    kPrefillPlan, kModule, kPlanDoc, prefill_plan_fields, prefill_plan_candidates, nullptr, {}, &plan_type);
constinit const op::Op shared_decode_forward_op = op::define<SharedDecodeForward, validate<SharedDecodeForward>>(
    kDecodeForward, kModule, kForwardDoc, decode_fields, forward_candidates<SharedDecodeForward>,
    ops::cascade::shared_decode_cases, {}, &plan_type);
constinit const op::Op shared_prefill_forward_op = op::define<SharedPrefillForward, validate<SharedPrefillForward>>(
    kPrefillForward, kModule, kForwardDoc, prefill_fields, forward_candidates<SharedPrefillForward>,
    ops::cascade::shared_prefill_cases, {}, &plan_type);
constinit const op::Op shared_decode_reset_op =
    reset_op("BatchDecodeWithSharedPrefixPagedKVCacheWrapper.reset_workspace_buffer", kModule, &plan_type);
constinit const op::Op shared_prefill_reset_op =
    reset_op("BatchPrefillWithSharedPrefixPagedKVCacheWrapper.reset_workspace_buffer", kModule, &plan_type);
constinit const op::Op shared_prefill_prewarm_op =
    prewarm_op("BatchPrefillWithSharedPrefixPagedKVCacheWrapper.prewarm_paged_kv_stride_variant", kModule, &plan_type);
}  // namespace cascade

using attention::ResetWorkspace;
BatchDecodeWithSharedPrefixPagedKVCacheWrapper::BatchDecodeWithSharedPrefixPagedKVCacheWrapper(SharedPrefixInit a)
    : self_(cascade::kDecode, cascade::kModule, attention::plan_type) {
  a.self = &self_;
  op::call(cascade::shared_decode_init_op, a);
}
BatchDecodeWithSharedPrefixPagedKVCacheWrapper::BatchDecodeWithSharedPrefixPagedKVCacheWrapper(
    const TensorView& workspace, const std::string& kv_layout)
    : BatchDecodeWithSharedPrefixPagedKVCacheWrapper(
          SharedPrefixInit{.float_workspace_buffer = workspace, .kv_layout = kv_layout}) {}
void BatchDecodeWithSharedPrefixPagedKVCacheWrapper::begin_forward(SharedDecodePlan a) {
  a.self = &self_;
  op::call(cascade::shared_decode_plan_op, a);
}
Tensor BatchDecodeWithSharedPrefixPagedKVCacheWrapper::forward(SharedDecodeForward a) {
  a.self = &self_;
  return op::call(cascade::shared_decode_forward_op, a);
}
void BatchDecodeWithSharedPrefixPagedKVCacheWrapper::reset_workspace_buffer(const TensorView& float_workspace,
                                                                            const TensorView& int_workspace) {
  op::call(cascade::shared_decode_reset_op, ResetWorkspace{&self_, float_workspace, int_workspace});
}
BatchPrefillWithSharedPrefixPagedKVCacheWrapper::BatchPrefillWithSharedPrefixPagedKVCacheWrapper(SharedPrefixInit a)
    : self_(cascade::kPrefill, cascade::kModule, attention::plan_type) {
  a.self = &self_;
  op::call(cascade::shared_prefill_init_op, a);
}
BatchPrefillWithSharedPrefixPagedKVCacheWrapper::BatchPrefillWithSharedPrefixPagedKVCacheWrapper(
    const TensorView& workspace, const std::string& kv_layout)
    : BatchPrefillWithSharedPrefixPagedKVCacheWrapper(
          SharedPrefixInit{.float_workspace_buffer = workspace, .kv_layout = kv_layout}) {}
void BatchPrefillWithSharedPrefixPagedKVCacheWrapper::begin_forward(SharedPrefillPlan a) {
  a.self = &self_;
  op::call(cascade::shared_prefill_plan_op, a);
}
Tensor BatchPrefillWithSharedPrefixPagedKVCacheWrapper::forward(SharedPrefillForward a) {
  a.self = &self_;
  return op::call(cascade::shared_prefill_forward_op, a);
}
void BatchPrefillWithSharedPrefixPagedKVCacheWrapper::reset_workspace_buffer(const TensorView& float_workspace,
                                                                             const TensorView& int_workspace) {
  op::call(cascade::shared_prefill_reset_op, ResetWorkspace{&self_, float_workspace, int_workspace});
}

}  // namespace flashinfer
