// SPDX-License-Identifier: Apache-2.0
// Grouped products with FP4 weights, each group's scale factors padded to whole tiles.
#include "flashinfer/core/int_math.h"
#include "flashinfer/core/layout_error.h"
#include "flashinfer/ops/gemm/grouped/grouped.h"

#include "flashinfer/ops/gemm/cases.h"
#include "flashinfer/ops/gemm/grouped/tables.h"
#include "flashinfer/ops/gemm/ops.h"

namespace flashinfer {
namespace {

using gemm::GroupedWork;
namespace family = ops::gemm;

void check_tile(const char* what, int64_t tile, std::initializer_list<int64_t> legal) {
  for (const int64_t t : legal)
    if (tile == t) return;
  throw_error(ErrorKind::kValueError, str("", what, " is ", tile, ", which no back end has"));
}
/// Where the scale factors of group e start, in rows.
int64_t padded_start(const TensorView& indptr, int64_t e) { return (gemm::index_at(indptr, e) + 127 * e) / 128 * 128; }

template <class B>
void set_padded_scales(const B& a, bool e8m0, int32_t block, GroupedWork& w) {
  const int64_t k = w.depth(), experts = a.b.size(0), columns = k / block;
  w.index.factor_pad = 128;
  FI_CHECK(k % block == 0, ValueError, "k is ", k, " (from a.shape[1]), but must be a multiple of ", block);
  int64_t least = 0;
  for (size_t e = 0; e < w.groups.size(); ++e) {
    gemm::Group& g = w.groups[e];
    g.sf_first = padded_start(a.m_indptr, static_cast<int64_t>(e));
    if (g.rows) least = g.sf_first + round_up(g.rows, 128);
  }
  // Offsets on a GPU are not read: any that cover all rows of a.
  const bool known = gemm::on_host(a.m_indptr);
  const int64_t m = a.a.size(0), line = sf_padded_columns(SfLayout::k128x4, columns);
  const int64_t most = known ? std::max(least, padded_start(a.m_indptr, experts)) : (m + 127 * experts) / 128 * 128;
  const int64_t rows = line ? a.a_scale.numel() / line : 0;
  FI_CHECK_LAYOUT(rows * line == a.a_scale.numel() && rows >= least && rows <= most, a.a_scale.is_contiguous(),
                  "a_scale is ", to_string(a.a_scale), ", but the groups need between ", least, " and ", most,
                  " rows of ", line, " scale factors, contiguous");
  w.a_sf = {.bytes = static_cast<const uint8_t*>(a.a_scale.data()),
            .columns = columns,
            .block = block,
            .layout = SfLayout::k128x4,
            .e8m0 = e8m0};
  w.b_sf = gemm::check_sf("b_scale", a.b_scale, SfLayout::k128x4, e8m0, experts, a.b.size(1), columns, block);
}
template <class B>
void check_tiles(const B& a) {
  gemm::check_out_dtype(gemm::out_dtype_of(a), gemm::kHalves);
  check_tile("tile_m", a.tile_m, {128});
  check_tile("tile_n", a.tile_n, {32, 64, 128, 192, 256});
  check_tile("tile_k", a.tile_k, {128, 256});
}
GroupedWork work(const GroupGemmMxfp4NtGroupwise& a) {
  check_tiles(a);
  FI_CHECK(a.mma_sm == 1 || a.mma_sm == 2, ValueError, "mma_sm is ", a.mma_sm, ", but must be 1 or 2");
  FI_CHECK(a.b.size(2) * 2 == a.a.size(1), ValueError, "b.shape[2] is ", a.b.size(2), ", but must be ", a.a.size(1) / 2,
           " (k / 2, from a.shape[1])");
  GroupedWork w = gemm::plain_work(a);
  w.b_fp4 = true;
  set_padded_scales(a, true, 32, w);
  return w;
}
GroupedWork work(const GroupGemmNvfp4NtGroupwise& a) {
  check_tiles(a);
  GroupedWork w = gemm::plain_work(a);
  w.a_fp4 = w.b_fp4 = true;
  set_padded_scales(a, false, 16, w);
  gemm::set_alpha(w, a.alpha);
  return w;
}

// ---- references ----
/// The scale factors of a's group e begin at row (m_indptr[e] + 127 e) / 128 * 128.
template <class B>
void reference_padded(const B& a, bool a_fp4, bool e8m0, int64_t block, const std::optional<TensorView>& alpha) {
  const int64_t m = a.a.size(0), n = a.b.size(1), depth = a.a.size(1) * (a_fp4 ? 2 : 1);
  const ref::ByteScales of_a{a.a_scale, SfLayout::k128x4, e8m0, m, depth, block},
      of_b{a.b_scale, SfLayout::k128x4, e8m0, n, depth, block};
  const ref::MatrixOf matrix_of = ref::by_offsets(a.m_indptr);
  const auto scale_row = [&](int64_t r) {
    const int64_t e = matrix_of(r), begin = static_cast<int64_t>(ref::get(a.m_indptr, e));
    return (begin + 127 * e) / 128 * 128 + r - begin;
  };
  ref::grouped_product(
      {.rows = m,
       .n = n,
       .depth = depth,
       .matrix_of = matrix_of,
       .a = [&](int64_t r, int64_t k) { return ref::narrow_at(a.a, a_fp4, r, k) * of_a.at(0, scale_row(r), k); },
       .b = [&](int64_t e, int64_t j, int64_t k) { return ref::stacked_at(a.b, true, e, j, k) * of_b.at(e, j, k); },
       .alpha = [&](int64_t e) { return alpha ? ref::get(*alpha, e) : 1.0; }},
      *a.out);
}
void reference(const GroupGemmMxfp4NtGroupwise& a) { reference_padded(a, false, true, 32, {}); }
void reference(const GroupGemmNvfp4NtGroupwise& a) { reference_padded(a, true, false, 16, a.alpha); }

using Mxfp4 = GroupGemmMxfp4NtGroupwise;
constexpr op::Field mxfp4_fields[] = {op::in<&Mxfp4::a>("a", "m k", op::fp8),
                                      op::in<&Mxfp4::b>("b", "e n kb", DType::kU8),
                                      op::in<&Mxfp4::a_scale>("a_scale", nullptr, gemm::kByte),
                                      op::in<&Mxfp4::b_scale>("b_scale", nullptr, gemm::kByte),
                                      gemm::m_indptr<Mxfp4>,
                                      op::attr<&Mxfp4::mma_sm>("mma_sm"),
                                      op::attr<&Mxfp4::tile_m>("tile_m"),
                                      op::attr<&Mxfp4::tile_n>("tile_n"),
                                      op::attr<&Mxfp4::tile_k>("tile_k"),
                                      op::attr<&Mxfp4::swap_ab>("swap_ab"),
                                      gemm::out_maybe<Mxfp4>,
                                      op::attr<&Mxfp4::out_dtype>("out_dtype")};
using Nvfp4 = GroupGemmNvfp4NtGroupwise;
constexpr op::Field nvfp4_fields[] = {op::in<&Nvfp4::a>("a", "m kb", gemm::kFp4Bytes),
                                      op::in<&Nvfp4::b>("b", "e n kb", gemm::kFp4Bytes),
                                      op::in<&Nvfp4::a_scale>("a_scale", nullptr, gemm::kSfBytes),
                                      op::in<&Nvfp4::b_scale>("b_scale", nullptr, gemm::kSfBytes),
                                      gemm::m_indptr<Nvfp4>,
                                      op::in<&Nvfp4::alpha>("alpha", "e", DType::kF32),
                                      op::attr<&Nvfp4::tile_m>("tile_m"),
                                      op::attr<&Nvfp4::tile_n>("tile_n"),
                                      op::attr<&Nvfp4::tile_k>("tile_k"),
                                      op::attr<&Nvfp4::swap_ab>("swap_ab"),
                                      gemm::out_maybe<Nvfp4>,
                                      op::attr<&Nvfp4::out_dtype>("out_dtype")};
constexpr const char* kModule = "flashinfer.gemm";

}  // namespace

namespace ops::gemm {
constinit const op::Op group_gemm_mxfp4 =
    op::also_named(flashinfer::gemm::define_grouped<Mxfp4, work, reference>(
                       "group_gemm_mxfp4_nt_groupwise", kModule, "Each group of MXFP8 rows times an MXFP4 matrix.",
                       mxfp4_fields, group_gemm_mxfp4_cases),
                   "group_gemm_mxfp8_mxfp4_nt_groupwise");
constinit const op::Op group_gemm_nvfp4 = flashinfer::gemm::define_grouped<Nvfp4, work, reference>(
    "group_gemm_nvfp4_nt_groupwise", kModule, "Each group of NVFP4 rows times an NVFP4 matrix.", nvfp4_fields,
    group_gemm_nvfp4_cases);
}  // namespace ops::gemm

Tensor group_gemm_mxfp4_nt_groupwise(const Mxfp4& a) { return op::call(family::group_gemm_mxfp4, a); }
Tensor group_gemm_nvfp4_nt_groupwise(const Nvfp4& a) { return op::call(family::group_gemm_nvfp4, a); }

}  // namespace flashinfer
