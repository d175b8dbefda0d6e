// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/gemm/scaled/bf16_fp4.h"

#include "flashinfer/ops/gemm/cases.h"
#include "flashinfer/ops/gemm/check.h"
#include "flashinfer/ops/gemm/cuda/product.h"
#include "flashinfer/ops/gemm/ops.h"
#include "flashinfer/ops/gemm/scaled/ref.h"
#include "flashinfer/ops/quantization/block/launch.h"

namespace flashinfer {
namespace {
using Prepare = PrepareBf16Fp4Weights;
using Mm = MmBf16Fp4;
namespace family = ops::gemm;
constexpr const char* kBackends =
    "cudnn:cuda|cute-dsl:cuda|cute-dsl-native:cuda|blackwell-native:cuda|blackwell-tiled:cuda|auto";

template <class B>
ScaleFactors check_weight(const B& a) {
  FI_CHECK(a.block_size == 16, ValueError, "block_size is ", a.block_size, ", but NVFP4 has one scale for 16");
  const int64_t k = 2 * a.b.size(1);
  FI_CHECK(k % 16 == 0, ValueError, "b is ", to_string(a.b), ", k = ", k, ", but k must be a multiple of 16");
  gemm::check_one("alpha", a.alpha);
  return gemm::check_sf("b_descale", a.b_descale, SfLayout::k128x4, false, 1, a.b.size(0), k / 16, 16);
}
void validate_prepare(const Prepare& a) { check_weight(a); }
void validate_mm(const Mm& a) {
  check_weight(a);
  FI_CHECK(a.a.size(1) == 2 * a.b.size(1), ValueError, "a.shape[1] is ", a.a.size(1), ", but k is ", 2 * a.b.size(1),
           " (from b.shape[1])");
  gemm::check_out_dtype(a.out_dtype.value_or(DType::kBF16), op::floats);
}

void prepare(const Prepare& a) {
  ops::copy_strided(a.b, *a.b_prepared);
  ops::copy_strided(a.b_descale, *a.b_descale_prepared);
  a.alpha_prepared->data_as<float>()[0] = a.alpha ? *a.alpha->data_as<float>() : 1.0f;
}
gemm::Product product(const Mm& a) {
  gemm::Product p{.k = a.a.size(1), .a = gemm::rows_of(a.a), .b = gemm::rows_of(a.b)};
  p.set_out(*a.out);
  p.b.sf = check_weight(a);
  p.alpha_a = gemm::number_of(a.alpha);
  return p;
}
op::Prepared prepare_mm(const Mm& a) { return gemm::prepare(product(a)); }
op::Prepared prepare_mm_cuda(const Mm& a, const op::Call& call) {
  return gemm::prepare_cuda(product(a), {}, call.device);
}
void reference(const Mm& a) {
  const ref::ByteScales scale{a.b_descale, SfLayout::k128x4, false, a.b.size(0), a.a.size(1), 16};
  ref::nt_product(
      *a.out, 0, a.a.size(0), a.a.size(1), [&](int64_t i, int64_t k) { return ref::at(a.a, {i, k}); },
      [&](int64_t j, int64_t k) { return ref::narrow_at(a.b, true, j, k) * scale.at(0, j, k); },
      a.alpha ? ref::get(a.alpha->view({1}), 0) : 1.0);
}
op::Cost cost(const Mm& a) {
  return {.bytes = static_cast<double>(a.a.nbytes() + a.b.nbytes()),
          .flops = 4.0 * static_cast<double>(a.a.size(0)) * static_cast<double>(a.b.numel())};
}

op::Shape b_shape(const Prepare& a) { return {2, {a.b.size(0), a.b.size(1)}}; }
op::Shape sf_shape(const Prepare& a) {
  op::Shape s{a.b_descale.rank()};
  for (int i = 0; i < s.rank; ++i) s.size[i] = a.b_descale.size(i);
  return s;
}
op::Shape one(const Prepare&) { return {1, {1}}; }
op::Shape out_shape(const Mm& a) { return {2, {a.a.size(0), a.b.size(0)}}; }
DType out_dtype(const Mm& a) { return a.out_dtype.value_or(DType::kBF16); }
inline constexpr DTypeSet kScales = DTypeSet(DType::kF8E4M3) | DType::kU8;

constexpr op::Field prepare_fields[] = {
    op::in<&Prepare::b>("b", "n bytes", DType::kU8),
    op::in<&Prepare::b_descale>("b_descale", nullptr, kScales),
    op::in<&Prepare::alpha>("alpha", nullptr, DType::kF32),
    op::attr<&Prepare::backend>("backend", op::required, op::keyword_only, op::backends(kBackends)),
    op::attr<&Prepare::block_size>("block_size"),
    op::result<&Prepare::b_prepared>("b_prepared", nullptr, DType::kU8, op::shape<b_shape>),
    op::result<&Prepare::b_descale_prepared>("b_descale_prepared", nullptr, op::same_as("b_descale"),
                                             op::shape<sf_shape>),
    op::result<&Prepare::alpha_prepared>("alpha_prepared", nullptr, DType::kF32, op::shape<one>),
};
constexpr op::Field mm_fields[] = {
    op::in<&Mm::a>("a", "m k", DType::kBF16),
    op::in<&Mm::b>("b", "n bytes", DType::kU8, op::doc("the weight, two e2m1 codes a byte")),
    op::in<&Mm::b_descale>("b_descale", nullptr, kScales),
    op::in<&Mm::alpha>("alpha", nullptr, DType::kF32),
    op::attr<&Mm::backend>("backend", op::required, op::keyword_only, op::backends(kBackends)),
    op::attr<&Mm::out_dtype>("out_dtype"),
    op::out<&Mm::out>("out", nullptr, op::floats, op::shape<out_shape>, op::dtype<out_dtype>),
    op::attr<&Mm::block_size>("block_size"),
    op::attr<&Mm::enable_pdl>("enable_pdl"),
};
constexpr op::Candidate prepare_candidates[] = {op::cpu<prepare>(), op::reference<prepare>()};
constexpr op::Candidate mm_candidates[] = {op::cuda<prepare_mm_cuda>(), op::cpu<prepare_mm>(),
                                           op::reference<reference>()};
constexpr op::Case kPrepareCases[] = {
    {"alpha", "b=u8:33x32:randint(0,256) b_descale=u8:128x4:randint(40,56) alpha=f32:[0.5] backend='auto'"},
    {"none", "b=u8:0x32 b_descale=e4m3:0 backend='auto'"},
};
constexpr op::Case kMmCases[] = {
    {"row", "a=bf16:1x256 b=u8:33x128:randint(0,256) b_descale=u8:128x16:randint(40,56) alpha=f32:[0.5] backend='auto'",
     "cpu", 0, -1, 2e-2},
    {"many",
     "a=bf16:40x80^pad8 b=u8:130x40:randint(0,256) b_descale=e4m3:2048:uniform(0.1,1) backend='auto' out_dtype=float32",
     "cpu", 0, -1, 1e-3},
    {"decode", "a=bf16:1x4096 b=u8:14336x2048:randint(0,256) b_descale=u8:14336x256:randint(40,56) backend='auto'",
     "cpu", op::kBench},
};
std::span<const op::Case> prepare_cases() { return kPrepareCases; }
std::span<const op::Case> mm_cases() { return kMmCases; }
}  // namespace

namespace ops::gemm {
constinit const op::Op prepare_bf16_fp4_op = op::define<Prepare, validate_prepare>(
    "prepare_bf16_fp4_weights", "flashinfer.gemm",
    "Copies an NVFP4 weight and its scales for mm_bf16_fp4, which reads them unpacked.", prepare_fields,
    prepare_candidates, prepare_cases);
constinit const op::Op mm_bf16_fp4_op = op::define<Mm, validate_mm, cost>(
    "mm_bf16_fp4", "flashinfer.gemm", "bf16 rows times an NVFP4 weight.", mm_fields, mm_candidates, mm_cases);
}  // namespace ops::gemm

std::tuple<Tensor, Tensor, Tensor> prepare_bf16_fp4_weights(const Prepare& a) {
  return op::call(family::prepare_bf16_fp4_op, a);
}
Tensor mm_bf16_fp4(const Mm& a) { return op::call(family::mm_bf16_fp4_op, a); }

}  // namespace flashinfer
