// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/gemm/grouped/grouped.h"

#include "flashinfer/ops/gemm/cases.h"
#include "flashinfer/ops/gemm/grouped/tables.h"
#include "flashinfer/ops/gemm/ops.h"

namespace flashinfer {
namespace {

using gemm::GroupedWork;
namespace family = ops::gemm;

void check_not_both_e5m2(const TensorView& a, const TensorView& b) {
  FI_CHECK(a.dtype() != DType::kF8E5M2 || b.dtype() != DType::kF8E5M2, ValueError,
           "a.dtype and b.dtype are both float8_e5m2, but one of them must be float8_e4m3fn");
}
GroupedWork work(const GroupedMmBf16& a) {
  gemm::check_out_dtype(a.out_dtype, op::floats);
  return gemm::plain_work(a);
}
GroupedWork work(const GroupedMmFp8& a) {
  gemm::check_out_dtype(a.out_dtype, op::floats);
  gemm::check_one("alpha", a.alpha);
  check_not_both_e5m2(a.a, a.b);
  GroupedWork w = gemm::plain_work(a);
  w.alpha = gemm::number_of(a.alpha);
  return w;
}
/// Scale factors of all rows of a together, and of each matrix of b.
template <class B>
void set_scales(const B& a, bool e8m0, int32_t block, GroupedWork& w) {
  const int64_t k = w.depth();
  FI_CHECK(k % block == 0, ValueError, "k is ", k, " (from a.shape[1]), but must be a multiple of ", block);
  w.a_sf = gemm::check_sf("a_descale", a.a_descale, SfLayout::k128x4, e8m0, 1, a.a.size(0), k / block, block);
  w.b_sf = gemm::check_sf("b_descale", a.b_descale, SfLayout::k128x4, e8m0, a.b.size(0), a.b.size(1), k / block, block);
  for (gemm::Group& g : w.groups) g.sf_first = g.row;
}
GroupedWork work(const GroupedMmMxfp8& a) {
  gemm::check_out_dtype(a.out_dtype, op::floats);
  GroupedWork w = gemm::plain_work(a);
  set_scales(a, true, 32, w);
  return w;
}
GroupedWork work(const GroupedMmFp4& a) {
  gemm::check_out_dtype(a.out_dtype, op::floats);
  gemm::check_one("alpha", a.alpha);
  FI_CHECK(a.block_size == 16 || a.block_size == 32, ValueError, "block_size is ", a.block_size,
           ", but must be 16 (NVFP4) or 32 (MXFP4)");
  const DTypeSet legal = a.block_size == 16 ? DTypeSet(DType::kF8E4M3) | DType::kU8 : DTypeSet(DType::kU8);
  FI_CHECK(legal.has(a.a_descale.dtype()) && legal.has(a.b_descale.dtype()), ValueError, "a_descale and b_descale are ",
           name(a.a_descale.dtype()), " and ", name(a.b_descale.dtype()), ", but with block_size ", a.block_size,
           " must be ", to_string(legal));
  GroupedWork w = gemm::plain_work(a);
  w.a_fp4 = w.b_fp4 = true;
  w.alpha = gemm::number_of(a.alpha);
  set_scales(a, a.block_size == 32, static_cast<int32_t>(a.block_size), w);
  return w;
}

// ---- references ----
void reference(const GroupedMmBf16& a) {
  ref::grouped_product({.rows = a.a.size(0),
                        .n = a.b.size(1),
                        .depth = a.a.size(1),
                        .matrix_of = ref::by_offsets(a.m_indptr),
                        .a = [&](int64_t r, int64_t k) { return ref::at(a.a, {r, k}); },
                        .b = [&](int64_t e, int64_t j, int64_t k) { return ref::at(a.b, {e, j, k}); }},
                       *a.out);
}
void reference(const GroupedMmFp8& a) {
  ref::grouped_product({.rows = a.a.size(0),
                        .n = a.b.size(1),
                        .depth = a.a.size(1),
                        .matrix_of = ref::by_offsets(a.m_indptr),
                        .a = [&](int64_t r, int64_t k) { return ref::at(a.a, {r, k}); },
                        .b = [&](int64_t e, int64_t j, int64_t k) { return ref::at(a.b, {e, j, k}); },
                        .alpha = [&](int64_t) { return ref::one_or(a.alpha, 1); }},
                       *a.out);
}
/// Scale factors of all rows of a together, and of each matrix of b.
template <class B>
void reference_scaled(const B& a, bool fp4, bool e8m0, int64_t block, double alpha) {
  const int64_t m = a.a.size(0), n = a.b.size(1), depth = a.a.size(1) * (fp4 ? 2 : 1);
  const ref::ByteScales of_a{a.a_descale, SfLayout::k128x4, e8m0, m, depth, block},
      of_b{a.b_descale, SfLayout::k128x4, e8m0, n, depth, block};
  ref::grouped_product(
      {.rows = m,
       .n = n,
       .depth = depth,
       .matrix_of = ref::by_offsets(a.m_indptr),
       .a = [&](int64_t r, int64_t k) { return ref::narrow_at(a.a, fp4, r, k) * of_a.at(0, r, k); },
       .b = [&](int64_t e, int64_t j, int64_t k) { return ref::stacked_at(a.b, fp4, e, j, k) * of_b.at(e, j, k); },
       .alpha = [&](int64_t) { return alpha; }},
      *a.out);
}
void reference(const GroupedMmMxfp8& a) { reference_scaled(a, false, true, 32, 1); }
void reference(const GroupedMmFp4& a) {
  reference_scaled(a, true, a.block_size == 32, a.block_size, ref::one_or(a.alpha, 1));
}

template <class B>
constexpr op::Field cudnn =
    op::attr<&B::backend>("backend", op::backends("cudnn:cuda|cake:cuda|auto"), op::keyword_only);
using Bf16 = GroupedMmBf16;
constexpr op::Field bf16_fields[] = {op::in<&Bf16::a>("a", "m k", DType::kBF16, op::any_layout),
                                     op::in<&Bf16::b>("b", "e n k", DType::kBF16, op::any_layout),
                                     gemm::m_indptr<Bf16>,
                                     gemm::out_of_dtype<Bf16>,
                                     op::attr<&Bf16::out_dtype>("out_dtype"),
                                     cudnn<Bf16>,
                                     op::attr<&Bf16::tactic>("tactic")};
using Fp8 = GroupedMmFp8;
constexpr op::Field fp8_fields[] = {op::in<&Fp8::a>("a", "m k", op::fp8, op::any_layout),
                                    op::in<&Fp8::b>("b", "e n k", op::fp8, op::any_layout),
                                    gemm::m_indptr<Fp8>,
                                    op::in<&Fp8::alpha>("alpha", nullptr, DType::kF32),
                                    gemm::out_of_dtype<Fp8>,
                                    op::attr<&Fp8::out_dtype>("out_dtype"),
                                    cudnn<Fp8>,
                                    op::attr<&Fp8::tactic>("tactic")};
using Mxfp8 = GroupedMmMxfp8;
constexpr op::Field mxfp8_fields[] = {op::in<&Mxfp8::a>("a", "m k", op::fp8),
                                      op::in<&Mxfp8::b>("b", "e n k", op::fp8),
                                      op::in<&Mxfp8::a_descale>("a_descale", nullptr, gemm::kByte),
                                      op::in<&Mxfp8::b_descale>("b_descale", nullptr, gemm::kByte),
                                      gemm::m_indptr<Mxfp8>,
                                      gemm::out_of_dtype<Mxfp8>,
                                      op::attr<&Mxfp8::out_dtype>("out_dtype"),
                                      cudnn<Mxfp8>,
                                      op::attr<&Mxfp8::tactic>("tactic")};
using Fp4 = GroupedMmFp4;
constexpr op::Field fp4_fields[] = {op::in<&Fp4::a>("a", "m kb", gemm::kFp4Bytes),
                                    op::in<&Fp4::b>("b", "e n kb", gemm::kFp4Bytes),
                                    op::in<&Fp4::a_descale>("a_descale", nullptr, gemm::kSfBytes),
                                    op::in<&Fp4::b_descale>("b_descale", nullptr, gemm::kSfBytes),
                                    gemm::m_indptr<Fp4>,
                                    op::in<&Fp4::alpha>("alpha", nullptr, DType::kF32),
                                    gemm::out_of_dtype<Fp4>,
                                    op::attr<&Fp4::out_dtype>("out_dtype"),
                                    op::attr<&Fp4::block_size>("block_size"),
                                    cudnn<Fp4>,
                                    op::attr<&Fp4::tactic>("tactic")};
constexpr const char* kModule = "flashinfer.grouped_mm";

}  // namespace

namespace ops::gemm {
constinit const op::Op grouped_mm_bf16 = flashinfer::gemm::define_grouped<Bf16, work, reference>(
    "grouped_mm_bf16", kModule, "Each group of rows of a[m, k] times a matrix of b[e, n, k]^T.", bf16_fields,
    grouped_mm_bf16_cases);
constinit const op::Op grouped_mm_fp8 = flashinfer::gemm::define_grouped<Fp8, work, reference>(
    "grouped_mm_fp8", kModule, "grouped_mm_bf16 of FP8 matrices, times alpha.", fp8_fields, grouped_mm_fp8_cases);
constinit const op::Op grouped_mm_mxfp8 = flashinfer::gemm::define_grouped<Mxfp8, work, reference>(
    "grouped_mm_mxfp8", kModule, "grouped_mm_bf16 of MXFP8 matrices.", mxfp8_fields, grouped_mm_mxfp8_cases);
constinit const op::Op grouped_mm_fp4 = flashinfer::gemm::define_grouped<Fp4, work, reference>(
    "grouped_mm_fp4", kModule, "grouped_mm_bf16 of NVFP4 or MXFP4 matrices, times alpha.", fp4_fields,
    grouped_mm_fp4_cases);
}  // namespace ops::gemm

Tensor grouped_mm_bf16(const Bf16& a) { return op::call(family::grouped_mm_bf16, a); }
Tensor grouped_mm_fp8(const Fp8& a) { return op::call(family::grouped_mm_fp8, a); }
Tensor grouped_mm_mxfp8(const Mxfp8& a) { return op::call(family::grouped_mm_mxfp8, a); }
Tensor grouped_mm_fp4(const Fp4& a) { return op::call(family::grouped_mm_fp4, a); }

}  // namespace flashinfer
