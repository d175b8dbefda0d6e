// SPDX-License-Identifier: Apache-2.0
// BatchPrefillWithCausalBidirectionalRangesWrapper: what a row sees is known at run(), which makes a mask of it.
#include <algorithm>
#include <cstring>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/attention/api/prefill_tables.h"
#include "flashinfer/ops/attention/api/ranges.h"
#include "flashinfer/ops/attention/cases.h"

namespace flashinfer {
namespace attention {
namespace {
using namespace prefill;

constexpr const char* kClass = "BatchPrefillWithCausalBidirectionalRangesWrapper";
constexpr const char* kRangesModule = "flashinfer.attention";
constexpr const char* kInit = "BatchPrefillWithCausalBidirectionalRangesWrapper.__init__";
constexpr const char* kPlan = "BatchPrefillWithCausalBidirectionalRangesWrapper.plan";
constexpr const char* kRun = "BatchPrefillWithCausalBidirectionalRangesWrapper.run";

void validate_init(const BatchRangesInit& a) {
  FI_CHECK(a.pos_encoding_mode == "NONE", NotImplementedError, "pos_encoding_mode is ",
           op::python_repr(a.pos_encoding_mode), ", but must be 'NONE': rotate q and k before");
  for (const auto& [what, t] :
       {std::pair("q_data_type", a.q_data_type), std::pair("o_data_type", a.o_data_type.value_or(a.q_data_type))})
    FI_CHECK(op::floats.has(t), ValueError, what, " is ", name(t), ", but must be float16, bfloat16 or float32");
}
void launch_init(const BatchRangesInit& a) {
  check_workspace(a.float_workspace_buffer);
  Plan p;
  p.kv_layout = a.kv_layout;
  p.q_data_type = a.q_data_type, p.kv_data_type = cache_type(a.kv_data_type),
  p.o_data_type = a.o_data_type.value_or(a.q_data_type);
  p.head_dim_qk = a.head_dim_qk, p.head_dim_vo = a.head_dim_vo;
  const GraphArgument arguments[] = {
      {"qo_indptr_buf", a.qo_indptr_buf, &GraphBuffers::qo_indptr},
      {"paged_kv_indptr_buf", a.paged_kv_indptr_buf, &GraphBuffers::kv_indptr},
      {"paged_kv_indices_buf", a.paged_kv_indices_buf, &GraphBuffers::kv_indices},
      {"paged_kv_last_page_len_buf", a.paged_kv_last_page_len_buf, &GraphBuffers::last_page_len}};
  set_graph(p, a.use_cuda_graph, arguments);
  a.self->set(std::move(p));
}

void check_plan(const BatchRangesPlan& a) {
  const auto exclude = [](const char* what, bool given) {
    FI_CHECK(!given, ValueError, what, " is given, but run()'s ranges and windows say what a row sees");
  };
  exclude("causal=True", a.causal), exclude("custom_mask", a.custom_mask.has_value()),
      exclude("packed_custom_mask", a.packed_custom_mask.has_value());
  exclude("window_left", a.window_left >= 0), exclude("prefix_len_ptr", a.prefix_len_ptr.has_value());
  exclude("token_pos_in_items_ptr", a.token_pos_in_items_ptr.has_value()),
      exclude("token_pos_in_items_len", a.token_pos_in_items_len != 0);
  exclude("max_item_len_ptr", a.max_item_len_ptr.has_value());
  const auto off = [](const char* what, bool given) {
    FI_CHECK(!given, ValueError, what, " is not available with ranges");
  };
  off("logits_soft_cap", a.logits_soft_cap.value_or(0) != 0),
      off("use_fp16_qk_reduction=True", a.use_fp16_qk_reduction);
  throw_if_given("max_sequence_kv", a.max_sequence_kv.has_value(), kNeedsGpu);
  FI_CHECK(a.pos_encoding_mode == "NONE", NotImplementedError, "pos_encoding_mode is ",
           op::python_repr(a.pos_encoding_mode), ", but must be 'NONE': rotate q and k before");
  check_prefill_plan(a);
}
Plan planned(const BatchRangesPlan& a, const Plan& made) {
  const auto same = [](const char* what, const auto& now, const auto& then) {
    FI_CHECK(now == then, ValueError, what, " is ", now, ", but __init__ was given ", then);
  };
  same("q_data_type", name(a.planned_q_data_type.value_or(made.q_data_type)), name(made.q_data_type));
  same("kv_data_type", name(cache_type(a.kv_data_type.value_or(made.kv_data_type))), name(made.kv_data_type));
  same("o_data_type", name(a.o_data_type.value_or(made.o_data_type)), name(made.o_data_type));
  same("head_dim_qk", a.head_dim_qk, made.head_dim_qk);
  same("head_dim_vo", a.head_dim_vo.value_or(made.head_dim_vo), made.head_dim_vo);
  BatchRangesPlan b = a;
  b.q_data_type = made.q_data_type, b.kv_data_type = made.kv_data_type, b.o_data_type = made.o_data_type,
  b.head_dim_vo = made.head_dim_vo;
  return plan_of_arguments(b);
}
void launch_plan(const BatchRangesPlan& a) {
  a.self->set(planned(a, a.self->as<Plan>()));
  a.self->planned = true;
}
void launch_size(const BatchRangesWorkspaceSize& a) {
  const Plan& made = a.self->as<Plan>();
  launch_sizes<BatchRangesPlan>(a, [&](const BatchRangesPlan& b) { return planned(b, made); });
}

const Plan& plan_of_run(const BatchRangesRun& a) {
  const Plan& p = a.self->as<Plan>();
  FI_CHECK(p.qo_indptr.defined(), ValueError, "plan() has not been called");
  return p;
}
void set_bits(uint8_t* bits, int64_t begin, int64_t end) {
  for (; begin < end && begin % 8; ++begin) bits[begin / 8] = static_cast<uint8_t>(bits[begin / 8] | 1 << begin % 8);
  if (const int64_t bytes = (end - begin) / 8; bytes > 0)
    std::memset(bits + begin / 8, 255, static_cast<size_t>(bytes)), begin += bytes * 8;
  for (; begin < end; ++begin) bits[begin / 8] = static_cast<uint8_t>(bits[begin / 8] | 1 << begin % 8);
}
/// The plan with what each row sees.
Plan masked_plan(const BatchRangesRun& a) {
  Plan p = plan_of_run(a);
  const int32_t *qo = p.qo_indptr.data_as<int32_t>(), *kv = p.kv_len.data_as<int32_t>();
  set_mask_indptr(p);
  p.mask = Tensor::zeros({p.mask_indptr.data_as<int64_t>()[p.batch_size]}, DType::kU8);
  uint8_t* at = p.mask.data_as<uint8_t>();
  for (int64_t b = 0; b < p.batch_size; ++b) {
    const int64_t rows = qo[b + 1] - qo[b], keys = kv[b];
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t position = keys - rows + i, row = i * keys;
      const int64_t from = a.causal_window_left < 0 ? 0 : position - a.causal_window_left;
      set_bits(at, row + std::max<int64_t>(from, 0), row + std::min(position + 1, keys));
      const TensorView span = a.bidirectional_ranges.select(0, qo[b] + i);
      const int64_t nearest = a.range_window_left <= 0 ? 0 : position - a.range_window_left + 1;
      set_bits(at, row + std::max({op::index_at(span, 0), nearest, int64_t{0}}),
               row + std::min(op::index_at(span, 1), keys - 1) + 1);
    }
    at += ceil_div(rows * keys, 8);
  }
  p.causal = false;
  set_work(p);
  return p;
}
void validate_run(const BatchRangesRun& a) {
  const Plan& p = plan_of_run(a);
  check_paged_run(p, a, "paged_kv_indices");
  FI_CHECK(a.bidirectional_ranges.size(0) == p.nnz_qo && a.bidirectional_ranges.size(1) == 2, ValueError,
           "bidirectional_ranges is ", to_string(a.bidirectional_ranges), ", but must be [", p.nnz_qo,
           ", 2] (query tokens)");
}
Call call_of_run(const BatchRangesRun& a) { return paged_call(plan_of_run(a), a); }
/// A GPU makes the mask itself.
op::Prepared run_cuda(const BatchRangesRun& a) {
  Plan p = plan_of_run(a);
  p.causal = false;
  set_mask_indptr(p);
  Call c = call_of_run(a);
  c.spans = Spans{a.bidirectional_ranges, a.causal_window_left, a.range_window_left};
  return prepare_cuda(owned(std::move(p)), c);
}
op::Cost cost(const BatchRangesRun& a) { return cost_of(plan_of_run(a), a.q); }
op::Shape ranges_out_shape(const BatchRangesRun& a) { return plan_of_run(a), out_shape(a); }
op::Shape ranges_lse_shape(const BatchRangesRun& a) { return plan_of_run(a), lse_shape(a); }
DType ranges_out_dtype(const BatchRangesRun& a) { return plan_of_run(a).o_data_type; }

PlanRef masked_ref(const BatchRangesRun& a) { return owned(masked_plan(a)); }
using Run = PlanRun<BatchRangesRun, masked_ref, call_of_run>;

constexpr auto ranges_init_fields = table_of(
    paged_init_head<BatchRangesInit>,
    std::array{
        op::attr<&BatchRangesInit::pos_encoding_mode>("pos_encoding_mode", op::choices(kModes, ErrorKind::kKeyError)),
        op::attr<&BatchRangesInit::q_data_type>("q_data_type"),
        op::attr<&BatchRangesInit::kv_data_type>("kv_data_type"),
        op::attr<&BatchRangesInit::o_data_type>("o_data_type"), op::attr<&BatchRangesInit::head_dim_qk>("head_dim_qk"),
        op::attr<&BatchRangesInit::head_dim_vo>("head_dim_vo")});
/// A paged prefill's, but q_data_type may be None, and without what run() takes instead.
constexpr auto ranges_plan_fields = [] {
  constexpr const char* kDropped[] = {"rope_scale",   "rope_theta",    "seq_lens",    "seq_lens_q",
                                      "block_tables", "uniform_q_len", "alibi_slopes"};
  auto all = without(plan_fields, kDropped, op::Field{});
  std::array<op::Field, all.size() - 1> out;
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = std::string_view(all[i].name) == "q_data_type"
                 ? op::attr<&BatchRangesPlan::planned_q_data_type>("q_data_type")
                 : all[i];
  return out;
}();
constexpr auto ranges_size_fields = [] {
  std::array<op::Field, ranges_plan_fields.size()> out;
  size_t n = 0;
  for (const op::Field& f : ranges_plan_fields)
    if (std::string_view(f.name) != "non_blocking") out[n++] = f;
  out[n] = op::result<&BatchRangesWorkspaceSize::sizes>("sizes", "2", DType::kI64, op::as_numbers);
  return out;
}();
constexpr op::Field ranges_run_fields[] = {
    op::self<&BatchRangesRun::self>(),
    op::in<&BatchRangesRun::q>("q", "n h d", op::floats),
    op::paged<&BatchRangesRun::paged_kv_cache>("paged_kv_cache", nullptr, kCacheTypes),
    op::in<&BatchRangesRun::bidirectional_ranges>("bidirectional_ranges", "n 2", op::indices, op::any_layout),
    op::attr<&BatchRangesRun::causal_window_left>("causal_window_left"),
    op::attr<&BatchRangesRun::range_window_left>("range_window_left"),
    op::attr<&BatchRangesRun::q_scale>("q_scale"),
    op::attr<&BatchRangesRun::k_scale>("k_scale"),
    op::attr<&BatchRangesRun::v_scale>("v_scale"),
    op::out<&BatchRangesRun::out>("out", nullptr, op::floats, op::shape<ranges_out_shape>, op::dtype<ranges_out_dtype>),
    op::out<&BatchRangesRun::lse>("lse", nullptr, DType::kF32, op::shape<ranges_lse_shape>,
                                  op::when<&BatchRangesRun::return_lse>),
    op::attr<&BatchRangesRun::return_lse>("return_lse"),
    op::attr<&BatchRangesRun::enable_pdl>("enable_pdl"),
    op::paged<&BatchRangesRun::kv_cache_sf>("kv_cache_sf", nullptr, kScaleTypes),
};
constexpr op::Field ranges_forward_fields[] = {
    op::self<&BatchRangesRun::self>(),
    op::in<&BatchRangesRun::q>("q", "n h d", op::floats),
    op::paged<&BatchRangesRun::paged_kv_cache>("paged_kv_cache", nullptr, kCacheTypes),
    op::in<&BatchRangesRun::bidirectional_ranges>("bidirectional_ranges", "n 2", op::indices, op::any_layout),
    op::attr<&BatchRangesRun::causal_window_left>("causal_window_left"),
    op::attr<&BatchRangesRun::range_window_left>("range_window_left"),
    op::attr<&BatchRangesRun::q_scale>("q_scale"),
    op::attr<&BatchRangesRun::k_scale>("k_scale"),
    op::attr<&BatchRangesRun::v_scale>("v_scale"),
    op::attr<&BatchRangesRun::enable_pdl>("enable_pdl"),
    op::paged<&BatchRangesRun::kv_cache_sf>("kv_cache_sf", nullptr, kScaleTypes),
    op::attr<&BatchRangesRun::return_lse>("return_lse", op::internal),
    op::result<&BatchRangesRun::out>("out", nullptr, op::floats, op::shape<ranges_out_shape>,
                                     op::dtype<ranges_out_dtype>),
    op::result<&BatchRangesRun::lse>("lse", nullptr, DType::kF32, op::shape<ranges_lse_shape>,
                                     op::when<&BatchRangesRun::return_lse>),
};
constexpr op::Candidate init_candidates[] = {op::host<launch_init>()};
constexpr op::Candidate plan_candidates[] = {op::host_arrays<launch_plan>()};
constexpr op::Candidate size_candidates[] = {op::cpu<launch_size>()};
constexpr op::Candidate run_candidates[] = {op::cuda<run_cuda>(), op::cpu<Run::cpu>(), op::reference<Run::reference>()};

}  // namespace

constinit const op::Op ranges_init_op = op::define<BatchRangesInit, validate_init>(
    kInit, kRangesModule, "Paged prefill, causal except for ranges of keys that are visible in both directions.",
    ranges_init_fields, init_candidates, nullptr, {}, &plan_type);
constinit const op::Op ranges_plan_op = op::define<BatchRangesPlan, check_plan>(
    kPlan, kRangesModule, "Takes the page table and everything that is the same for all layers of a step.",
    ranges_plan_fields, plan_candidates, nullptr, {}, &plan_type);
constinit const op::Op ranges_run_op = op::define<BatchRangesRun, validate_run, cost>(
    kRun, kRangesModule, "Paged prefill, causal or within each row's span of keys; lse in base 2.", ranges_run_fields,
    run_candidates, ops::attention::ranges_cases, {}, &plan_type);
constinit const op::Op ranges_forward_op = op::define<BatchRangesRun, validate_run, cost>(
    "BatchPrefillWithCausalBidirectionalRangesWrapper.forward", kRangesModule, "run() by its old name.",
    ranges_forward_fields, run_candidates, ops::attention::ranges_cases, {}, &plan_type);
constinit const op::Op ranges_size_op = op::define<BatchRangesWorkspaceSize>(
    "BatchPrefillWithCausalBidirectionalRangesWrapper.workspace_size", kRangesModule,
    "Bytes of partial results and of index arrays that a plan takes.", ranges_size_fields, size_candidates, nullptr, {},
    &plan_type);
constinit const op::Op ranges_reset_op =
    reset_op("BatchPrefillWithCausalBidirectionalRangesWrapper.reset_workspace_buffer", kRangesModule, &plan_type);
constinit const op::Op ranges_prewarm_op = prewarm_op(
    "BatchPrefillWithCausalBidirectionalRangesWrapper.prewarm_paged_kv_stride_variant", kRangesModule, &plan_type);
}  // namespace attention

using Ranges = BatchPrefillWithCausalBidirectionalRangesWrapper;
Ranges::BatchPrefillWithCausalBidirectionalRangesWrapper(BatchRangesInit a)
    : self_(attention::kClass, attention::kRangesModule, attention::plan_type) {
  a.self = &self_;
  op::call(attention::ranges_init_op, a);
}
void Ranges::plan(BatchRangesPlan a) {
  a.self = &self_;
  op::call(attention::ranges_plan_op, a);
}
AttentionResult Ranges::run(BatchRangesRun a) {
  a.self = &self_;
  return op::call(attention::ranges_run_op, a);
}
AttentionResult Ranges::forward(BatchRangesRun a) {
  a.self = &self_;
  return op::call(attention::ranges_forward_op, a);
}
std::pair<int64_t, int64_t> Ranges::workspace_size(const BatchRangesPlan& a) {
  BatchRangesWorkspaceSize b{{a}, {}};
  b.self = &self_;
  const Tensor sizes = op::call(attention::ranges_size_op, b);
  return {sizes.data_as<int64_t>()[0], sizes.data_as<int64_t>()[1]};
}
void Ranges::reset_workspace_buffer(const TensorView& float_workspace, const TensorView& int_workspace) {
  op::call(attention::ranges_reset_op, attention::ResetWorkspace{&self_, float_workspace, int_workspace});
}

}  // namespace flashinfer
