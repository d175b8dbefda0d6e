// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/transfer.h"
#include "flashinfer/ops/attention/api/checks.h"
#include "flashinfer/ops/attention/api/methods.h"
#include "flashinfer/ops/cascade/cases.h"
#include "flashinfer/ops/cascade/levels.h"
#include "flashinfer/ops/cascade/wrappers.h"

namespace flashinfer {
namespace cascade {
namespace {
using namespace attention;

constexpr const char *kClass = "MultiLevelCascadeAttentionWrapper", *kModule = "flashinfer.cascade";
constexpr const char *kInit = "MultiLevelCascadeAttentionWrapper.__init__",
                     *kPlan = "MultiLevelCascadeAttentionWrapper.plan", *kRun = "MultiLevelCascadeAttentionWrapper.run";

size_t levels_of(int64_t n) { return static_cast<size_t>(n); }
void check_count(const char* name, size_t n, size_t levels) {
  FI_CHECK(n == levels, ValueError, name, " has ", n, " tensors, but there are ", levels, " levels");
}
void validate_init(const CascadeInit& a) {
  FI_CHECK(!a.num_levels || *a.num_levels >= 1, ValueError, "num_levels is ", a.num_levels.value_or(0),
           ", but must be at least 1");
}
/// Levels of the constructor's arguments; 0: the first plan() decides.
int64_t levels_of(const CascadeInit& a) {
  if (a.num_levels) return *a.num_levels;
  if (a.qo_indptr_buf_arr) return static_cast<int64_t>(a.qo_indptr_buf_arr->size());
  return a.use_cuda_graph ? 1 : 0;  // one level without buffers, so that the error names what is missing
}
void launch_init(const CascadeInit& a) {
  check_workspace(a.float_workspace_buffer);
  PlanList l;
  l.kv_layout = a.kv_layout, l.use_cuda_graph = a.use_cuda_graph, l.count = levels_of(a);
  const std::pair<const char*, const std::optional<std::vector<TensorView>>*> arrays[] = {
      {"qo_indptr_buf_arr", &a.qo_indptr_buf_arr},
      {"paged_kv_indptr_buf_arr", &a.paged_kv_indptr_buf_arr},
      {"paged_kv_indices_buf_arr", &a.paged_kv_indices_buf_arr},
      {"paged_kv_last_page_len_buf_arr", &a.paged_kv_last_page_len_buf_arr}};
  constexpr TensorView GraphBuffers::* members[] = {&GraphBuffers::qo_indptr, &GraphBuffers::kv_indptr,
                                                    &GraphBuffers::kv_indices, &GraphBuffers::last_page_len};
  for (const auto& [name, given] : arrays)
    if (*given) check_count(name, (*given)->size(), levels_of(l.count));
  for (size_t i = 0; i < levels_of(l.count); ++i) {
    std::optional<TensorView> buffers[4];
    std::vector<GraphArgument> arguments;
    for (size_t k = 0; k < 4; ++k) {
      if (*arrays[k].second) buffers[k] = (**arrays[k].second)[i];
      arguments.push_back({arrays[k].first, buffers[k], members[k]});
    }
    Plan p;
    p.kv_layout = a.kv_layout;
    set_graph(p, a.use_cuda_graph, arguments);
    l.plans.push_back(std::move(p));
  }
  a.self->set(std::move(l));
}

void validate_plan(const CascadePlan& a) {
  const int64_t fixed = a.self->as<PlanList>().count;
  const size_t n = fixed ? levels_of(fixed) : a.qo_indptr_arr.size();
  FI_CHECK(n >= 1, ValueError, "qo_indptr_arr is empty, but must have a tensor for each level");
  check_count("qo_indptr_arr", a.qo_indptr_arr.size(), n);
  check_count("paged_kv_indptr_arr", a.paged_kv_indptr_arr.size(), n);
  check_count("paged_kv_indices_arr", a.paged_kv_indices_arr.size(), n);
  check_count("paged_kv_last_page_len", a.paged_kv_last_page_len.size(), n);
  for (const auto* v : {&a.qo_indptr_arr, &a.paged_kv_indptr_arr, &a.paged_kv_indices_arr, &a.paged_kv_last_page_len})
    for (const TensorView& t : *v)
      FI_CHECK(t.rank() == 1 && op::indices.has(t.dtype()), ValueError, "an index array is ", to_string(t),
               ", but must be a vector of int32 or int64");
  FI_CHECK(n == 1 || (a.window_left < 0 && a.pos_encoding_mode == "NONE"), ValueError, "window_left is ", a.window_left,
           " and pos_encoding_mode ", op::python_repr(a.pos_encoding_mode),
           ", but positions count within a level: with ", n, " levels neither has a meaning");
}
Plan level_plan(const CascadePlan& a, const Plan& before, size_t level) {
  Plan p = next_plan(before);
  p.num_qo_heads = a.num_qo_heads, p.num_kv_heads = a.num_kv_heads;
  p.head_dim_qk = p.head_dim_vo = a.head_dim, p.page_size = a.page_size;
  p.q_data_type = a.q_data_type, p.kv_data_type = type_without_scales(a.kv_data_type.value_or(a.q_data_type)),
  p.o_data_type = DType::kF32;
  p.causal = a.causal && level + 1 == a.qo_indptr_arr.size();
  set_options(p, {a.window_left, a.pos_encoding_mode, a.sm_scale, a.logits_soft_cap, a.rope_scale, a.rope_theta});
  set_page_table(p, {"paged_kv_indptr_arr", "paged_kv_indices_arr", "paged_kv_last_page_len"},
                 a.paged_kv_indptr_arr[level], a.paged_kv_indices_arr[level], a.paged_kv_last_page_len[level]);
  set_rows(p, "qo_indptr_arr", a.qo_indptr_arr[level]);
  fill_graph_buffers(p, &a.paged_kv_last_page_len[level]);
  set_work(p);
  return p;
}
void launch_plan(const CascadePlan& a) {
  const PlanList& before = a.self->as<PlanList>();
  PlanList l;
  for (size_t i = 0; i < a.qo_indptr_arr.size(); ++i) {
    Plan p = level_plan(a, before.plans.empty() ? static_cast<const Plan&>(before) : before.plans[i], i);
    FI_CHECK(i == 0 || p.nnz_qo == l.plans[0].nnz_qo, ValueError, "qo_indptr_arr[", i, "][-1] is ", p.nnz_qo,
             ", but that of level 0 is ", l.plans[0].nnz_qo, ": every level has all query tokens");
    l.plans.push_back(std::move(p));
  }
  static_cast<Plan&>(l) = l.plans.back();
  join(l);
  a.self->set(std::move(l));
  a.self->planned = true;
}

const PlanList& state_of(const CascadeRun& a) {
  plan_of(a.self);
  return a.self->as<PlanList>();
}
std::vector<Level> run_levels(const CascadeRun& a) {
  const auto plans = std::make_shared<const Plans>(a.self);
  Call c;
  c.q = a.q, c.kv = cache_planes(a.paged_kv_cache, state_of(a).kv_layout);
  std::vector<Level> levels;
  for (size_t i = 0; i < plans->size(); ++i) levels.push_back({PlanRef(plans, &(*plans)[i]), c});
  return levels;
}
void validate_run(const CascadeRun& a) {
  const PlanList& l = state_of(a);
  const Planes kv = cache_planes(a.paged_kv_cache, l.kv_layout);
  check_run(l, a.q, kv, "paged_kv_cache (K)", "paged_kv_cache (V)");
  check_pool(l, kv, "paged_kv_indices_arr");
}
op::Shape out_shape(const CascadeRun& a) {
  const PlanList& l = state_of(a);
  return rows_heads_dim(l.nnz_qo, l.num_qo_heads, l.head_dim_vo);
}
DType out_dtype(const CascadeRun& a) { return ops::default_output(state_of(a).q_data_type); }
op::Cost cost(const CascadeRun& a) {
  op::Cost all;
  const Plans plans(a.self);
  for (size_t i = 0; i < plans.size(); ++i) {
    const op::Cost c = cost_of(plans[i], a.q);
    all.bytes += c.bytes, all.flops += c.flops;
  }
  return all;
}
/// Index arrays on a GPU: the plan is made by the host all the same.
void launch_plan_from_any(const CascadePlan& a) {
  CascadePlan here = a;
  std::vector<Tensor> keep;
  for (auto* list :
       {&here.qo_indptr_arr, &here.paged_kv_indptr_arr, &here.paged_kv_indices_arr, &here.paged_kv_last_page_len})
    for (TensorView& t : *list) {
      if (t.device() == kCpu) continue;
      keep.push_back(to_device(t, kCpu));
      t = keep.back().view();
    }
  launch_plan(here);
}

constexpr op::Field init_fields[] = {
    op::self<&CascadeInit::self>(),
    op::attr<&CascadeInit::num_levels>("num_levels", op::required),
    op::scratch<&CascadeInit::float_workspace_buffer>("float_workspace_buffer", nullptr),
    op::attr<&CascadeInit::kv_layout>("kv_layout", op::choices("NHD|HND", ErrorKind::kKeyError)),
    op::attr<&CascadeInit::use_cuda_graph>("use_cuda_graph"),
    op::scratch<&CascadeInit::qo_indptr_buf_arr>("qo_indptr_buf_arr", nullptr),
    op::scratch<&CascadeInit::paged_kv_indptr_buf_arr>("paged_kv_indptr_buf_arr", nullptr),
    op::scratch<&CascadeInit::paged_kv_indices_buf_arr>("paged_kv_indices_buf_arr", nullptr),
    op::scratch<&CascadeInit::paged_kv_last_page_len_buf_arr>("paged_kv_last_page_len_buf_arr", nullptr),
};
constexpr op::Field plan_fields[] = {
    op::self<&CascadePlan::self>(),
    op::in<&CascadePlan::qo_indptr_arr>("qo_indptr_arr", nullptr),
    op::in<&CascadePlan::paged_kv_indptr_arr>("paged_kv_indptr_arr", nullptr),
    op::in<&CascadePlan::paged_kv_indices_arr>("paged_kv_indices_arr", nullptr),
    op::in<&CascadePlan::paged_kv_last_page_len>("paged_kv_last_page_len", nullptr),
    op::attr<&CascadePlan::num_qo_heads>("num_qo_heads", op::required),
    op::attr<&CascadePlan::num_kv_heads>("num_kv_heads", op::required),
    op::attr<&CascadePlan::head_dim>("head_dim", op::required),
    op::attr<&CascadePlan::page_size>("page_size", op::required),
    op::attr<&CascadePlan::causal>("causal"),
    op::attr<&CascadePlan::pos_encoding_mode>("pos_encoding_mode", op::choices(kModes, ErrorKind::kKeyError)),
    op::attr<&CascadePlan::use_fp16_qk_reduction>("use_fp16_qk_reduction"),
    op::attr<&CascadePlan::sm_scale>("sm_scale"),
    op::attr<&CascadePlan::window_left>("window_left"),
    op::attr<&CascadePlan::logits_soft_cap>("logits_soft_cap"),
    op::attr<&CascadePlan::rope_scale>("rope_scale"),
    op::attr<&CascadePlan::rope_theta>("rope_theta"),
    op::attr<&CascadePlan::q_data_type>("q_data_type", op::literal("'float16'")),
    op::attr<&CascadePlan::kv_data_type>("kv_data_type"),
};
constexpr op::Field run_fields[] = {
    op::self<&CascadeRun::self>(),
    op::in<&CascadeRun::q>("q", "n h d", ops::kQueryTypes),
    op::paged<&CascadeRun::paged_kv_cache>("paged_kv_cache", nullptr, kCacheTypes),
    op::result<&CascadeRun::out>("out", nullptr, op::floats, op::shape<out_shape>, op::dtype<out_dtype>),
};
constexpr op::Candidate init_candidates[] = {op::host<launch_init>()};
constexpr op::Candidate plan_candidates[] = {op::host<launch_plan_from_any>()};
}  // namespace

constinit const op::Op level_init_op =
    op::define<CascadeInit, validate_init>(kInit, kModule, "Attention over keys in levels, the shared ones first.",
                                           init_fields, init_candidates, nullptr, {}, &cascade_plan_type);
constinit const op::Op level_plan_op = op::define<CascadePlan, validate_plan>(
    kPlan, kModule, "Takes the page table of each level and everything that is the same for all layers of a step.",
    plan_fields, plan_candidates, nullptr, {}, &cascade_plan_type);
constinit const op::Op level_run_op = op::define<CascadeRun, validate_run, cost>(
    kRun, kModule, "out = attention over the keys of all levels, each read once for the rows that share it.",
    run_fields, kRunCandidates<LevelsRun<CascadeRun, run_levels>>, ops::cascade::multi_level_cases, {},
    &cascade_plan_type);
constinit const op::Op level_reset_op = reset_op("MultiLevelCascadeAttentionWrapper.reset_workspace_buffer", kModule,
                                                 &cascade_plan_type, methods_detail::reset_list_fields);
constinit const op::Op level_prewarm_op =
    prewarm_op("MultiLevelCascadeAttentionWrapper.prewarm_paged_kv_stride_variant", kModule, &cascade_plan_type);
}  // namespace cascade

MultiLevelCascadeAttentionWrapper::MultiLevelCascadeAttentionWrapper(CascadeInit a)
    : self_(cascade::kClass, cascade::kModule, attention::cascade_plan_type) {
  a.self = &self_;
  op::call(cascade::level_init_op, a);
}
void MultiLevelCascadeAttentionWrapper::plan(CascadePlan a) {
  a.self = &self_;
  op::call(cascade::level_plan_op, a);
}
Tensor MultiLevelCascadeAttentionWrapper::run(CascadeRun a) {
  a.self = &self_;
  return op::call(cascade::level_run_op, a);
}
void MultiLevelCascadeAttentionWrapper::reset_workspace_buffer(const TensorView& float_workspace,
                                                               const std::vector<TensorView>& int_workspaces) {
  op::call(cascade::level_reset_op, attention::ResetWorkspace{&self_, float_workspace, op::to_value(int_workspaces)});
}

}  // namespace flashinfer
