// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/gemm/grouped.h"

#include "flashinfer/ops/gemm/cases.h"
#include "flashinfer/ops/gemm/grouped_work.h"
#include "flashinfer/ops/gemm/ops.h"

namespace flashinfer {
namespace {

using gemm::GroupedWork;
namespace family = ops::gemm;

template <class B>
DType out_dtype_of(const B& a) {
  return a.out_dtype ? *a.out_dtype : a.out ? a.out->dtype() : DType::kBF16;
}
void check_not_both_e5m2(std::string_view op, const TensorView& a, const TensorView& b) {
  FI_CHECK(a.dtype() != DType::kF8E5M2 || b.dtype() != DType::kF8E5M2, ValueError, op,
           ": a.dtype and b.dtype are both float8_e5m2, but one of them must be float8_e4m3fn");
}
void check_tile(std::string_view op, const char* what, int64_t tile, std::initializer_list<int64_t> legal) {
  for (const int64_t t : legal)
    if (tile == t) return;
  throw_error(ErrorKind::kValueError, str(op, ": ", what, " is ", tile, ", which no back end has"));
}
/// `work(a)` checks as it reads; outputs may be absent then.
TensorView out_or_none(const std::optional<TensorView>& out) { return out ? *out : TensorView(); }

// ---- grouped_mm ----

template <class B>
GroupedWork plain_work(std::string_view op, const B& a) {
  return {.a = a.a, .b = a.b, .out = out_or_none(a.out), .groups = gemm::groups_of(op, "m_indptr", a.m_indptr, a.a.size(0))};
}
GroupedWork work(const GroupedMmBf16& a) {
  gemm::check_out_dtype("grouped_mm_bf16", a.out_dtype, op::floats);
  return plain_work("grouped_mm_bf16", a);
}
GroupedWork work(const GroupedMmFp8& a) {
  constexpr const char* kName = "grouped_mm_fp8";
  gemm::check_out_dtype(kName, a.out_dtype, op::floats);
  gemm::check_one(kName, "alpha", a.alpha);
  check_not_both_e5m2(kName, a.a, a.b);
  GroupedWork w = plain_work(kName, a);
  w.alpha = gemm::one_or(a.alpha, 1);
  return w;
}
/// Scale factors of all rows of a together, and of each matrix of b.
template <class B>
void set_scales(std::string_view op, const B& a, bool e8m0, int32_t block, GroupedWork& w) {
  const int64_t k = w.depth();
  FI_CHECK(k % block == 0, ValueError, op, ": k is ", k, " (from a.shape[1]), but must be a multiple of ", block);
  w.a_sf = gemm::check_sf(op, "a_descale", a.a_descale, SfLayout::k128x4, e8m0, 1, a.a.size(0), k / block, block);
  w.b_sf = gemm::check_sf(op, "b_descale", a.b_descale, SfLayout::k128x4, e8m0, a.b.size(0), a.b.size(1), k / block, block);
  for (gemm::Group& g : w.groups) g.sf_first = g.row;
}
GroupedWork work(const GroupedMmMxfp8& a) {
  constexpr const char* kName = "grouped_mm_mxfp8";
  gemm::check_out_dtype(kName, a.out_dtype, op::floats);
  GroupedWork w = plain_work(kName, a);
  set_scales(kName, a, true, 32, w);
  return w;
}
GroupedWork work(const GroupedMmFp4& a) {
  constexpr const char* kName = "grouped_mm_fp4";
  gemm::check_out_dtype(kName, a.out_dtype, op::floats);
  gemm::check_one(kName, "alpha", a.alpha);
  FI_CHECK(a.block_size == 16 || a.block_size == 32, ValueError, kName, ": block_size is ", a.block_size,
           ", but must be 16 (NVFP4) or 32 (MXFP4)");
  const DTypeSet legal = a.block_size == 16 ? DTypeSet(DType::kF8E4M3) | DType::kU8 : DTypeSet(DType::kU8);
  FI_CHECK(legal.has(a.a_descale.dtype()) && legal.has(a.b_descale.dtype()), ValueError, kName, ": a_descale and b_descale are ",
           name(a.a_descale.dtype()), " and ", name(a.b_descale.dtype()), ", but with block_size ", a.block_size, " must be ", to_string(legal));
  GroupedWork w = plain_work(kName, a);
  w.a_fp4 = w.b_fp4 = true;
  w.alpha = gemm::one_or(a.alpha, 1);
  set_scales(kName, a, a.block_size == 32, static_cast<int32_t>(a.block_size), w);
  return w;
}

// ---- f32 scales of blocks ----

void set_grids(std::string_view op, const TensorView& a_scale, const TensorView& b_scale, bool mn, const std::vector<int64_t>& g,
               GroupedWork& w) {
  gemm::check_granularity(op, g);
  w.a_grid = gemm::check_grid(op, "a_scale", a_scale, mn, 0, w.a.size(0), w.a.size(1), g[0], g[2]);
  w.b_grid = gemm::check_grid(op, "b_scale", b_scale, mn, w.b.size(0), w.b.size(1), w.a.size(1), g[1], g[2]);
  w.grid_k = g[2];
}
GroupedWork work(const GroupGemmFp8NtGroupwise& a) {
  constexpr const char* kName = "group_gemm_fp8_nt_groupwise";
  gemm::check_out_dtype(kName, out_dtype_of(a), gemm::kHalves);
  FI_CHECK(a.mma_sm == 1 || a.mma_sm == 2, ValueError, kName, ": mma_sm is ", a.mma_sm, ", but must be 1 or 2");
  FI_CHECK(a.segment_alignment >= 1, ValueError, kName, ": segment_alignment is ", a.segment_alignment, ", but must be at least 1");
  GroupedWork w = plain_work(kName, a);
  set_grids(kName, a.a_scale, a.b_scale, a.scale_major_mode == "MN", a.scale_granularity_mnk, w);
  return w;
}
template <class B>
GroupedWork indexed_work(std::string_view op, const B& a) {
  GroupedWork w{.a = a.a, .b = a.b, .out = out_or_none(a.out), .groups = gemm::groups_of_rows(op, a.m_indices, a.b.size(0))};
  set_grids(op, a.a_scale, a.b_scale, false, a.scale_granularity_mnk, w);
  return w;
}
GroupedWork work(const GroupDeepgemmFp8NtGroupwise& a) {
  gemm::check_out_dtype("group_deepgemm_fp8_nt_groupwise", out_dtype_of(a), gemm::kHalves);
  return indexed_work("group_deepgemm_fp8_nt_groupwise", a);
}
GroupedWork work(const GroupGemmFp8NtGroupwiseContiguous& a) {
  constexpr const char* kName = "group_gemm_fp8_nt_groupwise_contiguous";
  gemm::check_out_dtype(kName, out_dtype_of(a), DType::kBF16);
  GroupedWork w = indexed_work(kName, a);
  int64_t row = 0, last = -1;
  for (const gemm::Group& g : w.groups) {
    FI_CHECK(g.row == row && g.weight > last && g.row % 128 == 0, ValueError, kName, ": m_indices[", g.row, "] is ", g.weight, " after ", last,
             ", but indices must not fall, have no -1, and change at multiples of 128 rows");
    row = g.row + g.rows, last = g.weight;
  }
  FI_CHECK(row == a.a.size(0), ValueError, kName, ": m_indices[", row, "] is -1, but every row needs a matrix");
  return w;
}
GroupedWork work(const BatchDeepgemmFp8NtGroupwise& a) {
  constexpr const char* kName = "batch_deepgemm_fp8_nt_groupwise";
  gemm::check_out_dtype(kName, out_dtype_of(a), gemm::kHalves);
  gemm::check_granularity(kName, a.scale_granularity_mnk);
  const std::vector<int64_t>& g = a.scale_granularity_mnk;
  const int64_t experts = a.a.size(0), rows = a.a.size(1), k = a.a.size(2);
  FI_CHECK(rows % g[0] == 0, ValueError, kName, ": scale_granularity_mnk[0] is ", g[0], ", but must divide a.shape[1], ", rows);
  gemm::check_grid(kName, "a_scale", a.a_scale, false, experts, rows, k, g[0], g[2]);
  GroupedWork w{.a = a.a.view({experts * rows, k}), .b = a.b, .out = {}};
  if (a.out) w.out = a.out->view({experts * rows, a.b.size(1)});
  const TensorView scales = a.a_scale.view({experts * a.a_scale.size(1), a.a_scale.size(2)});
  set_grids(kName, scales, a.b_scale, false, g, w);
  for (int64_t e = 0; e < experts; ++e) {
    const int64_t n = gemm::index_at(a.masked_m, e);
    FI_CHECK(0 <= n && n <= rows, ValueError, kName, ": masked_m[", e, "] is ", n, ", but a has ", rows, " rows a matrix (from a.shape[1])");
    w.groups.push_back({.row = e * rows, .rows = n, .weight = e});
  }
  return w;
}

// ---- FP4 weights, each group's scales padded ----

/// Where the scale factors of group e start, in rows.
int64_t padded_start(const TensorView& indptr, int64_t e) { return (gemm::index_at(indptr, e) + 127 * e) / 128 * 128; }

template <class B>
void set_padded_scales(std::string_view op, const B& a, bool e8m0, int32_t block, GroupedWork& w) {
  const int64_t k = w.depth(), experts = a.b.size(0), columns = k / block;
  FI_CHECK(k % block == 0, ValueError, op, ": k is ", k, " (from a.shape[1]), but must be a multiple of ", block);
  int64_t least = 0;
  for (size_t e = 0; e < w.groups.size(); ++e) {
    gemm::Group& g = w.groups[e];
    g.sf_first = padded_start(a.m_indptr, static_cast<int64_t>(e));
    if (g.rows) least = g.sf_first + sf_round_up(g.rows, 128);
  }
  const int64_t most = std::max(least, padded_start(a.m_indptr, experts)), line = sf_padded_columns(SfLayout::k128x4, columns);
  const int64_t rows = line ? a.a_scale.numel() / line : 0;
  FI_CHECK(rows * line == a.a_scale.numel() && rows >= least && rows <= most && a.a_scale.is_contiguous(), ValueError, op, ": a_scale is ",
           to_string(a.a_scale), ", but the groups need between ", least, " and ", most, " rows of ", line, " scale factors, contiguous");
  w.a_sf = {.bytes = static_cast<const uint8_t*>(a.a_scale.data()), .columns = columns, .block = block, .layout = SfLayout::k128x4,
            .e8m0 = e8m0};
  w.b_sf = gemm::check_sf(op, "b_scale", a.b_scale, SfLayout::k128x4, e8m0, experts, a.b.size(1), columns, block);
}
template <class B>
void check_tiles(std::string_view op, const B& a) {
  gemm::check_out_dtype(op, out_dtype_of(a), gemm::kHalves);
  check_tile(op, "tile_m", a.tile_m, {128});
  check_tile(op, "tile_n", a.tile_n, {32, 64, 128, 192, 256});
  check_tile(op, "tile_k", a.tile_k, {128, 256});
}
GroupedWork work(const GroupGemmMxfp4NtGroupwise& a) {
  constexpr const char* kName = "group_gemm_mxfp4_nt_groupwise";
  check_tiles(kName, a);
  FI_CHECK(a.mma_sm == 1 || a.mma_sm == 2, ValueError, kName, ": mma_sm is ", a.mma_sm, ", but must be 1 or 2");
  FI_CHECK(a.b.size(2) * 2 == a.a.size(1), ValueError, kName, ": b.shape[2] is ", a.b.size(2), ", but must be ", a.a.size(1) / 2,
           " (k / 2, from a.shape[1])");
  GroupedWork w = plain_work(kName, a);
  w.b_fp4 = true;
  set_padded_scales(kName, a, true, 32, w);
  return w;
}
GroupedWork work(const GroupGemmNvfp4NtGroupwise& a) {
  constexpr const char* kName = "group_gemm_nvfp4_nt_groupwise";
  check_tiles(kName, a);
  GroupedWork w = plain_work(kName, a);
  w.a_fp4 = w.b_fp4 = true;
  set_padded_scales(kName, a, false, 16, w);
  if (a.alpha)
    for (gemm::Group& g : w.groups) g.alpha = a.alpha->data_as<float>()[g.weight * a.alpha->stride(0)];
  return w;
}

// ---- segments ----

struct SegmentState {
  std::string backend = "auto";
};
constexpr op::Field segment_state_fields[] = {op::attr<&SegmentState::backend>("backend")};
constexpr op::StateType segment_state = op::state_type<SegmentState>(segment_state_fields, "forward=run");
constexpr const char *kSegmentInit = "SegmentGEMMWrapper.__init__", *kSegmentRun = "SegmentGEMMWrapper.run";

void launch_segment_init(const SegmentGemmInit& a) {
  a.self->set(SegmentState{a.backend});
  a.self->planned = true;
}
int64_t segment_columns(const SegmentGemmRun& a) { return a.weights.size(a.weight_column_major ? 1 : 2); }
op::Shape segment_shape(const SegmentGemmRun& a) { return {2, {a.x.size(0), segment_columns(a)}}; }

std::vector<gemm::Group> segments(const SegmentGemmRun& a) {
  FI_CHECK(a.seg_lens || a.seg_indptr, ValueError, kSegmentRun, ": seg_lens and seg_indptr are both None, but one of them must be given");
  std::vector<gemm::Group> out;
  if (a.seg_indptr) {
    FI_CHECK(a.seg_indptr->size(0) == a.batch_size + 1, ValueError, kSegmentRun, ": seg_indptr.shape[0] is ", a.seg_indptr->size(0),
             ", but batch_size is ", a.batch_size, ", which needs ", a.batch_size + 1);
    out = gemm::groups_of(kSegmentRun, "seg_indptr", *a.seg_indptr, a.x.size(0));
  } else {
    FI_CHECK(a.seg_lens->size(0) == a.batch_size, ValueError, kSegmentRun, ": seg_lens.shape[0] is ", a.seg_lens->size(0),
             ", but batch_size is ", a.batch_size);
    int64_t row = 0;
    for (int64_t i = 0; i < a.batch_size; ++i) {
      const int64_t n = gemm::index_at(*a.seg_lens, i);
      FI_CHECK(n >= 0 && row + n <= a.x.size(0), ValueError, kSegmentRun, ": seg_lens[", i, "] is ", n, " after ", row,
               " rows, but x has ", a.x.size(0));
      out.push_back({.row = row, .rows = n, .weight = i});
      row += n;
    }
  }
  if (a.weight_indices)
    FI_CHECK(a.weight_indices->size(0) == a.batch_size, ValueError, kSegmentRun, ": weight_indices.shape[0] is ", a.weight_indices->size(0),
             ", but batch_size is ", a.batch_size);
  for (size_t i = 0; i < out.size(); ++i) {
    if (a.weight_indices) out[i].weight = gemm::index_at(*a.weight_indices, static_cast<int64_t>(i));
    FI_CHECK(0 <= out[i].weight && out[i].weight < a.weights.size(0), ValueError, kSegmentRun, ": segment ", i, " takes weight ",
             out[i].weight, ", but there are ", a.weights.size(0));
  }
  return out;
}
GroupedWork work(const SegmentGemmRun& a) {
  FI_CHECK(a.self->planned, RuntimeError, kSegmentRun, " before ", kSegmentInit);
  const TensorView b = a.weight_column_major ? a.weights : a.weights.transpose(1, 2);
  FI_CHECK(b.size(2) == a.x.size(1), ValueError, kSegmentRun, ": weights is ", to_string(a.weights), ", but x.shape[1] is ", a.x.size(1),
           " and weight_column_major is ", a.weight_column_major ? "True" : "False");
  return {.a = a.x, .b = b, .out = out_or_none(a.out), .groups = segments(a)};
}
/// The kernel multiplies bf16 exactly; f16 has more bits than that.
op::Refusal refuse_type(const SegmentGemmRun& a) {
  return gemm::kHalves.has(a.x.dtype()) ? op::Refusal() : str("x is ", name(a.x.dtype()), ", but the kernels multiply bfloat16 and float16");
}
template <class B>
op::Refusal refuse_type(const B&) {
  return {};
}

// ---- candidates and tables ----

template <class B>
void check(const B& a) {
  work(a);
}
template <class B>
op::Cost cost(const B& a) {
  const GroupedWork w = work(a);
  double rows = 0, weights = 0;
  for (const gemm::Group& g : w.groups) rows += static_cast<double>(g.rows), weights += g.rows > 0;
  const double weight = static_cast<double>(w.b.nbytes()) / std::max<double>(1, static_cast<double>(w.b.size(0)));
  return {.bytes = static_cast<double>(w.a.nbytes() + w.out.nbytes()) + weights * weight,
          .flops = 2 * rows * static_cast<double>(w.out.size(1)) * static_cast<double>(w.depth())};
}
template <const op::Op& O, class B>
op::Refusal refuse_cpu(const B& a) {
  if (op::Refusal r = op::refuse_unless_cpu(O, &a); !r.empty()) return r;
  if (op::Refusal r = refuse_type(a); !r.empty()) return r;
  return gemm::refuse(work(a).product());
}
template <class B>
void launch_cpu(const B& a) {
  gemm::run(work(a));
}
template <class B>
void launch_reference(const B& a) {
  gemm::reference(work(a));
}
template <const op::Op& O, class B>
constexpr op::Candidate kCandidates[] = {op::candidate<refuse_cpu<O, B>, launch_cpu<B>>("cpu"), op::reference<launch_reference<B>>()};

constexpr auto kByte = DTypeSet(DType::kU8), kSfBytes = DTypeSet(DType::kU8) | DType::kF8E4M3;
template <class B>
constexpr op::Field m_indptr = op::in<&B::m_indptr>("m_indptr", "e+1", DType::kI32);
template <class B>
constexpr op::Field out_of_dtype = op::out<&B::out>("out", "m n", op::dtype_from("out_dtype"));
template <class B>
constexpr op::Field out_maybe = op::out<&B::out>("out", "m n", op::dtype<out_dtype_of<B>>);
template <class B>
constexpr op::Field granularity = op::attr<&B::scale_granularity_mnk>("scale_granularity_mnk", op::literal("(1, 128, 128)"));
template <class B>
constexpr op::Field cudnn = op::attr<&B::backend>("backend", op::backends("cudnn:cuda|cake:cuda|auto"), op::keyword_only);
template <class B, auto Member>
constexpr op::Field f32_scale(const char* name) {
  return op::in<Member>(name, nullptr, DType::kF32, op::any_layout);
}

using Bf16 = GroupedMmBf16;
constexpr op::Field bf16_fields[] = {op::in<&Bf16::a>("a", "m k", DType::kBF16, op::any_layout),
                                     op::in<&Bf16::b>("b", "e n k", DType::kBF16, op::any_layout),
                                     m_indptr<Bf16>, out_of_dtype<Bf16>, op::attr<&Bf16::out_dtype>("out_dtype"), cudnn<Bf16>,
                                     op::attr<&Bf16::tactic>("tactic")};
using Fp8 = GroupedMmFp8;
constexpr op::Field fp8_fields[] = {op::in<&Fp8::a>("a", "m k", op::fp8, op::any_layout),
                                    op::in<&Fp8::b>("b", "e n k", op::fp8, op::any_layout),
                                    m_indptr<Fp8>, op::in<&Fp8::alpha>("alpha", nullptr, DType::kF32), out_of_dtype<Fp8>,
                                    op::attr<&Fp8::out_dtype>("out_dtype"), cudnn<Fp8>, op::attr<&Fp8::tactic>("tactic")};
using Mxfp8 = GroupedMmMxfp8;
constexpr op::Field mxfp8_fields[] = {op::in<&Mxfp8::a>("a", "m k", op::fp8), op::in<&Mxfp8::b>("b", "e n k", op::fp8),
                                      op::in<&Mxfp8::a_descale>("a_descale", nullptr, kByte),
                                      op::in<&Mxfp8::b_descale>("b_descale", nullptr, kByte), m_indptr<Mxfp8>, out_of_dtype<Mxfp8>,
                                      op::attr<&Mxfp8::out_dtype>("out_dtype"), cudnn<Mxfp8>, op::attr<&Mxfp8::tactic>("tactic")};
using Fp4 = GroupedMmFp4;
constexpr op::Field fp4_fields[] = {op::in<&Fp4::a>("a", "m kb", gemm::kFp4Bytes), op::in<&Fp4::b>("b", "e n kb", gemm::kFp4Bytes),
                                    op::in<&Fp4::a_descale>("a_descale", nullptr, kSfBytes),
                                    op::in<&Fp4::b_descale>("b_descale", nullptr, kSfBytes), m_indptr<Fp4>,
                                    op::in<&Fp4::alpha>("alpha", nullptr, DType::kF32), out_of_dtype<Fp4>,
                                    op::attr<&Fp4::out_dtype>("out_dtype"), op::attr<&Fp4::block_size>("block_size"), cudnn<Fp4>,
                                    op::attr<&Fp4::tactic>("tactic")};
using Groupwise = GroupGemmFp8NtGroupwise;
constexpr op::Field groupwise_fields[] = {op::in<&Groupwise::a>("a", "m k", op::fp8), op::in<&Groupwise::b>("b", "e n k", op::fp8),
                                          f32_scale<Groupwise, &Groupwise::a_scale>("a_scale"),
                                          f32_scale<Groupwise, &Groupwise::b_scale>("b_scale"), m_indptr<Groupwise>, granularity<Groupwise>,
                                          op::attr<&Groupwise::scale_major_mode>("scale_major_mode", op::choices("MN|K")),
                                          op::attr<&Groupwise::mma_sm>("mma_sm"), out_maybe<Groupwise>,
                                          op::attr<&Groupwise::out_dtype>("out_dtype"),
                                          op::attr<&Groupwise::backend>("backend", op::backends("trtllm:cuda|cutlass:cuda|auto")),
                                          op::attr<&Groupwise::segment_alignment>("segment_alignment")};
using Deep = GroupDeepgemmFp8NtGroupwise;
constexpr op::Field deep_fields[] = {op::in<&Deep::a>("a", "m k", DType::kF8E4M3), op::in<&Deep::b>("b", "e n k", DType::kF8E4M3),
                                     f32_scale<Deep, &Deep::a_scale>("a_scale"), f32_scale<Deep, &Deep::b_scale>("b_scale"),
                                     op::in<&Deep::m_indices>("m_indices", "m", DType::kI32), granularity<Deep>, out_maybe<Deep>,
                                     op::attr<&Deep::out_dtype>("out_dtype")};
using Contiguous = GroupGemmFp8NtGroupwiseContiguous;
constexpr op::Field contiguous_fields[] = {
    op::in<&Contiguous::a>("a", "m k", DType::kF8E4M3), op::in<&Contiguous::b>("b", "e n k", DType::kF8E4M3),
    f32_scale<Contiguous, &Contiguous::a_scale>("a_scale"), f32_scale<Contiguous, &Contiguous::b_scale>("b_scale"),
    op::in<&Contiguous::m_indices>("m_indices", "m", DType::kI32), granularity<Contiguous>, out_maybe<Contiguous>,
    op::attr<&Contiguous::out_dtype>("out_dtype"), op::attr<&Contiguous::validate_indices>("validate_indices")};
using Masked = BatchDeepgemmFp8NtGroupwise;
constexpr op::Field masked_fields[] = {
    op::in<&Masked::a>("a", "e m k", DType::kF8E4M3, op::contiguous), op::in<&Masked::b>("b", "e n k", DType::kF8E4M3),
    op::in<&Masked::a_scale>("a_scale", nullptr, DType::kF32, op::contiguous), f32_scale<Masked, &Masked::b_scale>("b_scale"),
    op::in<&Masked::masked_m>("masked_m", "e", DType::kI32), op::attr<&Masked::expected_m>("expected_m", op::required), granularity<Masked>,
    op::out<&Masked::out>("out", "e m n", op::dtype<out_dtype_of<Masked>>, op::contiguous), op::attr<&Masked::out_dtype>("out_dtype"),
    op::attr<&Masked::backend>("backend", op::backends("deepgemm:cuda|auto"))};
using Mxfp4 = GroupGemmMxfp4NtGroupwise;
constexpr op::Field mxfp4_fields[] = {op::in<&Mxfp4::a>("a", "m k", op::fp8), op::in<&Mxfp4::b>("b", "e n kb", DType::kU8),
                                      op::in<&Mxfp4::a_scale>("a_scale", nullptr, kByte), op::in<&Mxfp4::b_scale>("b_scale", nullptr, kByte),
                                      m_indptr<Mxfp4>, op::attr<&Mxfp4::mma_sm>("mma_sm"), op::attr<&Mxfp4::tile_m>("tile_m"),
                                      op::attr<&Mxfp4::tile_n>("tile_n"), op::attr<&Mxfp4::tile_k>("tile_k"),
                                      op::attr<&Mxfp4::swap_ab>("swap_ab"), out_maybe<Mxfp4>, op::attr<&Mxfp4::out_dtype>("out_dtype")};
using Nvfp4 = GroupGemmNvfp4NtGroupwise;
constexpr op::Field nvfp4_fields[] = {op::in<&Nvfp4::a>("a", "m kb", gemm::kFp4Bytes), op::in<&Nvfp4::b>("b", "e n kb", gemm::kFp4Bytes),
                                      op::in<&Nvfp4::a_scale>("a_scale", nullptr, kSfBytes),
                                      op::in<&Nvfp4::b_scale>("b_scale", nullptr, kSfBytes), m_indptr<Nvfp4>,
                                      op::in<&Nvfp4::alpha>("alpha", "e", DType::kF32), op::attr<&Nvfp4::tile_m>("tile_m"),
                                      op::attr<&Nvfp4::tile_n>("tile_n"), op::attr<&Nvfp4::tile_k>("tile_k"),
                                      op::attr<&Nvfp4::swap_ab>("swap_ab"), out_maybe<Nvfp4>, op::attr<&Nvfp4::out_dtype>("out_dtype")};
constexpr op::Field segment_init_fields[] = {
    op::self<&SegmentGemmInit::self>(), op::scratch<&SegmentGemmInit::float_workspace_buffer>("float_workspace_buffer", nullptr),
    op::attr<&SegmentGemmInit::backend>("backend", op::choices("auto|sm80|sm90"))};
constexpr op::Field segment_reset_fields[] = {
    op::self<&SegmentGemmReset::self>(), op::scratch<&SegmentGemmReset::float_workspace_buffer>("float_workspace_buffer", nullptr),
    op::scratch<&SegmentGemmReset::int_workspace_buffer>("int_workspace_buffer", nullptr)};
using Segment = SegmentGemmRun;
constexpr op::Field segment_fields[] = {op::self<&Segment::self>(),
                                        op::in<&Segment::x>("x", "m k", op::floats, op::any_layout),
                                        op::in<&Segment::weights>("weights", "w p q", op::same_as("x"), op::any_layout),
                                        op::attr<&Segment::batch_size>("batch_size", op::required),
                                        op::attr<&Segment::weight_column_major>("weight_column_major", op::required),
                                        op::out<&Segment::out>("out", nullptr, op::same_as("x"), op::shape<segment_shape>),
                                        op::in<&Segment::seg_lens>("seg_lens", "s", op::indices),
                                        op::in<&Segment::seg_indptr>("seg_indptr", "t", op::indices),
                                        op::in<&Segment::weight_indices>("weight_indices", "u", op::indices)};
op::Refusal never(const SegmentGemmInit&) { return {}; }
constexpr op::Candidate segment_init_candidates[] = {op::candidate<never, launch_segment_init>("cpu")};
op::Refusal never_reset(const SegmentGemmReset&) { return {}; }
void launch_segment_reset(const SegmentGemmReset&) {}
constexpr op::Candidate segment_reset_candidates[] = {op::candidate<never_reset, launch_segment_reset>("cpu")};
constexpr const char *kGemm = "flashinfer.gemm", *kGrouped = "flashinfer.grouped_mm";

}  // namespace

namespace ops::gemm {
#define FI_GROUPED_OP(variable, Block, name, module, doc, fields) \
  constinit const op::Op variable =                               \
      op::define<Block, check<Block>, cost<Block>>(name, module, doc, fields, kCandidates<family::variable, Block>, variable##_cases)
FI_GROUPED_OP(grouped_mm_bf16, Bf16, "grouped_mm_bf16", kGrouped, "Each group of rows of a[m, k] times a matrix of b[e, n, k]^T.", bf16_fields);
FI_GROUPED_OP(grouped_mm_fp8, Fp8, "grouped_mm_fp8", kGrouped, "grouped_mm_bf16 of FP8 matrices, times alpha.", fp8_fields);
FI_GROUPED_OP(grouped_mm_mxfp8, Mxfp8, "grouped_mm_mxfp8", kGrouped, "grouped_mm_bf16 of MXFP8 matrices.", mxfp8_fields);
FI_GROUPED_OP(grouped_mm_fp4, Fp4, "grouped_mm_fp4", kGrouped, "grouped_mm_bf16 of NVFP4 or MXFP4 matrices, times alpha.", fp4_fields);
FI_GROUPED_OP(group_gemm_fp8_groupwise, Groupwise, "group_gemm_fp8_nt_groupwise", kGemm,
              "Each group of rows times a matrix, FP8 with f32 scales of blocks.", groupwise_fields);
FI_GROUPED_OP(group_deepgemm_fp8, Deep, "group_deepgemm_fp8_nt_groupwise", kGemm,
              "Each row of a times the matrix of its index, FP8 with f32 scales of blocks.", deep_fields);
FI_GROUPED_OP(group_gemm_fp8_contiguous, Contiguous, "group_gemm_fp8_nt_groupwise_contiguous", kGemm,
              "group_deepgemm_fp8_nt_groupwise with ascending indices in groups of 128 rows.", contiguous_fields);
FI_GROUPED_OP(batch_deepgemm_fp8, Masked, "batch_deepgemm_fp8_nt_groupwise", kGemm,
              "The first masked_m rows of each matrix of a batch, FP8 with f32 scales of blocks.", masked_fields);
constinit const op::Op group_gemm_mxfp4 = op::also_named(
    op::define<Mxfp4, check<Mxfp4>, cost<Mxfp4>>("group_gemm_mxfp4_nt_groupwise", kGemm, "Each group of MXFP8 rows times an MXFP4 matrix.",
                                                 mxfp4_fields, kCandidates<family::group_gemm_mxfp4, Mxfp4>, group_gemm_mxfp4_cases),
    "group_gemm_mxfp8_mxfp4_nt_groupwise");
FI_GROUPED_OP(group_gemm_nvfp4, Nvfp4, "group_gemm_nvfp4_nt_groupwise", kGemm, "Each group of NVFP4 rows times an NVFP4 matrix.",
              nvfp4_fields);
#undef FI_GROUPED_OP
constinit const op::Op segment_init_op = op::define<SegmentGemmInit>(kSegmentInit, kGemm, "Products of segments with weights of their own.",
                                                                     segment_init_fields, segment_init_candidates, nullptr, {}, &segment_state);
constinit const op::Op segment_reset_op = op::define<SegmentGemmReset>("SegmentGEMMWrapper.reset_workspace_buffer", kGemm,
                                                                       "Another workspace; the CPU needs none.", segment_reset_fields,
                                                                       segment_reset_candidates, nullptr, {}, &segment_state);
constinit const op::Op segment_run_op = op::define<Segment, check<Segment>, cost<Segment>>(
    kSegmentRun, kGemm, "Each segment of x times the weight of its index.", segment_fields, kCandidates<family::segment_run_op, Segment>,
    segment_cases, {}, &segment_state);
}  // namespace ops::gemm

Tensor grouped_mm_bf16(const GroupedMmBf16& a) { return op::call(family::grouped_mm_bf16, a); }
Tensor grouped_mm_fp8(const GroupedMmFp8& a) { return op::call(family::grouped_mm_fp8, a); }
Tensor grouped_mm_mxfp8(const GroupedMmMxfp8& a) { return op::call(family::grouped_mm_mxfp8, a); }
Tensor grouped_mm_fp4(const GroupedMmFp4& a) { return op::call(family::grouped_mm_fp4, a); }
Tensor group_gemm_fp8_nt_groupwise(const Groupwise& a) { return op::call(family::group_gemm_fp8_groupwise, a); }
Tensor group_deepgemm_fp8_nt_groupwise(const Deep& a) { return op::call(family::group_deepgemm_fp8, a); }
Tensor group_gemm_fp8_nt_groupwise_contiguous(const Contiguous& a) { return op::call(family::group_gemm_fp8_contiguous, a); }
Tensor batch_deepgemm_fp8_nt_groupwise(const Masked& a) { return op::call(family::batch_deepgemm_fp8, a); }
Tensor group_gemm_mxfp4_nt_groupwise(const Mxfp4& a) { return op::call(family::group_gemm_mxfp4, a); }
Tensor group_gemm_nvfp4_nt_groupwise(const Nvfp4& a) { return op::call(family::group_gemm_nvfp4, a); }

SegmentGEMMWrapper::SegmentGEMMWrapper(const TensorView& workspace, const std::string& backend)
    : self_("SegmentGEMMWrapper", kGemm, segment_state) {
  op::call(family::segment_init_op, SegmentGemmInit{.self = &self_, .float_workspace_buffer = workspace, .backend = backend});
}
void SegmentGEMMWrapper::reset_workspace_buffer(const TensorView& float_workspace, const TensorView& int_workspace) {
  op::call(family::segment_reset_op,
           SegmentGemmReset{.self = &self_, .float_workspace_buffer = float_workspace, .int_workspace_buffer = int_workspace});
}
Tensor SegmentGEMMWrapper::run(SegmentGemmRun a) {
  a.self = &self_;
  return op::call(family::segment_run_op, a);
}

}  // namespace flashinfer
