// SPDX-License-Identifier: Apache-2.0
// BatchMLAPagedAttentionWrapper, and the list of the family's ops.
#include "flashinfer/ops/attention/api/checks.h"
#include "flashinfer/ops/mla/cases.h"
#include "flashinfer/ops/mla/plan.h"

namespace flashinfer {
namespace mla {
namespace {

using attention::throw_if_given;
constexpr const char* kClass = "BatchMLAPagedAttentionWrapper";
constexpr const char* kBackends =
    "auto|fa2|fa3|cutlass|cutile|trtllm-gen|xqa|cute-dsl|cute-dsl-monolithic|cute-dsl-modular";
constexpr const char* kNeedsGpu = "it belongs to a GPU back end";
constexpr const char* kLayouts = "split|packed";

void validate_init(const BatchMlaInit& a) {
  throw_if_given(str("backend=", op::python_repr(a.backend)),
                 a.backend != "auto" && a.backend != "fa2" && a.backend != "fa3" && a.backend != "cutlass",
                 "this library has one implementation a device, backend='auto'");
}
void launch_init(const BatchMlaInit& a) { a.self->set(initial_plan(a)); }

void validate_plan(const BatchMlaPlan& a) {
  throw_if_given("use_profiler=True", a.use_profiler, kNeedsGpu);
  throw_if_given("skip_softmax=True", a.skip_softmax, kNeedsGpu);
  throw_if_given("output_scale='per-tensor'", a.output_scale != "none",
                 "it scales 8-bit outputs, which are not available");
}
void launch_plan(const BatchMlaPlan& a) {
  Plan p = make_plan(a);
  fill_graph_buffers(p, a.self->as<Plan>());
  a.self->set(std::move(p));
  a.self->planned = true;
}

constexpr op::Field init_fields[] = {
    op::self<&BatchMlaInit::self>(),
    op::scratch<&BatchMlaInit::float_workspace_buffer>("float_workspace_buffer", nullptr),
    op::attr<&BatchMlaInit::use_cuda_graph>("use_cuda_graph"),
    op::scratch<&BatchMlaInit::qo_indptr>("qo_indptr", nullptr),
    op::scratch<&BatchMlaInit::kv_indptr>("kv_indptr", nullptr),
    op::scratch<&BatchMlaInit::kv_indices>("kv_indices", nullptr),
    op::scratch<&BatchMlaInit::kv_len_arr>("kv_len_arr", nullptr),
    op::attr<&BatchMlaInit::backend>("backend", op::choices(kBackends)),
};
constexpr op::Field plan_fields[] = {
    op::self<&BatchMlaPlan::self>(),
    op::in<&BatchMlaPlan::qo_indptr>("qo_indptr", "qo", op::indices, op::any_layout),
    op::in<&BatchMlaPlan::kv_indptr>("kv_indptr", "kv", op::indices, op::any_layout),
    op::in<&BatchMlaPlan::kv_indices>("kv_indices", "n", op::indices, op::any_layout),
    op::in<&BatchMlaPlan::kv_len_arr>("kv_len_arr", "b", op::indices, op::any_layout),
    op::attr<&BatchMlaPlan::num_heads>("num_heads"),
    op::attr<&BatchMlaPlan::head_dim_ckv>("head_dim_ckv"),
    op::attr<&BatchMlaPlan::head_dim_kpe>("head_dim_kpe"),
    op::attr<&BatchMlaPlan::page_size>("page_size"),
    op::attr<&BatchMlaPlan::causal>("causal"),
    op::attr<&BatchMlaPlan::sm_scale>("sm_scale"),
    op::attr<&BatchMlaPlan::q_data_type>("q_data_type"),
    op::attr<&BatchMlaPlan::kv_data_type>("kv_data_type"),
    op::attr<&BatchMlaPlan::use_profiler>("use_profiler"),
    op::attr<&BatchMlaPlan::metadata>("metadata", op::keyword_only,
                                      op::structure("MLAPlanMetadata: csr(qo_indptr, kv_indptr, kv_indices, "
                                                    "kv_len_arr); dense(cum_seq_lens_q, block_tables, seq_lens, "
                                                    "max_q_len=None); dual(qo_indptr, kv_indptr, kv_indices, "
                                                    "kv_len_arr, *, cum_seq_lens_q, block_tables, seq_lens, "
                                                    "max_q_len=None)")),
    op::in<&BatchMlaPlan::cum_seq_lens_q>("cum_seq_lens_q", "b+1", op::indices, op::any_layout),
    op::in<&BatchMlaPlan::block_tables>("block_tables", "b m", op::indices, op::any_layout),
    op::in<&BatchMlaPlan::seq_lens>("seq_lens", "b", op::indices, op::any_layout),
    op::attr<&BatchMlaPlan::max_q_len>("max_q_len"),
    op::attr<&BatchMlaPlan::query_layout>("query_layout", op::choices(kLayouts)),
    op::attr<&BatchMlaPlan::kv_cache_layout>("kv_cache_layout", op::choices(kLayouts)),
    op::attr<&BatchMlaPlan::lse_mode>("lse_mode", op::choices("none|base2|basee")),
    op::attr<&BatchMlaPlan::output_dtype>("output_dtype"),
    op::attr<&BatchMlaPlan::output_scale>("output_scale", op::choices("none|per-tensor")),
    op::attr<&BatchMlaPlan::scale_mode>("scale_mode", op::choices("default|kv-per-tensor|bmm-scalar|bmm-tensor")),
    op::attr<&BatchMlaPlan::skip_softmax>("skip_softmax"),
    op::attr<&BatchMlaPlan::enable_pdl>("enable_pdl"),
    op::attr<&BatchMlaPlan::use_sinks>("use_sinks"),
};
constexpr op::Candidate init_candidates[] = {op::host<launch_init>()};
constexpr op::Candidate plan_candidates[] = {op::host_arrays<launch_plan>()};

constinit const op::Op init_op = op::define<BatchMlaInit, validate_init>(
    kInit, kModule, "Latent attention over a paged cache: all query heads share one KV head.", init_fields,
    init_candidates, nullptr, {}, &plan_type);
constinit const op::Op plan_op = op::define<BatchMlaPlan, validate_plan>(
    kPlan, kModule, "Takes the page table and everything that is the same for all layers of a step.", plan_fields,
    plan_candidates, nullptr, {}, &plan_type);
constexpr const op::Op* kOps[] = {&init_op,   &plan_op,         &run_op,   &append_op,
                                  &concat_op, &concat_quant_op, &dense_op, &xqa_op};
}  // namespace
}  // namespace mla

BatchMLAPagedAttentionWrapper::BatchMLAPagedAttentionWrapper(BatchMlaInit a)
    : self_(mla::kClass, mla::kModule, mla::plan_type) {
  a.self = &self_;
  op::call(mla::init_op, a);
}
BatchMLAPagedAttentionWrapper::BatchMLAPagedAttentionWrapper(const TensorView& workspace, const std::string& backend)
    : BatchMLAPagedAttentionWrapper(BatchMlaInit{.float_workspace_buffer = workspace, .backend = backend}) {}
void BatchMLAPagedAttentionWrapper::plan(BatchMlaPlan a) {
  a.self = &self_;
  op::call(mla::plan_op, a);
}
op::Results BatchMLAPagedAttentionWrapper::run(BatchMlaRun a) {
  a.self = &self_;
  return op::call(mla::run_op, a);
}

namespace ops::mla {
extern const std::span<const op::Op* const> all;
constinit const std::span<const op::Op* const> all = flashinfer::mla::kOps;
}  // namespace ops::mla

}  // namespace flashinfer
