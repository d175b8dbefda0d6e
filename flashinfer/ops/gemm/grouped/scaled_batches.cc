// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/gemm/grouped/scaled_batches.h"

#include "flashinfer/core/int_math.h"
#include "flashinfer/core/layout_error.h"
#include "flashinfer/ops/gemm/cases.h"
#include "flashinfer/ops/gemm/grouped/scaled_batches_ref.h"
#include "flashinfer/ops/gemm/grouped/tables.h"
#include "flashinfer/ops/gemm/ops.h"

namespace flashinfer {
namespace {
using gemm::block_type;
using gemm::BlockType;
using gemm::GroupedWork;
using Masked = MaskedScaledBmm;
using Ragged = RaggedScaledBmm;
using Blocks = RaggedBlockScaledBmm;
namespace family = ops::gemm;

// ---- checks ----
template <class B>
void check_nt(const B& a) {
  FI_CHECK(!a.transpose_a && a.transpose_b, ValueError, "transpose_a is ", a.transpose_a ? "True" : "False",
           " and transpose_b ", a.transpose_b ? "True" : "False",
           ", but only a[.., m, k] and b[q, n, k] exist (False and True)");
}
void check_codes(const char* name, const TensorView& t, bool fp4, const std::string& type) {
  const DTypeSet legal = fp4 ? gemm::kFp4Bytes : op::fp8;
  FI_CHECK(legal.has(t.dtype()), ValueError, name, ".dtype is ", flashinfer::name(t.dtype()),
           ", but block_scale_type '", type, "' needs ", to_string(legal));
}
/// k, once both operands have it.
int64_t depth_of(const TensorView& a, const TensorView& b, const BlockType& t) {
  const int64_t ka = a.size(-1) * (t.a_fp4 ? 2 : 1), kb = b.size(-1) * (t.b_fp4 ? 2 : 1);
  FI_CHECK(ka == kb, ValueError, "b is ", to_string(b), " with k = ", kb, ", but a is ", to_string(a),
           " with k = ", ka);
  FI_CHECK(ka % t.block == 0, ValueError, "k is ", ka, " (from a), but must be a multiple of ", t.block);
  return ka;
}
void check_scale_dtype(const char* name, const TensorView& t, bool e8m0, const std::string& type) {
  FI_CHECK(!e8m0 || t.dtype() == DType::kU8, ValueError, name, ".dtype is ", flashinfer::name(t.dtype()),
           ", but scales of '", type, "' are uint8 (ue8m0)");
}
template <class B>
BlockType check_block_type(const B& a) {
  check_nt(a);
  const BlockType t = block_type(a.block_scale_type);
  check_codes("a", a.a, t.a_fp4, a.block_scale_type);
  check_codes("b", a.b, t.b_fp4, a.block_scale_type);
  check_scale_dtype("a_scale", a.a_scale, t.e8m0, a.block_scale_type);
  check_scale_dtype("b_scale", a.b_scale, t.e8m0, a.block_scale_type);
  return t;
}
/// Segments that keep what the caller says of them.
template <class B>
void set_segments(GroupedWork& w, const B& a, int64_t alignment) {
  gemm::check_alignment(a.m_indptr, alignment);
  gemm::set_offsets(w, "m_indptr", a.m_indptr);
  for (const gemm::Group& g : w.groups)
    FI_CHECK(g.rows <= a.max_m, ValueError, "m_indptr makes segment ", g.weight, " ", g.rows,
             " rows long, but max_m is ", a.max_m);
}

// ---- works ----
DType out_dtype(const Masked& a) { return a.out_dtype.value_or(DType::kBF16); }
DType out_dtype(const Blocks& a) { return a.out_dtype.value_or(DType::kBF16); }

GroupedWork work(const Masked& a) {
  const BlockType t = check_block_type(a);
  gemm::check_out_dtype(out_dtype(a), op::floats);
  const int64_t q = a.a.size(0), m = a.a.size(1), n = a.b.size(1), k = depth_of(a.a, a.b, t);
  GroupedWork w{.a = a.a.view({q * m, a.a.size(2)}),
                .b = a.b,
                .out = a.out->view({q * m, n}),
                .a_fp4 = t.a_fp4,
                .b_fp4 = t.b_fp4};
  w.a_sf = gemm::check_sf("a_scale", a.a_scale, SfLayout::k128x4, t.e8m0, q, m, k / t.block, t.block);
  w.b_sf = gemm::check_sf("b_scale", a.b_scale, SfLayout::k128x4, t.e8m0, q, n, k / t.block, t.block);
  gemm::set_counts(w, a.masked_m, m);
  return w;
}
GroupedWork work(const Ragged& a) {
  const BlockType t = check_block_type(a);
  FI_CHECK(a.swizzled_layout_a, ValueError, "swizzled_layout_a is False, but scales must be in tiles of 128x4");
  gemm::check_one("a_global_scale", a.a_global_scale);
  const int64_t k = depth_of(a.a, a.b, t);
  GroupedWork w{.a = a.a, .b = a.b, .out = *a.out, .a_fp4 = t.a_fp4, .b_fp4 = t.b_fp4};
  w.a_sf = gemm::check_sf("a_scale", a.a_scale, SfLayout::k128x4, t.e8m0, 1, a.a.size(0), k / t.block, t.block);
  w.b_sf =
      gemm::check_sf("b_scale", a.b_scale, SfLayout::k128x4, t.e8m0, a.b.size(0), a.b.size(1), k / t.block, t.block);
  w.alpha = gemm::number_of(a.a_global_scale);
  set_segments(w, a, 128);
  for (gemm::Group& g : w.groups) g.sf_first = g.row;
  gemm::set_alpha(w, a.b_global_scale);
  return w;
}
GroupedWork work(const Blocks& a) {
  check_nt(a);
  gemm::check_out_dtype(out_dtype(a), op::floats);
  GroupedWork w{.a = a.a, .b = a.b, .out = *a.out};
  set_segments(w, a, a.segment_alignment);
  w.a_grid = gemm::check_grid("a_scale", a.a_scale, false, 0, a.a.size(0), a.a.size(1), 1, 128);
  w.b_grid = gemm::check_grid("b_scale", a.b_scale, false, a.b.size(0), a.b.size(1), a.a.size(1), 128, 128);
  w.grid_k = 128;
  return w;
}

// ---- grouped_gemm_nt_masked ----
using Nt = GroupedGemmNtMasked;

/// [x, y, experts] as [experts, x, y], rows contiguous and experts slowest.
TensorView experts_first(const char* name, const TensorView& t) {
  FI_CHECK(t.rank() == 3, ValueError, name, " is ", to_string(t), ", but must have three axes, experts last");
  const TensorView turned = t.transpose(1, 2).transpose(0, 1);
  FI_CHECK(turned.is_contiguous(), LayoutError, name, " is ", to_string(t), " with strides ", t.stride(0), ", ",
           t.stride(1), " and ", t.stride(2), ", but must be the permuted view of contiguous memory [", t.size(2), ", ",
           t.size(0), ", ", t.size(1), "]: the axis of the experts is the slowest");
  return turned;
}
/// Scales [32, 4, tiles of rows, 4, tiles of columns, experts] of memory [experts, tiles of rows, tiles of columns, 32,
/// 4, 4] as bytes.
TensorView scale_bytes(const char* name, const TensorView& t, int64_t experts, int64_t rows, int64_t columns) {
  const int64_t tiles = ceil_div(rows, 128), across = ceil_div(columns, 4);
  const int64_t want[6] = {32, 4, tiles, 4, across, experts},
                step[6] = {16, 4, across * 512, 1, 512, tiles * across * 512};
  bool fits = t.rank() == 6;
  for (int i = 0; fits && i < 6; ++i) fits = t.size(i) == want[i] && (want[i] == 1 || t.stride(i) == step[i]);
  FI_CHECK(fits, ValueError, name, " is ", to_string(t), ", but must be [32, 4, ", tiles, ", 4, ", across, ", ",
           experts, "], the permuted view of contiguous memory [", experts, ", ", tiles, ", ", across, ", 32, 4, 4]");
  return TensorView(t.data(), t.dtype(), {experts * tiles * across * 512}, t.device());
}
DType dtype_named(const char* argument, const std::string& text) {
  for (const DType t : {DType::kBF16, DType::kF16, DType::kF32})
    if (name(t) == text) return t;
  throw_error(ErrorKind::kValueError,
              str("", argument, " is '", text, "', but must be 'bfloat16', 'float16' or 'float32'"));
}
void check_nt_types(const Nt& a, bool fp4, bool e8m0) {
  FI_CHECK(!a.lhs.stacked && !a.rhs.stacked, ValueError, "lhs and rhs must be pairs (codes, scales)");
  const DTypeSet codes = fp4 ? gemm::kFp4Bytes : DTypeSet(DType::kF8E4M3), scales = e8m0 ? gemm::kByte : gemm::kSfBytes;
  const auto check = [](const char* what, const TensorView& t, DTypeSet set, const char* why, const std::string& type) {
    FI_CHECK(set.has(t.dtype()), ValueError, what, ".dtype is ", name(t.dtype()), ", but ", why, " '", type, "' needs ",
             to_string(set));
  };
  check("lhs[0]", a.lhs.first, codes, "ab_dtype", a.ab_dtype);
  check("rhs[0]", a.rhs.first, codes, "ab_dtype", a.ab_dtype);
  check("lhs[1]", a.lhs.second, scales, "sf_dtype", a.sf_dtype);
  check("rhs[1]", a.rhs.second, scales, "sf_dtype", a.sf_dtype);
  FI_CHECK(fp4 || e8m0, ValueError, "sf_dtype is '", a.sf_dtype, "', but codes of '", a.ab_dtype,
           "' have scales of 'float8_e8m0fnu'");
  FI_CHECK(a.sf_vec_size == (e8m0 ? 32 : 16), ValueError, "sf_vec_size is ", a.sf_vec_size, ", but scales of '",
           a.sf_dtype, "' are for ", e8m0 ? 32 : 16);
  FI_CHECK(dtype_named("c_dtype", a.c_dtype) == a.out.dtype(), ValueError, "c_dtype is '", a.c_dtype,
           "', but out.dtype is ", name(a.out.dtype()));
  FI_CHECK(!a.alpha_dtype || *a.alpha_dtype == "float32", ValueError, "alpha_dtype is '", a.alpha_dtype.value_or(""),
           "', but must be 'float32'");
  FI_CHECK(!a.dst_signals, NotImplementedError,
           "dst_signals is given, but is not implemented: it signals between kernels of a GPU");
}
GroupedWork work(const Nt& a) {
  const bool fp4 = a.ab_dtype == "float4_e2m1fn", e8m0 = a.sf_dtype == "float8_e8m0fnu";
  check_nt_types(a, fp4, e8m0);
  const TensorView x = experts_first("lhs[0]", a.lhs.first), y = experts_first("rhs[0]", a.rhs.first),
                   out = experts_first("out", a.out);
  const int64_t q = x.size(0), m = x.size(1), n = y.size(1);
  const auto block = static_cast<int32_t>(a.sf_vec_size);
  FI_CHECK(y.size(0) == q && a.masked_m.size(0) == q, ValueError, "rhs[0] is ", to_string(a.rhs.first),
           " and masked_m ", to_string(a.masked_m), ", but lhs[0] has ", q, " experts (its last axis)");
  FI_CHECK(out.size(0) == q && out.size(1) == m && out.size(2) == n, ValueError, "out is ", to_string(a.out),
           ", but must be [", m, ", ", n, ", ", q, "]");
  const int64_t k = depth_of(x, y, {fp4, fp4, e8m0, block});
  GroupedWork w{.a = x.view({q * m, x.size(2)}), .b = y, .out = out.view({q * m, n}), .a_fp4 = fp4, .b_fp4 = fp4};
  w.a_sf = gemm::check_sf("lhs[1]", scale_bytes("lhs[1]", a.lhs.second, q, m, k / block), SfLayout::k128x4, e8m0, q, m,
                          k / block, block);
  w.b_sf = gemm::check_sf("rhs[1]", scale_bytes("rhs[1]", a.rhs.second, q, n, k / block), SfLayout::k128x4, e8m0, q, n,
                          k / block, block);
  if (a.alpha)
    FI_CHECK_LAYOUT(a.alpha->numel() == q, a.alpha->is_contiguous(), "alpha is ", to_string(*a.alpha),
                    ", but must be one number for each of ", q, " experts, contiguous");
  gemm::set_counts(w, a.masked_m, m);
  if (a.alpha) gemm::set_alpha(w, a.alpha->view({q}));
  return w;
}

// ---- tables ----
op::Shape masked_shape(const Masked& a) { return {3, {a.a.size(0), a.a.size(1), a.b.size(1)}}; }
template <class B>
constexpr op::Field block_scale_type_of =
    op::attr<&B::block_scale_type>("block_scale_type", op::required, op::choices("nvfp4|mxfp4|mxfp8|mixed"));
template <class B>
constexpr op::Field cutile = op::attr<&B::backend>("backend", op::backends("cutile:cuda|auto"));

constexpr op::Field masked_fields[] = {
    op::in<&Masked::a>("a", "q m x", op::contiguous),
    op::in<&Masked::b>("b", "q n y"),
    op::in<&Masked::a_scale>("a_scale", nullptr, gemm::kSfBytes),
    op::in<&Masked::b_scale>("b_scale", nullptr, gemm::kSfBytes),
    op::in<&Masked::masked_m>("masked_m", "q", DType::kI32),
    block_scale_type_of<Masked>,
    op::in<&Masked::max_m_device>("max_m_device", nullptr),
    op::attr<&Masked::transpose_a>("transpose_a"),
    op::attr<&Masked::transpose_b>("transpose_b"),
    op::attr<&Masked::out_dtype>("out_dtype"),
    cutile<Masked>,
    op::result<&Masked::out>("out", nullptr, op::contiguous, op::shape<masked_shape>,
                             op::dtype<static_cast<DType (*)(const Masked&)>(out_dtype)>),
};
constexpr op::Field ragged_fields[] = {
    op::in<&Ragged::a>("a", "m x"),
    op::in<&Ragged::b>("b", "q n y"),
    op::in<&Ragged::a_scale>("a_scale", nullptr, gemm::kSfBytes),
    op::in<&Ragged::b_scale>("b_scale", nullptr, gemm::kSfBytes),
    op::in<&Ragged::m_indptr>("m_indptr", "q+1", DType::kI32),
    op::attr<&Ragged::max_m>("max_m", op::required),
    block_scale_type_of<Ragged>,
    op::attr<&Ragged::transpose_a>("transpose_a"),
    op::attr<&Ragged::transpose_b>("transpose_b"),
    op::attr<&Ragged::static_persistent>("static_persistent"),
    op::attr<&Ragged::swizzled_layout_a>("swizzled_layout_a"),
    op::in<&Ragged::a_global_scale>("a_global_scale", nullptr, DType::kF32),
    op::in<&Ragged::b_global_scale>("b_global_scale", "q", DType::kF32),
    cutile<Ragged>,
    op::result<&Ragged::out>("out", "m n", DType::kF32),
};
constexpr op::Field blocks_fields[] = {
    op::in<&Blocks::a>("a", "m k", DType::kF8E4M3),
    op::in<&Blocks::b>("b", "q n k", DType::kF8E4M3),
    op::in<&Blocks::a_scale>("a_scale", nullptr, DType::kF32, op::any_layout),
    op::in<&Blocks::b_scale>("b_scale", nullptr, DType::kF32, op::any_layout),
    op::in<&Blocks::m_indptr>("m_indptr", "q+1", DType::kI32),
    op::attr<&Blocks::max_m>("max_m", op::required),
    op::in<&Blocks::max_m_device>("max_m_device", nullptr),
    op::attr<&Blocks::transpose_a>("transpose_a"),
    op::attr<&Blocks::transpose_b>("transpose_b"),
    op::attr<&Blocks::out_dtype>("out_dtype"),
    op::attr<&Blocks::segment_alignment>("segment_alignment"),
    cutile<Blocks>,
    op::result<&Blocks::out>("out", "m n", op::dtype<static_cast<DType (*)(const Blocks&)>(out_dtype)>),
};
constexpr op::Field nt_fields[] = {
    op::in<&Nt::lhs>("lhs", nullptr, op::any_layout, op::doc("codes and scales of the rows")),
    op::in<&Nt::rhs>("rhs", nullptr, op::any_layout, op::doc("codes and scales of the weights")),
    op::out<&Nt::out>("out", nullptr, op::floats, op::any_layout, op::required, op::not_returned),
    op::in<&Nt::masked_m>("masked_m", "q", DType::kI32),
    op::attr<&Nt::ab_dtype>("ab_dtype", op::required, op::keyword_only, op::choices("float4_e2m1fn|float8_e4m3fn")),
    op::attr<&Nt::sf_dtype>("sf_dtype", op::required, op::choices("float8_e4m3fn|float8_e8m0fnu")),
    op::attr<&Nt::c_dtype>("c_dtype", op::required),
    op::attr<&Nt::sf_vec_size>("sf_vec_size", op::required),
    op::attr<&Nt::mma_tiler_mn>("mma_tiler_mn", op::literal("(128, 128)")),
    op::attr<&Nt::cluster_shape_mn>("cluster_shape_mn", op::literal("(1, 1)")),
    op::in<&Nt::alpha>("alpha", nullptr, DType::kF32, op::doc("factor of each expert's product")),
    op::attr<&Nt::alpha_dtype>("alpha_dtype"),
    op::attr<&Nt::sm_count>("sm_count"),
    op::in<&Nt::dst_signals>("dst_signals", nullptr),
};
constexpr const char* kModule = "flashinfer.gemm";
}  // namespace

namespace ops::gemm {
constinit const op::Op masked_scaled_bmm_op =
    flashinfer::gemm::define_grouped<Masked, work, flashinfer::gemm::reference>(
        "masked_scaled_bmm", kModule,
        "The first masked_m rows of each matrix of a batch times its weight, FP8 or FP4 with scales of blocks.",
        masked_fields, masked_scaled_bmm_cases);
constinit const op::Op ragged_scaled_bmm_op =
    flashinfer::gemm::define_grouped<Ragged, work, flashinfer::gemm::reference>(
        "ragged_scaled_bmm", kModule,
        "Each segment of rows times its matrix, FP8 or FP4 with scales of blocks, in f32.", ragged_fields,
        ragged_scaled_bmm_cases);
constinit const op::Op ragged_block_scaled_bmm_op =
    flashinfer::gemm::define_grouped<Blocks, work, flashinfer::gemm::reference>(
        "ragged_block_scaled_bmm", kModule, "Each segment of rows times its matrix, FP8 with f32 scales of blocks.",
        blocks_fields, ragged_block_scaled_bmm_cases);
constinit const op::Op grouped_gemm_nt_masked_op =
    flashinfer::gemm::define_grouped<Nt, work, flashinfer::gemm::reference>(
        "grouped_gemm_nt_masked", kModule,
        "The first masked_m rows of each expert times its weight, with scales of blocks; experts are the last axis.",
        nt_fields, grouped_gemm_nt_masked_cases);
}  // namespace ops::gemm

Tensor masked_scaled_bmm(const Masked& a) { return op::call(family::masked_scaled_bmm_op, a); }
Tensor ragged_scaled_bmm(const Ragged& a) { return op::call(family::ragged_scaled_bmm_op, a); }
Tensor ragged_block_scaled_bmm(const Blocks& a) { return op::call(family::ragged_block_scaled_bmm_op, a); }
void grouped_gemm_nt_masked(const Nt& a) { op::call(family::grouped_gemm_nt_masked_op, a); }

}  // namespace flashinfer
