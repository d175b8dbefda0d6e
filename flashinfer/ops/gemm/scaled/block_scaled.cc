// SPDX-License-Identifier: Apache-2.0
// Products of MXFP8, NVFP4 and MXFP4: scales of a byte for each block.
#include "flashinfer/core/layout_error.h"
#include "flashinfer/ops/gemm/scaled/scaled.h"

#include "flashinfer/ops/gemm/cases.h"
#include "flashinfer/ops/gemm/ops.h"
#include "flashinfer/ops/gemm/packed/ref.h"
#include "flashinfer/ops/gemm/scaled/shuffled.h"

namespace flashinfer {
namespace {

using gemm::Product;
namespace family = ops::gemm;

// ---- mxfp8 ----
constexpr int32_t kMxBlock = 32;

void check_mx_depth(std::string_view argument, int64_t k) {
  FI_CHECK(k % kMxBlock == 0, ValueError, argument, ".shape[-1] is ", k,
           ", but k must be a multiple of 32 (one scale for 32)");
}
/// n of a `b` that is [`rows`, n], a transposed view, or packed.
template <class B>
int64_t columns_of(const B& a, int64_t rows, int64_t k) {
  if (gemm::is_packed(a.b)) return op::inferring() ? op::kAnyExtent : gemm::packed_columns("b", a.b, k);
  FI_CHECK(a.b.rank() == 2 && a.b.size(0) == rows, ValueError, "b is ", to_string(a.b), ", but must be [", rows,
           ", n] (from a.shape[1] = ", a.a.size(1),
           "), the transposed view of a weight, or a weight from prepare_quantized_weights");
  gemm::check_column_major("b", a.b);
  return a.b.size(1);
}
int64_t columns_of(const MmMxfp8& a) { return columns_of(a, a.a.size(1), a.a.size(1)); }
int64_t columns_of(const MmFp4& a) { return columns_of(a, a.a.size(1), 2 * a.a.size(1)); }
template <class B>
op::Shape out_shape(const B& a) {
  return {2, {a.a.size(0), columns_of(a)}};
}
SfLayout layout_of(bool eight) { return eight ? SfLayout::k8x4 : SfLayout::k128x4; }
ScaleFactors sf_a(const MmMxfp8& a) {
  FI_CHECK(a.a_descale.rank() == 1, ValueError, "a_descale is ", to_string(a.a_descale),
           ", but must be the flat, swizzled scales of mxfp8_quantize (2D linear scales are not supported)");
  return gemm::check_sf("a_descale", a.a_descale, layout_of(a.use_8x4_sf_layout), true, 1, a.a.size(0),
                        a.a.size(1) / kMxBlock, kMxBlock);
}
ScaleFactors sf_b(const MmMxfp8& a) {
  if (gemm::is_packed(a.b))
    return gemm::check_packed_sf("b_descale", a.b_descale, true, 1, columns_of(a), a.a.size(1), kMxBlock);
  FI_CHECK(a.b_descale.rank() == 1, ValueError, "b_descale is ", to_string(a.b_descale),
           ", but must be the flat, swizzled scales of mxfp8_quantize (2D linear scales are not supported)");
  return gemm::check_sf("b_descale", a.b_descale, SfLayout::k128x4, true, 1, a.b.size(1), a.a.size(1) / kMxBlock,
                        kMxBlock);
}
void validate(const MmMxfp8& a) {
  check_mx_depth("a", a.a.size(1));
  gemm::check_shuffled(a, columns_of(a));
  sf_a(a);
  if (!gemm::is_packed(a.b) || !op::inferring()) sf_b(a);
  gemm::check_out_dtype(a.out_dtype, gemm::kHalves);
}
ScaleFactors sf_a(const BmmMxfp8& a) {
  return gemm::check_sf("A_scale", a.A_scale, SfLayout::k128x4, true, a.A.size(0), a.A.size(1), a.A.size(2) / kMxBlock,
                        kMxBlock);
}
ScaleFactors sf_b(const BmmMxfp8& a) {
  return gemm::check_sf("B_scale", a.B_scale, SfLayout::k128x4, true, a.B.size(0), a.B.size(2), a.A.size(2) / kMxBlock,
                        kMxBlock);
}
void validate(const BmmMxfp8& a) {
  check_mx_depth("A", a.A.size(2));
  gemm::check_column_major("B", a.B);
  sf_a(a), sf_b(a);
  gemm::check_out_dtype(a.dtype, gemm::kHalves, "dtype");
}
Product product(const MmMxfp8& a) {
  Product p = gemm::product_with(a.a, gemm::rows_of_weight(a.b), *a.out);
  p.a.sf = sf_a(a);
  p.b.sf = sf_b(a);
  return p;
}
Product product(const BmmMxfp8& a) {
  Product p = gemm::product_of(a.A, a.B, *a.out);
  p.a.sf = sf_a(a);
  p.b.sf = sf_b(a);
  return p;
}
/// One matrix of a batch: a [m, k], b [k, n] or bytes of FP4, its rows shuffled or not, or a packed weight.
void reference_sf(const TensorView& a, const TensorView& b, const TensorView& out, const ref::ByteScales& sa,
                  const ref::ByteScales& sb, int64_t matrix, bool fp4, double alpha, bool shuffled = false) {
  const bool packed = b.rank() == 3;
  const TensorView bt = packed ? b : b.transpose(0, 1);
  ref::nt_product(
      out, 0, out.size(0), a.size(1) * (fp4 ? 2 : 1),
      [&](int64_t i, int64_t k) { return ref::narrow_at(a, fp4, i, k) * sa.at(matrix, i, k); },
      [&](int64_t j, int64_t k) {
        const int64_t row = shuffled ? gemm::ref::shuffled_place(j) : j;
        return ref::weight_at(bt, packed, fp4, row, k) * sb.at(matrix, row, k);
      },
      alpha);
}
void reference(const MmMxfp8& a) {
  const int64_t k = a.a.size(1);
  const SfLayout layout_a = a.use_8x4_sf_layout ? SfLayout::k8x4 : SfLayout::k128x4,
                 layout_b = a.b.rank() == 3 ? SfLayout::kPanels : SfLayout::k128x4;
  reference_sf(a.a, a.b, *a.out, {a.a_descale, layout_a, true, a.a.size(0), k, 32},
               {a.b_descale, layout_b, true, a.out->size(1), k, 32}, 0, false, 1, gemm::is_shuffled(a));
}
void reference(const BmmMxfp8& a) {
  const int64_t k = a.A.size(2);
  for (int64_t i = 0; i < a.A.size(0); ++i)
    reference_sf(a.A.select(0, i), a.B.select(0, i), a.out->select(0, i),
                 {a.A_scale, SfLayout::k128x4, true, a.A.size(1), k, 32},
                 {a.B_scale, SfLayout::k128x4, true, a.B.size(2), k, 32}, i, false, 1);
}

// ---- fp4 ----

ScaleFactors fp4_sf(const MmFp4& a, std::string_view name, const TensorView& t, SfLayout layout, int64_t lines) {
  const auto block = static_cast<int32_t>(a.block_size);
  return gemm::check_sf(name, t, layout, !a.use_nvfp4, 1, lines, 2 * a.a.size(1) / block, block);
}
ScaleFactors sf_a(const MmFp4& a) {
  return fp4_sf(a, "a_descale", a.a_descale, layout_of(a.use_8x4_sf_layout), a.a.size(0));
}
ScaleFactors sf_b(const MmFp4& a) {
  if (gemm::is_packed(a.b))
    return gemm::check_packed_sf("b_descale", a.b_descale, !a.use_nvfp4, 1, columns_of(a), 2 * a.a.size(1),
                                 static_cast<int32_t>(a.block_size));
  return fp4_sf(a, "b_descale", a.b_descale, SfLayout::k128x4, a.b.size(1));
}
void validate(const MmFp4& a) {
  FI_CHECK(a.block_size == (a.use_nvfp4 ? 16 : 32), ValueError, "block_size is ", a.block_size, ", but ",
           a.use_nvfp4 ? "NVFP4 has one scale for 16" : "MXFP4 (use_nvfp4 = False) has one scale for 32");
  FI_CHECK(2 * a.a.size(1) % a.block_size == 0, ValueError, "a.shape[1] is ", a.a.size(1), ", k = ", 2 * a.a.size(1),
           ", but k must be a multiple of ", a.block_size);
  FI_CHECK(a.use_nvfp4 || (a.a_descale.dtype() == DType::kU8 && a.b_descale.dtype() == DType::kU8), ValueError,
           "a_descale and b_descale are ", name(a.a_descale.dtype()), " and ", name(a.b_descale.dtype()),
           ", but scales of MXFP4 are uint8 (ue8m0)");
  FI_CHECK(a.a.size(1) <= 1 || a.a.stride(1) == 1, LayoutError, "a is ", to_string(a.a), " with stride ", a.a.stride(1),
           " along k, but must be row-major");
  gemm::check_shuffled(a, columns_of(a));
  gemm::check_one("alpha", a.alpha);
  gemm::check_out_dtype(a.out_dtype, gemm::kHalves);
  sf_a(a);
  if (!gemm::is_packed(a.b) || !op::inferring()) sf_b(a);
}
Product product(const MmFp4& a) {
  Product p = gemm::product_with(a.a, gemm::rows_of_weight(a.b), *a.out, true);
  p.a.sf = sf_a(a);
  p.b.sf = sf_b(a);
  p.alpha_a = gemm::number_of(a.alpha);
  return p;
}
void reference(const MmFp4& a) {
  const int64_t k = 2 * a.a.size(1), block = a.use_nvfp4 ? 16 : 32;
  const SfLayout layout_a = a.use_8x4_sf_layout ? SfLayout::k8x4 : SfLayout::k128x4,
                 layout_b = a.b.rank() == 3 ? SfLayout::kPanels : SfLayout::k128x4;
  reference_sf(a.a, a.b, *a.out, {a.a_descale, layout_a, !a.use_nvfp4, a.a.size(0), k, block},
               {a.b_descale, layout_b, !a.use_nvfp4, a.out->size(1), k, block}, 0, true,
               a.alpha ? ref::get(a.alpha->view({1}), 0) : 1.0, gemm::is_shuffled(a));
}

// ---- cuBLASLt ----
op::Prepared prepare_cublaslt(const MmMxfp8& a, const op::Call& call) {
  gemm::LtProduct p{.a = a.a, .b = a.b, .out = *a.out};
  p.blocks_a = a.a_descale.data(), p.blocks_b = a.b_descale.data();
  return gemm::prepare_blocks_cublaslt<MmMxfp8, product>(a, p, call);
}
op::Prepared prepare_cublaslt(const BmmMxfp8& a, const op::Call& call) {
  gemm::LtProduct p{.a = a.A, .b = a.B, .out = *a.out};
  p.blocks_a = a.A_scale.data(), p.blocks_b = a.B_scale.data();
  return gemm::prepare_cublaslt_or_own<BmmMxfp8, product>(a, p, call);
}
op::Prepared prepare_cublaslt(const MmFp4& a, const op::Call& call) {
  if (!a.use_nvfp4) return op::Unsupported{"cuBLASLt has products of NVFP4, but none of MXFP4"};
  gemm::LtProduct p{.a = a.a, .b = a.b, .out = *a.out};
  p.blocks_a = a.a_descale.data(), p.blocks_b = a.b_descale.data(), p.fp4 = true;
  p.alpha = gemm::number_of(a.alpha);
  return gemm::prepare_blocks_cublaslt<MmFp4, product>(a, p, call);
}

// ---- tables ----
constexpr op::Field mm_mxfp8_fields[] = {
    op::in<&MmMxfp8::a>("a", "m k", DType::kF8E4M3),
    op::in<&MmMxfp8::b>("b", nullptr, DType::kF8E4M3, op::any_layout),
    op::in<&MmMxfp8::a_descale>("a_descale", nullptr, DType::kU8),
    op::in<&MmMxfp8::b_descale>("b_descale", nullptr, DType::kU8),
    op::out<&MmMxfp8::out>("out", nullptr, op::dtype_from("out_dtype"), op::shape<out_shape<MmMxfp8>>),
    op::attr<&MmMxfp8::out_dtype>("out_dtype"),
    op::attr<&MmMxfp8::use_8x4_sf_layout>("use_8x4_sf_layout"),
    op::attr<&MmMxfp8::backend>(
        "backend", op::backends("auto|cutlass:cuda|cute-dsl:cuda|cutedsl_low_latency:cuda|trtllm|cudnn:cuda|"
                                "b12x:cuda")),
};
constexpr op::Field bmm_mxfp8_fields[] = {
    op::in<&BmmMxfp8::A>("A", "b m k", DType::kF8E4M3),
    op::in<&BmmMxfp8::B>("B", "b k n", DType::kF8E4M3, op::any_layout),
    op::in<&BmmMxfp8::A_scale>("A_scale", nullptr, DType::kU8),
    op::in<&BmmMxfp8::B_scale>("B_scale", nullptr, DType::kU8),
    op::attr<&BmmMxfp8::dtype>("dtype", op::required),
    op::out<&BmmMxfp8::out>("out", "b m n", op::dtype_from("dtype")),
    op::attr<&BmmMxfp8::backend>("backend", op::backends("auto|cudnn:cuda|cutlass:cuda")),
};
constexpr op::Field mm_fp4_fields[] = {
    op::in<&MmFp4::a>("a", "m kb", gemm::kFp4Bytes, op::any_layout),
    op::in<&MmFp4::b>("b", nullptr, gemm::kFp4Bytes, op::any_layout),
    op::in<&MmFp4::a_descale>("a_descale", nullptr, DTypeSet(DType::kU8) | DType::kF8E4M3, op::any_layout),
    op::in<&MmFp4::b_descale>("b_descale", nullptr, DTypeSet(DType::kU8) | DType::kF8E4M3, op::any_layout),
    op::in<&MmFp4::alpha>("alpha", nullptr, DType::kF32),
    op::attr<&MmFp4::out_dtype>("out_dtype"),
    op::out<&MmFp4::out>("out", nullptr, op::dtype_from("out_dtype"), op::shape<out_shape<MmFp4>>),
    op::attr<&MmFp4::block_size>("block_size"),
    op::attr<&MmFp4::use_8x4_sf_layout>("use_8x4_sf_layout"),
    op::attr<&MmFp4::backend>("backend",
                              op::backends("auto|cudnn:cuda|trtllm|cutlass:cuda|cute-dsl:cuda|cutedsl_low_latency:cuda|"
                                           "b12x:cuda|cake:cuda")),
    op::attr<&MmFp4::use_nvfp4>("use_nvfp4"),
    op::attr<&MmFp4::enable_pdl>("enable_pdl"),
};
}  // namespace

namespace ops::gemm {
constinit const op::Op mm_mxfp8_op =
    flashinfer::gemm::define_shuffled<MmMxfp8, validate, product, prepare_cublaslt, reference>(
        "mm_mxfp8", "Product of MXFP8 matrices: e4m3 elements, a power-of-two scale for 32 along k.", mm_mxfp8_fields,
        mm_mxfp8_cases);
constinit const op::Op bmm_mxfp8_op =
    flashinfer::gemm::define_scaled<BmmMxfp8, validate, product, prepare_cublaslt, reference>(
        "bmm_mxfp8", "Batched product of MXFP8 matrices.", bmm_mxfp8_fields, bmm_mxfp8_cases);
constinit const op::Op mm_fp4_op =
    flashinfer::gemm::define_shuffled<MmFp4, validate, product, prepare_cublaslt, reference>(
        "mm_fp4", "Product of NVFP4 or MXFP4 matrices times alpha, in f32, rounded once.", mm_fp4_fields, mm_fp4_cases);
}  // namespace ops::gemm

Tensor mm_mxfp8(const MmMxfp8& a) { return op::call(family::mm_mxfp8_op, a); }
Tensor bmm_mxfp8(const BmmMxfp8& a) { return op::call(family::bmm_mxfp8_op, a); }
Tensor mm_fp4(const MmFp4& a) { return op::call(family::mm_fp4_op, a); }

}  // namespace flashinfer
