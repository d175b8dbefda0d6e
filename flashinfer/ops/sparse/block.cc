// SPDX-License-Identifier: Apache-2.0
// One pattern of equal blocks for all heads: row blocks are requests, key blocks are pages.
#include "flashinfer/ops/sparse/ops.h"

namespace flashinfer {
namespace sparse {
namespace {
using namespace attention;

constexpr const char* kClass = "BlockSparseAttentionWrapper";
constexpr const char *kInit = "BlockSparseAttentionWrapper.__init__", *kPlan = "BlockSparseAttentionWrapper.plan",
                     *kRun = "BlockSparseAttentionWrapper.run", *kForward = "BlockSparseAttentionWrapper.forward";

void validate_plan(const BlockSparsePlan& a) {
  for (const auto& [name, given] :
       {std::pair("block_mask", &a.block_mask), std::pair("kv_block_lens", &a.kv_block_lens),
        std::pair("q2k_indices", &a.q2k_indices), std::pair("q2k_num", &a.q2k_num),
        std::pair("kv_splits", &a.kv_splits), std::pair("use_clc", &a.use_clc), std::pair("q_scale", &a.q_scale),
        std::pair("k_scale", &a.k_scale), std::pair("v_scale", &a.v_scale)})
    FI_CHECK(given->is_none(), ValueError, name, " belongs to special back ends of GPUs");
  for (const auto& [name, n] : {std::pair("M", a.M), std::pair("N", a.N)})
    FI_CHECK(n >= 0 && n <= INT32_MAX, ValueError, name, " is ", n);
  for (const auto& [name, n] : {std::pair("R", a.R), std::pair("C", a.C)})
    FI_CHECK(n >= 1 && n <= INT32_MAX, ValueError, name, " is ", n, ", but must be at least 1");
  FI_CHECK(a.M == (a.indptr.size(0) - 1) * a.R, ValueError, "M is ", a.M, ", but indptr describes ",
           a.indptr.size(0) - 1, " row blocks of R=", a.R);
  if (a.mask)
    FI_CHECK(a.mask->rank() == 3 && a.mask->size(1) == a.R && a.mask->size(2) == a.C, ValueError, "mask is ",
             to_string(*a.mask), ", but must be [blocks, R=", a.R, ", C=", a.C, "]");
}
/// The element mask of all row blocks in the order of attention.
Tensor ordered_mask(const BlockSparsePlan& a, const Plan& p) {
  const int64_t blocks = p.kv_indptr.data_as<int32_t>()[p.batch_size];
  FI_CHECK(a.mask->size(0) == blocks, ValueError, "mask.shape[0] is ", a.mask->size(0), ", but indptr describes ",
           blocks, " blocks");
  Tensor ordered = Tensor::empty({a.mask->numel()}, DType::kBool);
  convert_mask(*a.mask, a.indptr, ordered.data_as<bool>());
  return ordered;
}
void launch_plan(const BlockSparsePlan& a) {
  Plan p = next_plan(a.self);
  p.num_qo_heads = a.num_qo_heads, p.num_kv_heads = a.num_kv_heads;
  p.head_dim_qk = p.head_dim_vo = a.head_dim, p.page_size = a.C;
  p.nnz_kv = a.N;
  p.q_data_type = a.q_data_type, p.kv_data_type = type_without_scales(a.kv_data_type.value_or(a.q_data_type));
  p.o_data_type = a.o_data_type.value_or(ops::default_output(a.q_data_type));
  p.causal = a.causal;
  set_options(p, {.pos_encoding_mode = a.pos_encoding_mode,
                  .sm_scale = a.sm_scale,
                  .logits_soft_cap = a.logits_soft_cap,
                  .rope_scale = a.rope_scale,
                  .rope_theta = a.rope_theta});
  const int64_t batch = a.indptr.size(0) - 1;
  Tensor full = Tensor::empty({batch}, DType::kI32), rows = Tensor::empty({batch + 1}, DType::kI32);
  for (int64_t b = 0; b <= batch; ++b) {
    rows.data_as<int32_t>()[b] = static_cast<int32_t>(b * a.R);
    if (b < batch) full.data_as<int32_t>()[b] = static_cast<int32_t>(a.C);
  }
  set_page_table(p, {"indptr", "indices", "C"}, a.indptr, a.indices, full);
  FI_CHECK((p.max_page + 1) * a.C <= a.N, ValueError, "indices has key block ", p.max_page, ", which ends at ",
           (p.max_page + 1) * a.C, ", but N is ", a.N);
  set_rows(p, "indptr", rows);
  const Tensor ordered = a.mask && !a.packed_mask ? ordered_mask(a, p) : Tensor();
  set_mask(p, ordered.defined() ? std::optional<TensorView>(ordered.view()) : std::nullopt, a.packed_mask);
  set_work(p);
  a.self->set(std::move(p));
  a.self->planned = true;
}

Call call_of_run(const BlockSparseRun& a) {
  const Plan& p = plan_of(a.self);
  Call c;
  c.q = a.q, c.kv = {pages_of(a.k, p.page_size), pages_of(a.v, p.page_size)};
  if (a.out) c.out = *a.out;
  c.lse = a.lse;
  set_head_scales(p, c, a.scale_q ? &*a.scale_q : nullptr, a.scale_k ? &*a.scale_k : nullptr,
                  a.scale_v ? &*a.scale_v : nullptr);
  return c;
}
void check_tensors(const BlockSparseRun& a) {
  const Plan& p = plan_of(a.self);
  check_run(p, a.q, call_of_run(a).kv, "k", "v");
  for (const auto& [t, who] : {std::pair(&a.k, "k"), std::pair(&a.v, "v")})
    FI_CHECK(t->size(0) == p.nnz_kv, ValueError, who, ".shape[0] is ", t->size(0),
             ", but plan() was given N=", p.nnz_kv);
}
void validate_run(const BlockSparseRun& a) { check_tensors(a); }
op::Shape out_shape(const BlockSparseRun& a) {
  const Plan& p = plan_of(a.self);
  return rows_heads_dim(p.nnz_qo, p.num_qo_heads, p.head_dim_vo);
}
op::Shape lse_shape(const BlockSparseRun& a) {
  const Plan& p = plan_of(a.self);
  return rows_heads(p.nnz_qo, p.num_qo_heads);
}
DType out_dtype(const BlockSparseRun& a) { return plan_of(a.self).o_data_type; }
op::Cost cost(const BlockSparseRun& a) { return cost_of(plan_of(a.self), a.q); }
/// The last plan with what this older form of run() replaces.
Plan forward_plan(const BlockSparseForward& a) {
  Plan p = plan_of(a.self);
  set_options(p, {p.window_left, a.pos_encoding_mode, a.sm_scale, a.logits_soft_cap, a.rope_scale, a.rope_theta});
  set_work(p);
  return p;
}
void validate_forward(const BlockSparseForward& a) {
  check_tensors(a);
  forward_plan(a);
}
PlanRef replanned_of(const BlockSparseForward& a) { return owned(forward_plan(a)); }
Call call_of_forward(const BlockSparseForward& a) { return call_of_run(a); }

constexpr op::Field plan_fields[] = {
    op::self<&BlockSparsePlan::self>(),
    op::in<&BlockSparsePlan::indptr>("indptr", "b+1", op::indices, op::any_layout),
    op::in<&BlockSparsePlan::indices>("indices", "n", op::indices, op::any_layout),
    op::attr<&BlockSparsePlan::M>("M", op::required),
    op::attr<&BlockSparsePlan::N>("N", op::required),
    op::attr<&BlockSparsePlan::R>("R", op::required),
    op::attr<&BlockSparsePlan::C>("C", op::required),
    op::attr<&BlockSparsePlan::num_qo_heads>("num_qo_heads", op::required),
    op::attr<&BlockSparsePlan::num_kv_heads>("num_kv_heads", op::required),
    op::attr<&BlockSparsePlan::head_dim>("head_dim", op::required),
    op::in<&BlockSparsePlan::mask>("mask", nullptr, kMaskTypes, op::any_layout),
    op::in<&BlockSparsePlan::packed_mask>("packed_mask", nullptr, DType::kU8, op::contiguous),
    op::attr<&BlockSparsePlan::causal>("causal"),
    op::attr<&BlockSparsePlan::pos_encoding_mode>("pos_encoding_mode", op::choices(kModes, ErrorKind::kKeyError)),
    op::attr<&BlockSparsePlan::use_fp16_qk_reduction>("use_fp16_qk_reduction"),
    op::attr<&BlockSparsePlan::logits_soft_cap>("logits_soft_cap"),
    op::attr<&BlockSparsePlan::sm_scale>("sm_scale"),
    op::attr<&BlockSparsePlan::rope_scale>("rope_scale"),
    op::attr<&BlockSparsePlan::rope_theta>("rope_theta"),
    op::attr<&BlockSparsePlan::q_data_type>("q_data_type", op::literal("'float16'")),
    op::attr<&BlockSparsePlan::kv_data_type>("kv_data_type"),
    op::attr<&BlockSparsePlan::o_data_type>("o_data_type"),
    op::attr<&BlockSparsePlan::non_blocking>("non_blocking"),
    op::attr<&BlockSparsePlan::block_mask>("block_mask"),
    op::attr<&BlockSparsePlan::kv_block_lens>("kv_block_lens"),
    op::attr<&BlockSparsePlan::q2k_indices>("q2k_indices"),
    op::attr<&BlockSparsePlan::q2k_num>("q2k_num"),
    op::attr<&BlockSparsePlan::kv_splits>("kv_splits"),
    op::attr<&BlockSparsePlan::use_clc>("use_clc"),
    op::attr<&BlockSparsePlan::q_scale>("q_scale"),
    op::attr<&BlockSparsePlan::k_scale>("k_scale"),
    op::attr<&BlockSparsePlan::v_scale>("v_scale"),
};
constexpr op::Field run_fields[] = {
    op::self<&BlockSparseRun::self>(),
    op::in<&BlockSparseRun::q>("q", "m h d", ops::kQueryTypes),
    op::in<&BlockSparseRun::k>("k", "n g d", op::floats | op::fp8),
    op::in<&BlockSparseRun::v>("v", "n g d", op::same_as("k")),
    op::in<&BlockSparseRun::scale_q>("scale_q", nullptr, DType::kF32, op::any_layout),
    op::in<&BlockSparseRun::scale_k>("scale_k", nullptr, DType::kF32, op::any_layout),
    op::in<&BlockSparseRun::scale_v>("scale_v", nullptr, DType::kF32, op::any_layout),
    op::out<&BlockSparseRun::out>("out", nullptr, op::floats, op::shape<out_shape>, op::dtype<out_dtype>),
    op::out<&BlockSparseRun::lse>("lse", nullptr, DType::kF32, op::shape<lse_shape>,
                                  op::when<&BlockSparseRun::return_lse>),
    op::attr<&BlockSparseRun::return_lse>("return_lse"),
    op::attr<&BlockSparseRun::enable_pdl>("enable_pdl"),
};
constexpr op::Field forward_fields[] = {
    op::self<&BlockSparseForward::self>(),
    op::in<&BlockSparseForward::q>("q", "m h d", ops::kQueryTypes),
    op::in<&BlockSparseForward::k>("k", "n g d", op::floats | op::fp8),
    op::in<&BlockSparseForward::v>("v", "n g d", op::same_as("k")),
    op::in<&BlockSparseForward::scale_q>("scale_q", nullptr, DType::kF32, op::any_layout),
    op::in<&BlockSparseForward::scale_k>("scale_k", nullptr, DType::kF32, op::any_layout),
    op::in<&BlockSparseForward::scale_v>("scale_v", nullptr, DType::kF32, op::any_layout),
    op::attr<&BlockSparseForward::pos_encoding_mode>("pos_encoding_mode", op::choices(kModes, ErrorKind::kKeyError)),
    op::attr<&BlockSparseForward::use_fp16_qk_reduction>("use_fp16_qk_reduction"),
    op::attr<&BlockSparseForward::logits_soft_cap>("logits_soft_cap"),
    op::attr<&BlockSparseForward::sm_scale>("sm_scale"),
    op::attr<&BlockSparseForward::rope_scale>("rope_scale"),
    op::attr<&BlockSparseForward::rope_theta>("rope_theta"),
    op::result<&BlockSparseForward::out>("out", nullptr, op::floats, op::shape<out_shape>, op::dtype<out_dtype>),
};
constexpr op::Candidate init_candidates[] = {op::host<launch_init<Plan>>()};
constexpr op::Candidate plan_candidates[] = {op::host_arrays<launch_plan>()};
}  // namespace

constinit const op::Op block_init_op =
    op::define<SparseInit>(kInit, kModule, "Attention of row blocks to the key blocks that a pattern names.",
                           init_fields, init_candidates, nullptr, {}, &sparse_plan_type);
constinit const op::Op block_plan_op = op::define<BlockSparsePlan, validate_plan>(
    kPlan, kModule, "Takes the pattern of blocks and everything that is the same for all layers.", plan_fields,
    plan_candidates, nullptr, {}, &sparse_plan_type);
constinit const op::Op block_run_op = op::define<BlockSparseRun, validate_run, cost>(
    kRun, kModule, "out = softmax(scale * q k^T, over the blocks of each row) v; lse in base 2.", run_fields,
    kRunCandidates<PlanRun<BlockSparseRun, planned, call_of_run>>, ops::sparse::block_cases, {}, &sparse_plan_type);
constinit const op::Op block_forward_op = op::define<BlockSparseForward, validate_forward>(
    kForward, kModule, "run() with what plan() was given replaced.", forward_fields,
    kRunCandidates<PlanRun<BlockSparseForward, replanned_of, call_of_forward>>, ops::sparse::block_forward_cases, {},
    &sparse_plan_type);
constinit const op::Op block_reset_op =
    reset_op("BlockSparseAttentionWrapper.reset_workspace_buffer", kModule, &sparse_plan_type);
}  // namespace sparse

BlockSparseAttentionWrapper::BlockSparseAttentionWrapper(SparseInit a)
    : self_(sparse::kClass, sparse::kModule, attention::sparse_plan_type) {
  a.self = &self_;
  op::call(sparse::block_init_op, a);
}
BlockSparseAttentionWrapper::BlockSparseAttentionWrapper(const TensorView& workspace, const std::string& backend)
    : BlockSparseAttentionWrapper(SparseInit{.float_workspace_buffer = workspace, .backend = backend}) {}
void BlockSparseAttentionWrapper::plan(BlockSparsePlan a) {
  a.self = &self_;
  op::call(sparse::block_plan_op, a);
}
op::Results BlockSparseAttentionWrapper::run(BlockSparseRun a) {
  a.self = &self_;
  return op::call(sparse::block_run_op, a);
}
Tensor BlockSparseAttentionWrapper::forward(BlockSparseForward a) {
  a.self = &self_;
  return op::call(sparse::block_forward_op, a);
}
void BlockSparseAttentionWrapper::reset_workspace_buffer(const TensorView& float_workspace,
                                                         const TensorView& int_workspace) {
  op::call(sparse::block_reset_op, attention::ResetWorkspace{&self_, float_workspace, int_workspace});
}

}  // namespace flashinfer
