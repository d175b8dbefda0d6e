// SPDX-License-Identifier: Apache-2.0
// A pattern and block sizes for each KV head: a plan a head, whose requests are row blocks and whose pages are the
// greatest common divisor of all key block sizes and offsets. On a GPU one plan has the row blocks of all heads, one
// head's after another's, and is one launch.
#include <algorithm>
#include <numeric>

#include "flashinfer/ops/sparse/ops.h"

namespace flashinfer {
namespace sparse {
namespace {
using namespace attention;

constexpr const char* kClass = "VariableBlockSparseAttentionWrapper";
constexpr const char *kInit = "VariableBlockSparseAttentionWrapper.__init__",
                     *kPlan = "VariableBlockSparseAttentionWrapper.plan",
                     *kRun = "VariableBlockSparseAttentionWrapper.run",
                     *kForward = "VariableBlockSparseAttentionWrapper.forward";

[[noreturn]] void assertion(const std::string& what) { throw_error(ErrorKind::kAssertionError, str("", what)); }

/// Sizes [heads, blocks] as starts [heads][blocks + 1].
std::vector<std::vector<int64_t>> starts_of(const char* name, const TensorView& sizes) {
  std::vector<std::vector<int64_t>> all;
  for (int64_t h = 0; h < sizes.size(0); ++h) {
    std::vector<int64_t> starts{0};
    const TensorView row = sizes.select(0, h);
    for (int64_t i = 0; i < row.size(0); ++i) {
      const int64_t n = op::index_at(row, i);
      if (n < 0) assertion(str(name, "[", h, "][", i, "] is ", n));
      starts.push_back(starts.back() + n);
    }
    if (starts.back() > INT32_MAX) assertion(str(name, "[", h, "] adds up to ", starts.back()));
    if (starts.back() != (all.empty() ? starts.back() : all[0].back()))
      assertion(str(name, "[", h, "] adds up to ", starts.back(), ", but that of head 0 to ", all[0].back()));
    all.push_back(std::move(starts));
  }
  return all;
}
void validate_plan(const VariableBlockSparsePlan& a) {
  const TensorView &map = a.block_mask_map, &rows = a.block_row_sz, &cols = a.block_col_sz;
  if (map.size(0) != a.num_kv_heads)
    assertion(str("block_mask_map.shape[0] is ", map.size(0), ", but num_kv_heads is ", a.num_kv_heads));
  if (rows.size(0) != map.size(0) || rows.size(1) != map.size(1))
    assertion(str("block_row_sz is ", to_string(rows), ", but block_mask_map is ", to_string(map)));
  if (cols.size(0) != map.size(0) || cols.size(1) != map.size(2))
    assertion(str("block_col_sz is ", to_string(cols), ", but block_mask_map is ", to_string(map)));
}

/// Pages of the visible key blocks of one head, request by request.
void set_head(Plan& p, const TensorView& map, const std::vector<int64_t>& rows, const std::vector<int64_t>& cols) {
  const int64_t mb = map.size(0), nb = map.size(1), g = p.page_size;
  p.batch_size = mb;
  p.qo_indptr = Tensor::empty({mb + 1}, DType::kI32), p.kv_indptr = Tensor::empty({mb + 1}, DType::kI32),
  p.kv_len = Tensor::empty({mb}, DType::kI32);
  auto visible = [&](int64_t r, int64_t c) {
    return map.data_as<uint8_t>()[r * map.stride(0) + c * map.stride(1)] != 0;
  };
  int64_t pages = 0;
  for (int64_t r = 0; r <= mb; ++r) {
    p.qo_indptr.data_as<int32_t>()[r] = static_cast<int32_t>(rows[static_cast<size_t>(r)]);
    p.kv_indptr.data_as<int32_t>()[r] = static_cast<int32_t>(pages);
    if (r == mb) break;
    int64_t keys = 0;
    for (int64_t c = 0; c < nb; ++c)
      if (visible(r, c)) keys += cols[static_cast<size_t>(c) + 1] - cols[static_cast<size_t>(c)];
    p.kv_len.data_as<int32_t>()[r] = static_cast<int32_t>(keys);
    pages += keys / g;
    FI_CHECK(pages <= INT32_MAX, ValueError, "the pattern names more than 2^31 pages of ", g, " keys");
  }
  p.kv_indices = Tensor::empty({pages}, DType::kI32);
  int32_t* out = p.kv_indices.data_as<int32_t>();
  for (int64_t r = 0; r < mb; ++r)
    for (int64_t c = 0; c < nb; ++c) {
      if (!visible(r, c)) continue;
      const int64_t first = cols[static_cast<size_t>(c)] / g, end = cols[static_cast<size_t>(c) + 1] / g;
      std::iota(out, out + (end - first), static_cast<int32_t>(first));
      out += end - first;
    }
  p.max_page = p.nnz_kv / g - 1;
  p.nnz_qo = rows.back();
}
/// The plans of all heads as one: row block r of head h is request h * (blocks + 1) + r. The one between the blocks of
/// two heads, where offsets begin again, has no rows. ValueError when 32 bits do not count the pages.
std::shared_ptr<const Plan> all_heads_of(std::span<const Plan> heads) {
  Plan all = heads[0];
  const auto count = static_cast<int64_t>(heads.size()), stride = heads[0].batch_size + 1;
  all.num_qo_heads *= count, all.num_kv_heads = count;
  all.requests_a_head = stride, all.batch_size = count * stride - 1;
  all.work = {};
  int64_t pages = 0;
  for (const Plan& p : heads) pages += p.kv_indices.numel();
  FI_CHECK(pages <= INT32_MAX, ValueError, "the patterns name ", pages, " pages of ", all.page_size,
           " keys, more than 32 bits count");
  all.qo_indptr = Tensor::empty({count * stride}, DType::kI32),
  all.kv_indptr = Tensor::empty({count * stride}, DType::kI32);
  all.kv_len = Tensor::zeros({count * stride}, DType::kI32), all.kv_indices = Tensor::empty({pages}, DType::kI32);
  int32_t *qo = all.qo_indptr.data_as<int32_t>(), *kv = all.kv_indptr.data_as<int32_t>(),
          *len = all.kv_len.data_as<int32_t>(), *page = all.kv_indices.data_as<int32_t>();
  int32_t first = 0;
  for (const Plan& p : heads) {
    const auto copy = [](const Tensor& t, int32_t* to) { std::copy_n(t.data_as<int32_t>(), t.numel(), to); };
    copy(p.qo_indptr, qo), copy(p.kv_len, len), copy(p.kv_indices, page + first);
    for (int64_t r = 0; r < stride; ++r) kv[r] = first + p.kv_indptr.data_as<int32_t>()[r];
    qo += stride, kv += stride, len += stride, first += static_cast<int32_t>(p.kv_indices.numel());
  }
  return std::make_shared<const Plan>(std::move(all));
}
void check_mode(const std::string& mode) {
  FI_CHECK(mode != "ALIBI", NotImplementedError,
           "pos_encoding_mode='ALIBI' is not supported: slopes belong to heads, which are attended "
           "one group at a time");
}
void launch_plan(const VariableBlockSparsePlan& a) {
  const auto rows = starts_of("block_row_sz", a.block_row_sz), cols = starts_of("block_col_sz", a.block_col_sz);
  int64_t page = 0;
  for (const auto& head : cols)
    for (int64_t start : head) page = std::gcd(page, start);
  PlanList l;
  l.num_qo_heads = a.num_qo_heads, l.num_kv_heads = a.num_kv_heads;
  l.head_dim_qk = l.head_dim_vo = a.head_dim, l.page_size = std::max<int64_t>(page, 1);
  l.nnz_kv = cols.empty() ? 0 : cols[0].back();
  l.q_data_type = a.q_data_type, l.o_data_type = ops::default_output(a.q_data_type);
  l.kv_data_type = type_without_scales(a.kv_data_type.value_or(a.q_data_type));
  l.causal = a.causal;
  set_options(l, {.pos_encoding_mode = a.pos_encoding_mode,
                  .sm_scale = a.sm_scale,
                  .logits_soft_cap = a.logits_soft_cap,
                  .rope_scale = a.rope_scale,
                  .rope_theta = a.rope_theta});
  check_mode(a.pos_encoding_mode);
  l.num_qo_heads /= l.num_kv_heads, l.num_kv_heads = 1;  // of each plan
  for (int64_t h = 0; h < a.num_kv_heads; ++h) {
    Plan p = l;
    set_head(p, a.block_mask_map.select(0, h), rows[static_cast<size_t>(h)], cols[static_cast<size_t>(h)]);
    set_work(p);
    l.plans.push_back(std::move(p));
  }
  join(l);
  if (l.kv_indices.numel() <= INT32_MAX && !l.plans.empty()) l.all_heads = all_heads_of(l.plans);
  a.self->set(std::move(l));
  a.self->planned = true;
}

const PlanList& state_of(const VariableBlockSparseRun& a) {
  plan_of(a.self);
  return a.self->as<PlanList>();
}
/// Of each KV head.
Call call_of_head(const VariableBlockSparseRun& a, size_t head) {
  const PlanList& l = state_of(a);
  const auto h = static_cast<int64_t>(head);
  auto group = [&](const TensorView& t) {
    return t.slice(0, h * l.num_qo_heads, (h + 1) * l.num_qo_heads).transpose(0, 1);
  };
  auto pages = [&](const TensorView& t) { return pages_of(t.select(0, h).unsqueeze(1), l.page_size); };
  Call c;
  c.q = group(a.q), c.kv = {pages(a.k), pages(a.v)};
  if (a.out) c.out = group(*a.out);
  if (a.lse) c.lse = group(*a.lse);
  return c;
}
/// Of all of them.
Call call_of_heads(const VariableBlockSparseRun& a) {
  const PlanList& l = state_of(a);
  Call c;
  c.q = a.q.transpose(0, 1);
  c.kv = {pages_of(a.k.transpose(0, 1), l.page_size), pages_of(a.v.transpose(0, 1), l.page_size)};
  if (a.out) c.out = a.out->transpose(0, 1);
  if (a.lse) c.lse = a.lse->transpose(0, 1);
  return c;
}
void check_tensors(const VariableBlockSparseRun& a) {
  const PlanList& l = state_of(a);
  FI_CHECK(a.q.dtype() == l.q_data_type, ValueError, "q.dtype is ", name(a.q.dtype()),
           ", but plan() was given q_data_type=", name(l.q_data_type));
  FI_CHECK(a.k.dtype() == l.kv_data_type, ValueError, "k.dtype is ", name(a.k.dtype()),
           ", but plan() was given kv_data_type=", name(l.kv_data_type));
  auto want = [](const char* what, int64_t n, const char* planned, int64_t m) {
    FI_CHECK(n == m, ValueError, what, " is ", n, ", but plan() was given ", planned, m);
  };
  want("q.shape[0]", a.q.size(0), "num_qo_heads=", l.num_qo_heads * l.count);
  want("q.shape[1]", a.q.size(1), "a sum of block_row_sz of ", l.nnz_qo);
  want("q.shape[2]", a.q.size(2), "head_dim=", l.head_dim_qk);
  want("k.shape[0]", a.k.size(0), "num_kv_heads=", l.count);
  want("k.shape[1]", a.k.size(1), "a sum of block_col_sz of ", l.nnz_kv);
}
void validate_run(const VariableBlockSparseRun& a) { check_tensors(a); }
DType out_dtype(const VariableBlockSparseRun& a) { return state_of(a).o_data_type; }
op::Shape out_shape(const VariableBlockSparseRun& a) {
  const PlanList& l = state_of(a);
  return {3, {l.num_qo_heads * l.count, l.nnz_qo, l.head_dim_vo}};
}
op::Shape lse_shape(const VariableBlockSparseRun& a) {
  const PlanList& l = state_of(a);
  return {2, {l.num_qo_heads * l.count, l.nnz_qo}};
}
op::Cost cost(const VariableBlockSparseRun& a) {
  op::Cost all;
  const Plans plans(a.self);
  for (size_t i = 0; i < plans.size(); ++i) {
    const op::Cost c = cost_of(plans[i], a.q.slice(0, 0, plans[i].num_qo_heads));
    all.bytes += c.bytes, all.flops += c.flops;
  }
  return all;
}
void set_forward_options(Plan& p, const VariableBlockSparseForward& a) {
  set_options(p, {.pos_encoding_mode = a.pos_encoding_mode,
                  .sm_scale = a.sm_scale,
                  .logits_soft_cap = a.logits_soft_cap,
                  .rope_scale = a.rope_scale,
                  .rope_theta = a.rope_theta});
}
/// The last plan with what this older form of run() replaces.
PlanList forward_plan(const VariableBlockSparseForward& a) {
  PlanList l = state_of(a);
  check_mode(a.pos_encoding_mode);
  set_forward_options(l, a);
  l.plans = split(l);
  return l;
}
void validate_forward(const VariableBlockSparseForward& a) {
  check_tensors(a);
  forward_plan(a);
}
std::shared_ptr<const Plans> plans_of(const VariableBlockSparseRun& a) { return std::make_shared<const Plans>(a.self); }
std::shared_ptr<const Plans> plans_of(const VariableBlockSparseForward& a) {
  return std::make_shared<const Plans>(forward_plan(a).plans);
}
template <class Run>
op::Prepared prepare_heads(const Run& a) {
  const auto plans = plans_of(a);
  Launches launches;
  for (size_t h = 0; h < plans->size(); ++h)
    launches.add([&] { return prepare_cpu(PlanRef(plans, &(*plans)[h]), call_of_head(a, h)); });
  return std::move(launches).prepared();
}
PlanRef plan_of_heads(const VariableBlockSparseRun& a) {
  const PlanList& l = state_of(a);
  return l.all_heads ? l.all_heads : all_heads_of(Plans(a.self).all());
}
PlanRef plan_of_heads(const VariableBlockSparseForward& a) {
  Plan p = *plan_of_heads(static_cast<const VariableBlockSparseRun&>(a));
  set_forward_options(p, a);
  return owned(std::move(p));
}
template <class Run>
op::Prepared prepare_heads_cuda(const Run& a) {
  if (state_of(a).count == 0) return [] {};
  return prepare_cuda(plan_of_heads(a), call_of_heads(a));
}
template <class Run>
void reference(const Run& a) {
  const auto plans = plans_of(a);
  for (size_t h = 0; h < plans->size(); ++h) run_reference((*plans)[h], call_of_head(a, h));
}

constexpr op::Field plan_fields[] = {
    op::self<&VariableBlockSparsePlan::self>(),
    op::in<&VariableBlockSparsePlan::block_mask_map>("block_mask_map", "h r c", kMaskTypes, op::any_layout),
    op::in<&VariableBlockSparsePlan::block_row_sz>("block_row_sz", "x y", op::indices, op::any_layout),
    op::in<&VariableBlockSparsePlan::block_col_sz>("block_col_sz", "z w", op::indices, op::any_layout),
    op::attr<&VariableBlockSparsePlan::num_qo_heads>("num_qo_heads", op::required),
    op::attr<&VariableBlockSparsePlan::num_kv_heads>("num_kv_heads", op::required),
    op::attr<&VariableBlockSparsePlan::head_dim>("head_dim", op::required),
    op::attr<&VariableBlockSparsePlan::causal>("causal"),
    op::attr<&VariableBlockSparsePlan::pos_encoding_mode>("pos_encoding_mode",
                                                          op::choices(kModes, ErrorKind::kKeyError)),
    op::attr<&VariableBlockSparsePlan::use_fp16_qk_reduction>("use_fp16_qk_reduction"),
    op::attr<&VariableBlockSparsePlan::logits_soft_cap>("logits_soft_cap"),
    op::attr<&VariableBlockSparsePlan::sm_scale>("sm_scale"),
    op::attr<&VariableBlockSparsePlan::rope_scale>("rope_scale"),
    op::attr<&VariableBlockSparsePlan::rope_theta>("rope_theta"),
    op::attr<&VariableBlockSparsePlan::non_blocking>("non_blocking"),
    op::attr<&VariableBlockSparsePlan::q_data_type>("q_data_type", op::literal("'float16'")),
    op::attr<&VariableBlockSparsePlan::kv_data_type>("kv_data_type"),
};
constexpr op::Field run_fields[] = {
    op::self<&VariableBlockSparseRun::self>(),
    op::in<&VariableBlockSparseRun::q>("q", "h m d", ops::kQueryTypes),
    op::in<&VariableBlockSparseRun::k>("k", "g n d", op::floats | op::fp8),
    op::in<&VariableBlockSparseRun::v>("v", "g n d", op::same_as("k")),
    op::out<&VariableBlockSparseRun::out>("out", nullptr, op::floats, op::shape<out_shape>, op::dtype<out_dtype>),
    op::out<&VariableBlockSparseRun::lse>("lse", nullptr, DType::kF32, op::shape<lse_shape>,
                                          op::when<&VariableBlockSparseRun::return_lse>),
    op::attr<&VariableBlockSparseRun::return_lse>("return_lse"),
    op::attr<&VariableBlockSparseRun::enable_pdl>("enable_pdl"),
};
constexpr op::Field forward_fields[] = {
    op::self<&VariableBlockSparseForward::self>(),
    op::in<&VariableBlockSparseForward::q>("q", "h m d", ops::kQueryTypes),
    op::in<&VariableBlockSparseForward::k>("k", "g n d", op::floats | op::fp8),
    op::in<&VariableBlockSparseForward::v>("v", "g n d", op::same_as("k")),
    op::attr<&VariableBlockSparseForward::pos_encoding_mode>("pos_encoding_mode",
                                                             op::choices(kModes, ErrorKind::kKeyError)),
    op::attr<&VariableBlockSparseForward::use_fp16_qk_reduction>("use_fp16_qk_reduction"),
    op::attr<&VariableBlockSparseForward::logits_soft_cap>("logits_soft_cap"),
    op::attr<&VariableBlockSparseForward::sm_scale>("sm_scale"),
    op::attr<&VariableBlockSparseForward::rope_scale>("rope_scale"),
    op::attr<&VariableBlockSparseForward::rope_theta>("rope_theta"),
    op::result<&VariableBlockSparseForward::out>("out", nullptr, op::floats, op::shape<out_shape>,
                                                 op::dtype<out_dtype>),
};
template <class Run>
constexpr op::Candidate run_candidates[] = {op::cuda<prepare_heads_cuda<Run>>(), op::cpu<prepare_heads<Run>>(),
                                            op::reference<reference<Run>>()};
constexpr op::Candidate init_candidates[] = {op::host<launch_init<PlanList>>()};
constexpr op::Candidate plan_candidates[] = {op::host_arrays<launch_plan>()};
}  // namespace

constinit const op::Op variable_init_op =
    op::define<SparseInit>(kInit, kModule, "Attention with a pattern of blocks of different sizes a KV head.",
                           init_fields, init_candidates, nullptr, {}, &sparse_list_type);
constinit const op::Op variable_plan_op = op::define<VariableBlockSparsePlan, validate_plan>(
    kPlan, kModule, "Takes the patterns, the sizes and everything that is the same for all layers.", plan_fields,
    plan_candidates, nullptr, {}, &sparse_list_type);
constinit const op::Op variable_run_op = op::define<VariableBlockSparseRun, validate_run, cost>(
    kRun, kModule, "out = softmax(scale * q k^T, over the blocks of each row and head) v; lse in base 2.", run_fields,
    run_candidates<VariableBlockSparseRun>, ops::sparse::variable_cases, {}, &sparse_list_type);
constinit const op::Op variable_forward_op = op::define<VariableBlockSparseForward, validate_forward>(
    kForward, kModule, "run() with what plan() was given replaced.", forward_fields,
    run_candidates<VariableBlockSparseForward>, ops::sparse::variable_forward_cases, {}, &sparse_list_type);
constinit const op::Op variable_reset_op =
    reset_op("VariableBlockSparseAttentionWrapper.reset_workspace_buffer", kModule, &sparse_list_type);
}  // namespace sparse

VariableBlockSparseAttentionWrapper::VariableBlockSparseAttentionWrapper(SparseInit a)
    : self_(sparse::kClass, sparse::kModule, attention::sparse_list_type) {
  a.self = &self_;
  op::call(sparse::variable_init_op, a);
}
VariableBlockSparseAttentionWrapper::VariableBlockSparseAttentionWrapper(const TensorView& workspace,
                                                                         const std::string& backend)
    : VariableBlockSparseAttentionWrapper(SparseInit{.float_workspace_buffer = workspace, .backend = backend}) {}
void VariableBlockSparseAttentionWrapper::plan(VariableBlockSparsePlan a) {
  a.self = &self_;
  op::call(sparse::variable_plan_op, a);
}
op::Results VariableBlockSparseAttentionWrapper::run(VariableBlockSparseRun a) {
  a.self = &self_;
  return op::call(sparse::variable_run_op, a);
}
Tensor VariableBlockSparseAttentionWrapper::forward(VariableBlockSparseForward a) {
  a.self = &self_;
  return op::call(sparse::variable_forward_op, a);
}
void VariableBlockSparseAttentionWrapper::reset_workspace_buffer(const TensorView& float_workspace,
                                                                 const TensorView& int_workspace) {
  op::call(sparse::variable_reset_op, attention::ResetWorkspace{&self_, float_workspace, int_workspace});
}

}  // namespace flashinfer
