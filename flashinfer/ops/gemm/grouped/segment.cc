// SPDX-License-Identifier: Apache-2.0
// SegmentGEMMWrapper.
#include "flashinfer/ops/gemm/grouped/grouped.h"

#include "flashinfer/ops/gemm/cases.h"
#include "flashinfer/ops/gemm/grouped/tables.h"
#include "flashinfer/ops/gemm/ops.h"

namespace flashinfer {
namespace {

using gemm::GroupedWork;
namespace family = ops::gemm;

struct SegmentState {
  std::string backend = "auto";
};
constexpr op::Field segment_state_fields[] = {op::attr<&SegmentState::backend>("backend")};
constexpr op::StateType segment_state = op::state_type<SegmentState>(segment_state_fields, "forward=run");

void launch_segment_init(const SegmentGemmInit& a) {
  a.self->set(SegmentState{a.backend});
  a.self->planned = true;
}
int64_t segment_columns(const SegmentGemmRun& a) { return a.weights.size(a.weight_column_major ? 1 : 2); }
op::Shape segment_shape(const SegmentGemmRun& a) { return {2, {a.x.size(0), segment_columns(a)}}; }

/// The segments as the kernel of a GPU finds them.
gemm::GroupIndex index_of(const SegmentGemmRun& a) {
  return {.kind = a.seg_indptr ? GemmGroups::kOffsets : GemmGroups::kLengths,
          .index = a.seg_indptr ? a.seg_indptr : a.seg_lens,
          .weights = a.weight_indices,
          .groups = a.batch_size,
          .matrices = a.weights.size(0)};
}
/// Arrays on a GPU: their extents are checked alone.
std::vector<gemm::Group> groups_of(const SegmentGemmRun& a) {
  FI_CHECK(a.seg_lens || a.seg_indptr, ValueError,
           "seg_lens and seg_indptr are both None, but one of them must be given");
  std::vector<gemm::Group> out;
  if (a.seg_indptr) {
    FI_CHECK(a.seg_indptr->size(0) == a.batch_size + 1, ValueError, "seg_indptr.shape[0] is ", a.seg_indptr->size(0),
             ", but batch_size is ", a.batch_size, ", which needs ", a.batch_size + 1);
    if (gemm::on_host(*a.seg_indptr)) out = gemm::groups_of("seg_indptr", *a.seg_indptr, a.x.size(0));
  } else {
    FI_CHECK(a.seg_lens->size(0) == a.batch_size, ValueError, "seg_lens.shape[0] is ", a.seg_lens->size(0),
             ", but batch_size is ", a.batch_size);
    int64_t row = 0;
    for (int64_t i = 0; i < a.batch_size && gemm::on_host(*a.seg_lens); ++i) {
      const int64_t n = gemm::index_at(*a.seg_lens, i);
      FI_CHECK(n >= 0 && row + n <= a.x.size(0), ValueError, "seg_lens[", i, "] is ", n, " after ", row,
               " rows, but x has ", a.x.size(0));
      out.push_back({.row = row, .rows = n, .weight = i});
      row += n;
    }
  }
  if (a.seg_lens && a.seg_indptr) {
    FI_CHECK(a.seg_lens->size(0) == a.batch_size, ValueError, "seg_lens.shape[0] is ", a.seg_lens->size(0),
             ", but batch_size is ", a.batch_size);
    for (size_t i = 0; i < out.size(); ++i)
      FI_CHECK(gemm::index_at(*a.seg_lens, static_cast<int64_t>(i)) == out[i].rows, ValueError, "seg_lens[", i, "] is ",
               gemm::index_at(*a.seg_lens, static_cast<int64_t>(i)), ", but seg_indptr gives the segment ", out[i].rows,
               " rows");
  }
  if (a.weight_indices)
    FI_CHECK(a.weight_indices->size(0) == a.batch_size, ValueError, "weight_indices.shape[0] is ",
             a.weight_indices->size(0), ", but batch_size is ", a.batch_size);
  for (size_t i = 0; i < out.size(); ++i) {
    if (a.weight_indices) out[i].weight = gemm::index_at(*a.weight_indices, static_cast<int64_t>(i));
    FI_CHECK(0 <= out[i].weight && out[i].weight < a.weights.size(0), ValueError, "segment ", i, " takes weight ",
             out[i].weight, ", but there are ", a.weights.size(0));
  }
  return out;
}
/// FLASHINFER_CUDA_CHECK_INDICES: the checks of the host with copies; the kernel of a GPU needs no groups.
std::vector<gemm::Group> segments(const SegmentGemmRun& a) {
  if (a.x.device() == kCpu || !op::checks_device_indices(a.x.device())) return groups_of(a);
  SegmentGemmRun on_host = a;
  std::vector<op::HostIndices> copies;
  copies.reserve(3);
  for (std::optional<TensorView>* t : {&on_host.seg_lens, &on_host.seg_indptr, &on_host.weight_indices})
    if (*t) *t = *copies.emplace_back(**t);
  groups_of(on_host);
  return {};
}
GroupedWork work(const SegmentGemmRun& a) {
  FI_CHECK(a.self->planned, RuntimeError, "SegmentGEMMWrapper.run before SegmentGEMMWrapper.__init__");
  const TensorView b = a.weight_column_major ? a.weights : a.weights.transpose(1, 2);
  FI_CHECK(b.size(2) == a.x.size(1), ValueError, "weights is ", to_string(a.weights), ", but x.shape[1] is ",
           a.x.size(1), " and weight_column_major is ", a.weight_column_major ? "True" : "False");
  return {.a = a.x, .b = b, .out = *a.out, .groups = segments(a), .index = index_of(a)};
}
void reference(const SegmentGemmRun& a) {
  const bool transposed = a.weight_column_major;
  const auto segment_of = [&](int64_t row) {
    int64_t begin = 0;
    for (int64_t i = 0; i < a.batch_size; ++i) {
      if (a.seg_indptr) begin = static_cast<int64_t>(ref::get(*a.seg_indptr, i));
      const int64_t end = a.seg_indptr ? static_cast<int64_t>(ref::get(*a.seg_indptr, i + 1))
                                       : begin + static_cast<int64_t>(ref::get(*a.seg_lens, i));
      if (begin <= row && row < end) return i;
      begin = end;
    }
    return int64_t{-1};
  };
  ref::grouped_product(
      {.rows = a.x.size(0),
       .n = a.out->size(1),
       .depth = a.x.size(1),
       .matrix_of =
           [&](int64_t row) {
             const int64_t i = segment_of(row);
             if (i < 0 || !a.weight_indices) return i;
             return static_cast<int64_t>(ref::get(*a.weight_indices, i));
           },
       .a = [&](int64_t r, int64_t k) { return ref::at(a.x, {r, k}); },
       .b = [&](int64_t e, int64_t j,
                int64_t k) { return transposed ? ref::at(a.weights, {e, j, k}) : ref::at(a.weights, {e, k, j}); }},
      *a.out);
}
op::Unsupported no_kernel(const SegmentGemmRun& a) {
  return {str("x is ", name(a.x.dtype()), ", but the kernels multiply bfloat16 and float16")};
}
op::Prepared prepare(const SegmentGemmRun& a) {
  GroupedWork w = work(a);
  if (!gemm::kHalves.has(a.x.dtype())) return no_kernel(a);
  return gemm::prepare(std::move(w));
}
op::Prepared prepare_cuda(const SegmentGemmRun& a, const op::Call& call) {
  const GroupedWork w = work(a);
  if (!gemm::kHalves.has(a.x.dtype())) return no_kernel(a);
  return gemm::prepare_cuda(w, call.device);
}
constexpr op::Field segment_init_fields[] = {
    op::self<&SegmentGemmInit::self>(),
    op::scratch<&SegmentGemmInit::float_workspace_buffer>("float_workspace_buffer", nullptr),
    op::attr<&SegmentGemmInit::backend>("backend", op::choices("auto|sm80|sm90"))};
constexpr op::Field segment_reset_fields[] = {
    op::self<&SegmentGemmReset::self>(),
    op::scratch<&SegmentGemmReset::float_workspace_buffer>("float_workspace_buffer", nullptr),
    op::scratch<&SegmentGemmReset::int_workspace_buffer>("int_workspace_buffer", nullptr)};
using Segment = SegmentGemmRun;
constexpr op::Field segment_fields[] = {
    op::self<&Segment::self>(),
    op::in<&Segment::x>("x", "m k", op::floats, op::any_layout),
    op::in<&Segment::weights>("weights", "w p q", op::same_as("x"), op::any_layout),
    op::attr<&Segment::batch_size>("batch_size", op::required),
    op::attr<&Segment::weight_column_major>("weight_column_major", op::required),
    op::out<&Segment::out>("out", nullptr, op::same_as("x"), op::shape<segment_shape>),
    op::in<&Segment::seg_lens>("seg_lens", "s", op::indices),
    op::in<&Segment::seg_indptr>("seg_indptr", "t", op::indices),
    op::in<&Segment::weight_indices>("weight_indices", "u", op::indices)};
constexpr op::Candidate segment_init_candidates[] = {op::host<launch_segment_init>()};
void launch_segment_reset(const SegmentGemmReset&) {}
constexpr op::Candidate segment_reset_candidates[] = {op::host<launch_segment_reset>()};
constexpr const char* kModule = "flashinfer.gemm";

}  // namespace

namespace ops::gemm {
constinit const op::Op segment_init_op = op::define<SegmentGemmInit>(
    "SegmentGEMMWrapper.__init__", kModule, "Product of each segment of rows with its own weight.", segment_init_fields,
    segment_init_candidates, nullptr, {}, &segment_state);
constinit const op::Op segment_reset_op = op::define<SegmentGemmReset>(
    "SegmentGEMMWrapper.reset_workspace_buffer", kModule, "Another workspace; the CPU needs none.",
    segment_reset_fields, segment_reset_candidates, nullptr, {}, &segment_state);
constinit const op::Op segment_run_op =
    flashinfer::gemm::define_grouped<Segment, work, reference, prepare, prepare_cuda>(
        "SegmentGEMMWrapper.run", kModule, "Each segment of x times the weight of its index.", segment_fields,
        segment_cases, &segment_state);
}  // namespace ops::gemm

SegmentGEMMWrapper::SegmentGEMMWrapper(const TensorView& workspace, const std::string& backend)
    : self_("SegmentGEMMWrapper", kModule, segment_state) {
  op::call(family::segment_init_op,
           SegmentGemmInit{.self = &self_, .float_workspace_buffer = workspace, .backend = backend});
}
void SegmentGEMMWrapper::reset_workspace_buffer(const TensorView& float_workspace, const TensorView& int_workspace) {
  op::call(family::segment_reset_op,
           SegmentGemmReset{
               .self = &self_, .float_workspace_buffer = float_workspace, .int_workspace_buffer = int_workspace});
}
Tensor SegmentGEMMWrapper::run(SegmentGemmRun a) {
  a.self = &self_;
  return op::call(family::segment_run_op, a);
}

}  // namespace flashinfer
