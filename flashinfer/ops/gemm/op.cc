// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/gemm/op.h"

#include "flashinfer/op/call.h"
#include "flashinfer/ops/gemm/cases.h"
#include "flashinfer/ops/gemm/cpu/launch.h"
#include "flashinfer/ops/gemm/cublaslt/cublaslt.h"
#include "flashinfer/ops/gemm/cuda/product.h"
#include "flashinfer/ops/gemm/ops.h"
#include "flashinfer/ops/gemm/packed/packed_weight.h"
#include "flashinfer/ops/gemm/ref.h"

namespace flashinfer {
namespace {

constexpr DTypeSet kOutTypes = op::floats;
// Upstream's kernels are all for GPUs: their names are accepted and mean "the one there is".
constexpr const char* kMmBackends =
    "auto|cudnn:cuda|cutlass:cuda|tgv:cuda|cublaslt:cuda|cublas:cuda|cake:cuda|cutile:cuda|tinygemm:cuda|cute-dsl:cuda";
constexpr const char* kBmmFp8Backends = "auto|cublas:cuda|cudnn:cuda|cutlass:cuda|cute-dsl:cuda";

/// n of a packed weight; ValueError if `b` is none or is packed for another k.
int64_t packed_columns(const MmBf16& a) {
  FI_CHECK(a.b.size(2) == kPackedWidth, ValueError, "b is ", to_string(a.b),
           ", but must be [k, n], or a packed weight ",
           "[panels, 1 + ceil(k / 2), 32] as prepare_mm_weights returns it");
  return gemm::packed_columns("b", a.b, GemmFormat::kBF16, a.a.size(1));
}

op::Shape mm_shape(const MmBf16& a) {
  const int64_t m = a.a.size(0);
  if (a.b.rank() == 3) return {2, {m, op::inferring() ? op::kAnyExtent : packed_columns(a)}};
  FI_CHECK(a.b.rank() == 2, ValueError, "b has rank ", a.b.rank(), " (", to_string(a.b),
           "), but must be [k, n] or a packed weight of prepare_mm_weights");
  FI_CHECK(a.b.size(0) == a.a.size(1), ValueError, "b.shape[0] is ", a.b.size(0), ", but k is ", a.a.size(1),
           " (from a.shape[1])");
  return {2, {m, a.b.size(1)}};
}

void validate_mm(const MmBf16& a) {
  const op::Shape s = mm_shape(a);
  FI_CHECK(!a.bias || a.bias->size(0) == s.size[1], ValueError, "bias.shape[0] is ", a.bias->size(0), ", but n is ",
           s.size[1], " (from b)");
  FI_CHECK(kOutTypes.has(a.out_dtype), ValueError, "out_dtype is ", name(a.out_dtype), ", but must be ",
           to_string(kOutTypes));
}
void validate_bmm(const BmmBf16& a) {
  FI_CHECK(kOutTypes.has(a.out_dtype), ValueError, "out_dtype is ", name(a.out_dtype), ", but must be ",
           to_string(kOutTypes));
}
void validate_fp8(const BmmFp8& a) {
  FI_CHECK(a.dtype == DType::kBF16 || a.dtype == DType::kF16, ValueError, "dtype is ", name(a.dtype),
           ", but must be bfloat16 or float16");
  FI_CHECK(a.A.dtype() != DType::kF8E5M2 || a.B.dtype() != DType::kF8E5M2, ValueError, "A.dtype and B.dtype are ",
           "both float8_e5m2, but one of them must be float8_e4m3fn");
  FI_CHECK(a.A_scale.numel() == 1, ValueError, "A_scale is ", to_string(a.A_scale), ", but must hold one value");
  FI_CHECK(a.B_scale.numel() == 1, ValueError, "B_scale is ", to_string(a.B_scale), ", but must hold one value");
}
op::Shape packed_shape(const PrepareMmWeights& a) {
  return {3, {packed_panels(a.b.size(1)), packed_lines(GemmFormat::kBF16, a.b.size(0)), kPackedWidth}};
}

gemm::Product product_of(const TensorView& a, const TensorView& b, const TensorView& out) {
  gemm::Product p{.k = a.size(-1), .a = gemm::rows_of(a), .b = gemm::columns_of(b)};
  p.set_out(out);
  return p;
}
gemm::Product product(const MmBf16& a) {
  gemm::Product p = product_of(a.a, a.b, *a.out);
  if (a.b.rank() == 3) {
    p.b = {.data = a.b.data(), .line = a.b.stride(0)};
    p.packed = true;
  }
  p.bias = a.bias ? a.bias->data() : nullptr;
  return p;
}
gemm::Product product(const BmmBf16& a) { return product_of(a.A, a.B, *a.out); }
gemm::Product product(const BmmFp8& a) {
  gemm::Product p = product_of(a.A, a.B, *a.out);
  p.alpha_a = a.A_scale.data_as<float>();
  p.alpha_b = a.B_scale.data_as<float>();
  return p;
}
gemm::LtProduct lt_product(const MmBf16& a) {
  return {.a = a.a, .b = a.b, .out = *a.out, .bias = a.bias ? &*a.bias : nullptr};
}
gemm::LtProduct lt_product(const BmmBf16& a) { return {.a = a.A, .b = a.B, .out = *a.out}; }
gemm::LtProduct lt_product(const BmmFp8& a) {
  return {
      .a = a.A, .b = a.B, .out = *a.out, .scale_a = a.A_scale.data_as<float>(), .scale_b = a.B_scale.data_as<float>()};
}
template <class Block>
op::Prepared prepare_cublaslt(const Block& a, const op::Call& call) {
  return gemm::prepare_cublaslt(lt_product(a), call.device);
}
template <class Block>
op::Prepared prepare_cuda(const Block& a, const op::Call& call) {
  const gemm::Product p = product(a);
  return gemm::prepare_cuda(p, {.matrices = p.batch}, call.device);
}
template <class Block>
op::Prepared prepare_cpu(const Block& a) {
  return gemm::prepare(product(a));
}
op::Prepared prepare_packing(const PrepareMmWeights& a) { return gemm::prepare_pack_weights(a.b, *a.out); }

void reference_mm(const MmBf16& a) { ref::mm(a.a, a.b, a.bias ? &*a.bias : nullptr, 1.0, *a.out); }
void reference_bmm(const BmmBf16& a) { ref::bmm(a.A, a.B, 1.0, *a.out); }
void reference_fp8(const BmmFp8& a) {
  ref::bmm(a.A, a.B, static_cast<double>(*a.A_scale.data_as<float>()) * *a.B_scale.data_as<float>(), *a.out);
}
void reference_prepare(const PrepareMmWeights& a) { ref::pack(a.b, *a.out); }

op::Cost cost_of(const TensorView& a, const TensorView& b, const TensorView& out) {
  const auto count = [](const TensorView& t) { return static_cast<double>(t.nbytes()); };
  return {.bytes = count(a) + count(b) + count(out),
          .flops = 2.0 * static_cast<double>(out.numel()) * static_cast<double>(a.size(-1))};
}
op::Cost cost(const MmBf16& a) { return cost_of(a.a, a.b, *a.out); }
op::Cost cost(const BmmBf16& a) { return cost_of(a.A, a.B, *a.out); }
op::Cost cost(const BmmFp8& a) { return cost_of(a.A, a.B, *a.out); }
op::Cost cost_prepare(const PrepareMmWeights& a) {
  return {.bytes = 2.0 * static_cast<double>(a.b.nbytes()), .flops = 0};
}

constexpr op::Field mm_fields[] = {
    op::in<&MmBf16::a>("a", "m k", DType::kBF16, op::any_layout),
    op::in<&MmBf16::b>("b", nullptr, DType::kBF16, op::any_layout),
    op::in<&MmBf16::bias>("bias", "n", DType::kBF16),
    op::attr<&MmBf16::pdl>("pdl"),
    op::out<&MmBf16::out>("out", nullptr, op::dtype_from("out_dtype"), op::shape<mm_shape>),
    op::attr<&MmBf16::out_dtype>("out_dtype"),
    op::attr<&MmBf16::backend>("backend", op::backends(kMmBackends)),
};
constexpr op::Field bmm_fields[] = {
    op::in<&BmmBf16::A>("A", "b m k", DType::kBF16, op::any_layout),
    op::in<&BmmBf16::B>("B", "b k n", DType::kBF16, op::any_layout),
    op::out<&BmmBf16::out>("out", "b m n", op::dtype_from("out_dtype")),
    op::attr<&BmmBf16::out_dtype>("out_dtype"),
    op::attr<&BmmBf16::backend>("backend", op::backends(kMmBackends)),
};
constexpr op::Field fp8_fields[] = {
    op::in<&BmmFp8::A>("A", "b m k", op::fp8, op::any_layout),
    op::in<&BmmFp8::B>("B", "b k n", op::fp8, op::any_layout),
    op::in<&BmmFp8::A_scale>("A_scale", nullptr, DType::kF32),
    op::in<&BmmFp8::B_scale>("B_scale", nullptr, DType::kF32),
    op::attr<&BmmFp8::dtype>("dtype", op::required),
    op::out<&BmmFp8::out>("out", "b m n", op::dtype_from("dtype")),
    op::attr<&BmmFp8::backend>("backend", op::backends(kBmmFp8Backends)),
};
constexpr op::Field prepare_fields[] = {
    op::in<&PrepareMmWeights::b>("b", "k n", DType::kBF16, op::any_layout),
    op::out<&PrepareMmWeights::out>("out", nullptr, DType::kBF16, op::contiguous, op::shape<packed_shape>),
};

template <class Block, void (*Reference)(const Block&)>
constexpr op::Candidate kCandidates[] = {op::candidate<prepare_cublaslt<Block>>(op::Backend::kCublasLt),
                                         op::cuda<prepare_cuda<Block>>(), op::cpu<prepare_cpu<Block>>(),
                                         op::reference<Reference>()};
constexpr op::Candidate prepare_candidates[] = {op::cpu<prepare_packing>(), op::reference<reference_prepare>()};

constexpr const char* kModule = "flashinfer.gemm";
constinit const op::Op mm_op = op::define<MmBf16, validate_mm, cost>(
    "mm_bf16", kModule, "Matrix product a[m, k] . b[k, n] + bias in f32, rounded once; b may be a packed weight.",
    mm_fields, kCandidates<MmBf16, reference_mm>, ops::gemm::mm_bf16_cases);
constinit const op::Op bmm_op = op::define<BmmBf16, validate_bmm, cost>(
    "bmm_bf16", kModule, "Batched matrix product A[b, m, k] . B[b, k, n] in f32, rounded once.", bmm_fields,
    kCandidates<BmmBf16, reference_bmm>, ops::gemm::bmm_bf16_cases);
constinit const op::Op fp8_op = op::define<BmmFp8, validate_fp8, cost>(
    "bmm_fp8", kModule, "Batched product of FP8 matrices, (A . B) * A_scale * B_scale in f32, rounded once.",
    fp8_fields, kCandidates<BmmFp8, reference_fp8>, ops::gemm::bmm_fp8_cases);
constinit const op::Op prepare_op = op::define<PrepareMmWeights, nullptr, cost_prepare>(
    "prepare_mm_weights", kModule, "Packs a weight b[k, n] once into the layout that mm_bf16 reads fastest.",
    prepare_fields, prepare_candidates, ops::gemm::prepare_mm_weights_cases);

constexpr const op::Op* kOps[] = {&mm_op,
                                  &bmm_op,
                                  &fp8_op,
                                  &prepare_op,
                                  &ops::gemm::mm_fp8_op,
                                  &ops::gemm::mm_mxfp8_op,
                                  &ops::gemm::bmm_mxfp8_op,
                                  &ops::gemm::mm_fp4_op,
                                  &ops::gemm::groupwise_op,
                                  &ops::gemm::blockscaled_op,
                                  &ops::gemm::mm_gguf_op,
                                  &ops::gemm::prepare_gguf_op,
                                  &ops::gemm::gguf_dequantize_op,
                                  &ops::gemm::grouped_mm_bf16,
                                  &ops::gemm::grouped_mm_fp8,
                                  &ops::gemm::grouped_mm_mxfp8,
                                  &ops::gemm::grouped_mm_fp4,
                                  &ops::gemm::group_gemm_fp8_groupwise,
                                  &ops::gemm::group_deepgemm_fp8,
                                  &ops::gemm::group_gemm_fp8_contiguous,
                                  &ops::gemm::batch_deepgemm_fp8,
                                  &ops::gemm::group_gemm_mxfp4,
                                  &ops::gemm::group_gemm_nvfp4,
                                  &ops::gemm::segment_init_op,
                                  &ops::gemm::segment_run_op,
                                  &ops::gemm::mm_M1_16_K6144_N256_op,
                                  &ops::gemm::mm_M1_16_K7168_N128_op,
                                  &ops::gemm::mm_M1_16_K7168_N256_op,
                                  &ops::gemm::mm_M1_16_K7168_N256_bf16_op,
                                  &ops::gemm::mm_M1_16_K7168_N384_op,
                                  &ops::gemm::mm_M1_16_K7168_N384_bf16_op,
                                  &ops::gemm::mm_M1_16_K7168_N896_op,
                                  &ops::gemm::mm_M1_16_K7168_N896_bf16_op,
                                  &ops::gemm::tinygemm_op,
                                  &ops::gemm::prepare_low_latency_op,
                                  &ops::gemm::prepare_quantized_op,
                                  &ops::gemm::masked_bmm_op,
                                  &ops::gemm::ragged_bmm_op,
                                  &ops::gemm::alpha_beta_op,
                                  &ops::gemm::prepare_bf16_fp4_op,
                                  &ops::gemm::mm_bf16_fp4_op,
                                  &ops::gemm::segment_reset_op,
                                  &ops::gemm::masked_scaled_bmm_op,
                                  &ops::gemm::ragged_scaled_bmm_op,
                                  &ops::gemm::ragged_block_scaled_bmm_op,
                                  &ops::gemm::grouped_gemm_nt_masked_op,
                                  &ops::gemm::pad_indptr_op,
                                  &ops::gemm::blockscale_sm90_op};
}  // namespace

Tensor mm_bf16(const MmBf16& a) { return op::call(mm_op, a); }
Tensor bmm_bf16(const BmmBf16& a) { return op::call(bmm_op, a); }
Tensor bmm_fp8(const BmmFp8& a) { return op::call(fp8_op, a); }
Tensor prepare_mm_weights(const PrepareMmWeights& a) { return op::call(prepare_op, a); }

namespace ops::gemm {
extern const std::span<const op::Op* const> all;
constinit const std::span<const op::Op* const> all = kOps;
}  // namespace ops::gemm

}  // namespace flashinfer
