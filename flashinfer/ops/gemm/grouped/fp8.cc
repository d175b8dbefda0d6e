// SPDX-License-Identifier: Apache-2.0
// Grouped products of FP8 with f32 scales of blocks.
#include "flashinfer/ops/gemm/grouped/grouped.h"

#include "flashinfer/ops/gemm/cases.h"
#include "flashinfer/ops/gemm/grouped/tables.h"
#include "flashinfer/ops/gemm/ops.h"

namespace flashinfer {
namespace {

using gemm::GroupedWork;
namespace family = ops::gemm;

void set_grids(const TensorView& a_scale, const TensorView& b_scale, bool mn, const std::vector<int64_t>& g,
               GroupedWork& w) {
  gemm::check_granularity(g);
  w.a_grid = gemm::check_grid("a_scale", a_scale, mn, 0, w.a.size(0), w.a.size(1), g[0], g[2]);
  w.b_grid = gemm::check_grid("b_scale", b_scale, mn, w.b.size(0), w.b.size(1), w.a.size(1), g[1], g[2]);
  w.grid_k = g[2];
}
GroupedWork work(const GroupGemmFp8NtGroupwise& a) {
  gemm::check_out_dtype(gemm::out_dtype_of(a), gemm::kHalves);
  FI_CHECK(a.mma_sm == 1 || a.mma_sm == 2, ValueError, "mma_sm is ", a.mma_sm, ", but must be 1 or 2");
  gemm::check_alignment(a.m_indptr, a.segment_alignment);
  GroupedWork w = gemm::plain_work(a);
  set_grids(a.a_scale, a.b_scale, a.scale_major_mode == "MN", a.scale_granularity_mnk, w);
  return w;
}
/// `checked`: the groups, where they can be read.
template <class B>
GroupedWork indexed_work(const B& a, std::vector<gemm::Group>* checked = nullptr) {
  GroupedWork w{.a = a.a, .b = a.b, .out = *a.out};
  std::vector<gemm::Group> groups = gemm::set_rows(w, a.m_indices);
  if (checked) *checked = std::move(groups);
  set_grids(a.a_scale, a.b_scale, false, a.scale_granularity_mnk, w);
  return w;
}
GroupedWork work(const GroupDeepgemmFp8NtGroupwise& a) {
  gemm::check_out_dtype(gemm::out_dtype_of(a), gemm::kHalves);
  return indexed_work(a);
}
GroupedWork work(const GroupGemmFp8NtGroupwiseContiguous& a) {
  gemm::check_out_dtype(gemm::out_dtype_of(a), DType::kBF16);
  std::vector<gemm::Group> groups;
  GroupedWork w = indexed_work(a, &groups);
  int64_t row = 0, last = -1;
  for (const gemm::Group& g : groups) {
    FI_CHECK(g.row == row && g.weight > last && g.row % 128 == 0, ValueError, "m_indices[", g.row, "] is ", g.weight,
             " after ", last, ", but indices must not decrease, have no -1, and change at multiples of 128 rows");
    row = g.row + g.rows, last = g.weight;
  }
  FI_CHECK(row == a.a.size(0) || (groups.empty() && !gemm::on_host(a.m_indices)), ValueError, "m_indices[", row,
           "] is -1, but every row needs a matrix");
  return w;
}
GroupedWork work(const BatchDeepgemmFp8NtGroupwise& a) {
  gemm::check_out_dtype(gemm::out_dtype_of(a), gemm::kHalves);
  gemm::check_granularity(a.scale_granularity_mnk);
  const std::vector<int64_t>& g = a.scale_granularity_mnk;
  const int64_t experts = a.a.size(0), rows = a.a.size(1), k = a.a.size(2);
  FI_CHECK(rows % g[0] == 0, ValueError, "scale_granularity_mnk[0] is ", g[0], ", but must divide a.shape[1], ", rows);
  gemm::check_grid("a_scale", a.a_scale, false, experts, rows, k, g[0], g[2]);
  GroupedWork w{.a = a.a.view({experts * rows, k}), .b = a.b, .out = a.out->view({experts * rows, a.b.size(1)})};
  const TensorView scales = a.a_scale.view({experts * a.a_scale.size(1), a.a_scale.size(2)});
  set_grids(scales, a.b_scale, false, g, w);
  gemm::set_counts(w, a.masked_m, rows);
  return w;
}

// ---- references ----
template <class B>
void reference_rows(const B& a, const ref::MatrixOf& matrix_of, bool k_first) {
  const std::vector<int64_t>& g = a.scale_granularity_mnk;
  const ref::BlockGrid of_a{a.a_scale, k_first, g[0], g[2]}, of_b{a.b_scale, k_first, g[1], g[2]};
  ref::grouped_product(
      {.rows = a.a.size(0),
       .n = a.b.size(1),
       .depth = a.a.size(1),
       .matrix_of = matrix_of,
       .a = [&](int64_t r, int64_t k) { return ref::at(a.a, {r, k}) * of_a.at(0, r, k); },
       .b = [&](int64_t e, int64_t j, int64_t k) { return ref::at(a.b, {e, j, k}) * of_b.at(e, j, k); }},
      *a.out);
}
void reference(const GroupGemmFp8NtGroupwise& a) {
  reference_rows(a, ref::by_offsets(a.m_indptr), a.scale_major_mode == "MN");
}
void reference(const GroupDeepgemmFp8NtGroupwise& a) { reference_rows(a, ref::by_indices(a.m_indices), false); }
void reference(const GroupGemmFp8NtGroupwiseContiguous& a) { reference_rows(a, ref::by_indices(a.m_indices), false); }
void reference(const BatchDeepgemmFp8NtGroupwise& a) {
  const std::vector<int64_t>& g = a.scale_granularity_mnk;
  const int64_t m = a.a.size(1);
  const ref::BlockGrid of_a{a.a_scale, false, g[0], g[2]}, of_b{a.b_scale, false, g[1], g[2]};
  ref::batched_product(
      {.rows = a.a.size(0) * m,
       .n = a.b.size(1),
       .depth = a.a.size(2),
       .matrix_of = ref::by_counts(a.masked_m, m),
       .a = [&](int64_t r, int64_t k) { return ref::at(a.a, {r / m, r % m, k}) * of_a.at(r / m, r % m, k); },
       .b = [&](int64_t e, int64_t j, int64_t k) { return ref::at(a.b, {e, j, k}) * of_b.at(e, j, k); }},
      *a.out);
}

template <class B>
constexpr op::Field granularity =
    op::attr<&B::scale_granularity_mnk>("scale_granularity_mnk", op::literal("(1, 128, 128)"));
template <class B, auto Member>
constexpr op::Field f32_scale(const char* name) {
  return op::in<Member>(name, nullptr, DType::kF32, op::any_layout);
}

using Groupwise = GroupGemmFp8NtGroupwise;
constexpr op::Field groupwise_fields[] = {
    op::in<&Groupwise::a>("a", "m k", op::fp8),
    op::in<&Groupwise::b>("b", "e n k", op::fp8),
    f32_scale<Groupwise, &Groupwise::a_scale>("a_scale"),
    f32_scale<Groupwise, &Groupwise::b_scale>("b_scale"),
    gemm::m_indptr<Groupwise>,
    granularity<Groupwise>,
    op::attr<&Groupwise::scale_major_mode>("scale_major_mode", op::choices("MN|K")),
    op::attr<&Groupwise::mma_sm>("mma_sm"),
    gemm::out_maybe<Groupwise>,
    op::attr<&Groupwise::out_dtype>("out_dtype"),
    op::attr<&Groupwise::backend>("backend", op::backends("trtllm:cuda|cutlass:cuda|cutile:cuda|auto")),
    op::attr<&Groupwise::segment_alignment>("segment_alignment")};
using Deep = GroupDeepgemmFp8NtGroupwise;
constexpr op::Field deep_fields[] = {op::in<&Deep::a>("a", "m k", DType::kF8E4M3),
                                     op::in<&Deep::b>("b", "e n k", DType::kF8E4M3),
                                     f32_scale<Deep, &Deep::a_scale>("a_scale"),
                                     f32_scale<Deep, &Deep::b_scale>("b_scale"),
                                     op::in<&Deep::m_indices>("m_indices", "m", DType::kI32),
                                     granularity<Deep>,
                                     gemm::out_maybe<Deep>,
                                     op::attr<&Deep::out_dtype>("out_dtype")};
using Contiguous = GroupGemmFp8NtGroupwiseContiguous;
constexpr op::Field contiguous_fields[] = {op::in<&Contiguous::a>("a", "m k", DType::kF8E4M3),
                                           op::in<&Contiguous::b>("b", "e n k", DType::kF8E4M3),
                                           f32_scale<Contiguous, &Contiguous::a_scale>("a_scale"),
                                           f32_scale<Contiguous, &Contiguous::b_scale>("b_scale"),
                                           op::in<&Contiguous::m_indices>("m_indices", "m", DType::kI32),
                                           granularity<Contiguous>,
                                           gemm::out_maybe<Contiguous>,
                                           op::attr<&Contiguous::out_dtype>("out_dtype"),
                                           op::attr<&Contiguous::validate_indices>("validate_indices")};
using Masked = BatchDeepgemmFp8NtGroupwise;
constexpr op::Field masked_fields[] = {
    op::in<&Masked::a>("a", "e m k", DType::kF8E4M3, op::contiguous),
    op::in<&Masked::b>("b", "e n k", DType::kF8E4M3),
    op::in<&Masked::a_scale>("a_scale", nullptr, DType::kF32, op::contiguous),
    f32_scale<Masked, &Masked::b_scale>("b_scale"),
    op::in<&Masked::masked_m>("masked_m", "e", DType::kI32),
    op::attr<&Masked::expected_m>("expected_m", op::required),
    granularity<Masked>,
    op::out<&Masked::out>("out", "e m n", op::dtype<gemm::out_dtype_of<Masked>>, op::contiguous),
    op::attr<&Masked::out_dtype>("out_dtype"),
    op::attr<&Masked::backend>("backend", op::backends("deepgemm:cuda|cake:cuda|auto"))};
constexpr const char* kModule = "flashinfer.gemm";

}  // namespace

namespace ops::gemm {
constinit const op::Op group_gemm_fp8_groupwise = flashinfer::gemm::define_grouped<Groupwise, work, reference>(
    "group_gemm_fp8_nt_groupwise", kModule, "Each group of rows times a matrix, FP8 with f32 scales of blocks.",
    groupwise_fields, group_gemm_fp8_groupwise_cases);
constinit const op::Op group_deepgemm_fp8 = flashinfer::gemm::define_grouped<Deep, work, reference>(
    "group_deepgemm_fp8_nt_groupwise", kModule,
    "Each row of a times the matrix that its index names, FP8 with f32 scales of blocks.", deep_fields,
    group_deepgemm_fp8_cases);
constinit const op::Op group_gemm_fp8_contiguous = flashinfer::gemm::define_grouped<Contiguous, work, reference>(
    "group_gemm_fp8_nt_groupwise_contiguous", kModule,
    "group_deepgemm_fp8_nt_groupwise with ascending indices in groups of 128 rows.", contiguous_fields,
    group_gemm_fp8_contiguous_cases);
constinit const op::Op batch_deepgemm_fp8 = flashinfer::gemm::define_grouped<Masked, work, reference>(
    "batch_deepgemm_fp8_nt_groupwise", kModule,
    "The first masked_m rows of each matrix of a batch, FP8 with f32 scales of blocks.", masked_fields,
    batch_deepgemm_fp8_cases);
}  // namespace ops::gemm

Tensor group_gemm_fp8_nt_groupwise(const Groupwise& a) { return op::call(family::group_gemm_fp8_groupwise, a); }
Tensor group_deepgemm_fp8_nt_groupwise(const Deep& a) { return op::call(family::group_deepgemm_fp8, a); }
Tensor group_gemm_fp8_nt_groupwise_contiguous(const Contiguous& a) {
  return op::call(family::group_gemm_fp8_contiguous, a);
}
Tensor batch_deepgemm_fp8_nt_groupwise(const Masked& a) { return op::call(family::batch_deepgemm_fp8, a); }

}  // namespace flashinfer
