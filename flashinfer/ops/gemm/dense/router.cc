// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/gemm/dense/router.h"

#include <cstring>

#include "flashinfer/core/context.h"
#include "flashinfer/ops/gemm/cases.h"
#include "flashinfer/ops/gemm/check.h"
#include "flashinfer/ops/gemm/cuda/product.h"
#include "flashinfer/ops/gemm/ops.h"
#include "flashinfer/ops/gemm/scaled/ref.h"

namespace flashinfer {
namespace {

namespace family = ops::gemm;
constexpr const char* kModule = "flashinfer.gemm";

// ---- router projections ----

gemm::Product product(const TensorView& a, const TensorView& b, const TensorView& out,
                      const std::optional<TensorView>& bias) {
  gemm::Product p{.k = a.size(1), .a = gemm::rows_of(a), .b = gemm::columns_of(b)};
  p.set_out(out);
  p.bias = bias ? bias->data() : nullptr;
  return p;
}
gemm::Product product(const RouterGemm& a) { return product(a.mat_a, a.mat_b, a.out, {}); }
gemm::Product product(const TinygemmBf16& a) { return product(a.input, a.weight.transpose(0, 1), a.out, a.bias); }

/// The words in brackets are FlashInfer's, by which programs recognise these errors.
template <int64_t K, int64_t N, DType kOut>
void validate_router(const RouterGemm& a) {
  FI_CHECK(a.mat_a.size(0) >= 1 && a.mat_a.size(0) <= 16, ValueError, "mat_a.shape[0] (num_tokens) is ",
           a.mat_a.size(0), ", but must be 1 to 16");
  FI_CHECK(a.mat_a.size(1) == K, ValueError, "mat_a.shape[1] (hidden_dim) is ", a.mat_a.size(1), ", but must be ", K);
  FI_CHECK(a.mat_b.size(1) == N, ValueError, "mat_b.shape[1] (num_experts) is ", a.mat_b.size(1), ", but must be ", N);
  gemm::check_column_major("mat_b", a.mat_b);
  FI_CHECK(a.out.dtype() == kOut, ValueError, "out.dtype is ", name(a.out.dtype()), ", but must be ", name(kOut));
}
void validate_tiny(const TinygemmBf16& a) {
  FI_CHECK(a.input.size(1) % 8 == 0, ValueError, "input.shape[1] is ", a.input.size(1),
           ", but must be a multiple of 8");
  FI_CHECK(a.weight.size(0) % 16 == 0, ValueError, "weight.shape[0] is ", a.weight.size(0),
           ", but must be a multiple of 16");
}
template <class B>
op::Prepared prepare_cuda(const B& a, const op::Call& call) {
  return gemm::prepare_cuda(product(a), {}, call.device);
}
template <class B>
op::Prepared prepare_cpu(const B& a) {
  return gemm::prepare(product(a));
}
void reference_router(const RouterGemm& a) {
  ref::nt_product(
      a.out, 0, a.out.size(0), a.mat_a.size(1), [&](int64_t i, int64_t k) { return ref::at(a.mat_a, {i, k}); },
      [&](int64_t j, int64_t k) { return ref::at(a.mat_b, {k, j}); }, 1);
}
/// The bias is the product with one more column of ones.
void reference_tiny(const TinygemmBf16& a) {
  const int64_t depth = a.input.size(1);
  ref::nt_product(
      a.out, 0, a.out.size(0), depth + 1,
      [&](int64_t i, int64_t k) { return k < depth ? ref::at(a.input, {i, k}) : 1.0; },
      [&](int64_t j, int64_t k) { return k < depth ? ref::at(a.weight, {j, k})
                                         : a.bias  ? ref::get(*a.bias, j)
                                                   : 0.0; },
      1);
}
template <class B>
op::Cost cost(const B& a) {
  const gemm::Product p = product(a);
  const double weights = 2.0 * static_cast<double>(p.n) * static_cast<double>(p.k);
  return {.bytes = weights + static_cast<double>(a.out.nbytes()), .flops = weights * static_cast<double>(p.m)};
}

// ---- prepare_low_latency_gemm_weights ----

op::Shape prepared_shape(const PrepareLowLatencyGemmWeights& a) { return {3, {a.w.size(1) / 128, a.w.size(0), 128}}; }
void validate_prepare(const PrepareLowLatencyGemmWeights& a) {
  FI_CHECK(a.w.size(0) % 32 == 0, ValueError, "w.shape[0] is ", a.w.size(0), ", but must be a multiple of 32");
  FI_CHECK(a.w.size(1) % 128 == 0, ValueError, "w.shape[1] is ", a.w.size(1), ", but must be a multiple of 128");
}
void launch_prepare(const PrepareLowLatencyGemmWeights& a) {
  const int64_t n = a.w.size(0);
  parallel_for(a.out->size(0), [&](int64_t block) {
    uint8_t* to = static_cast<uint8_t*>(a.out->data()) + block * n * 128;
    const auto* from = static_cast<const uint8_t*>(a.w.data()) + block * 128;
    for (int64_t row = 0; row < n; ++row, to += 128)
      std::memcpy(to, from + (row / 32 * 32 + row % 8 * 4 + row % 32 / 8) * a.w.stride(0), 128);
  });
}
/// From the source's side: each element to the place where mm_fp8's reference looks for it.
void reference_prepare(const PrepareLowLatencyGemmWeights& a) {
  for (int64_t turn = 0, place = 0; turn < 4; ++turn)
    for (int64_t i = turn; i < 32; i += 4, ++place)
      for (int64_t row = i; row < a.w.size(0); row += 32)
        for (int64_t k = 0; k < a.w.size(1); ++k)
          ref::put(*a.out, {k / 128, row - i + place, k % 128}, ref::at(a.w, {row, k}));
}
op::Cost cost_prepare(const PrepareLowLatencyGemmWeights& a) {
  return {.bytes = 2.0 * static_cast<double>(a.w.nbytes())};
}

constexpr op::Field router_fields[] = {op::in<&RouterGemm::mat_a>("mat_a", "m k", DType::kBF16),
                                       op::in<&RouterGemm::mat_b>("mat_b", "k n", DType::kBF16, op::any_layout),
                                       op::inout<&RouterGemm::out>("out", "m n", DTypeSet(DType::kF32) | DType::kBF16),
                                       op::attr<&RouterGemm::launch_with_pdl>("launch_with_pdl")};
constexpr op::Field tiny_fields[] = {op::in<&TinygemmBf16::input>("input", "m k", DType::kBF16),
                                     op::in<&TinygemmBf16::weight>("weight", "n k", DType::kBF16),
                                     op::inout<&TinygemmBf16::out>("out", "m n", DType::kBF16),
                                     op::in<&TinygemmBf16::bias>("bias", "n", DType::kBF16),
                                     op::attr<&TinygemmBf16::use_pdl>("use_pdl")};
constexpr op::Field prepare_fields[] = {
    op::in<&PrepareLowLatencyGemmWeights::w>("w", "n k", DType::kF8E4M3),
    op::attr<&PrepareLowLatencyGemmWeights::permutation_indices_cache>("permutation_indices_cache", op::required),
    op::result<&PrepareLowLatencyGemmWeights::out>("out", nullptr, DType::kF8E4M3, op::contiguous,
                                                   op::shape<prepared_shape>)};

constexpr op::Candidate router_candidates[] = {op::cuda<prepare_cuda<RouterGemm>>(), op::cpu<prepare_cpu<RouterGemm>>(),
                                               op::reference<reference_router>()};
constexpr op::Candidate tiny_candidates[] = {op::cuda<prepare_cuda<TinygemmBf16>>(),
                                             op::cpu<prepare_cpu<TinygemmBf16>>(), op::reference<reference_tiny>()};
constexpr op::Candidate prepare_candidates[] = {op::cpu<launch_prepare>(), op::reference<reference_prepare>()};

}  // namespace

namespace ops::gemm {
#define FI_ROUTER(name, k, n, out)                                                                         \
  constinit const op::Op name##_op = op::define<RouterGemm, validate_router<k, n, out>, cost<RouterGemm>>( \
      #name, kModule, "Router projection out = mat_a . mat_b of the shape in its name.", router_fields,    \
      router_candidates, name##_cases)
FI_ROUTER(mm_M1_16_K6144_N256, 6144, 256, DType::kF32);
FI_ROUTER(mm_M1_16_K7168_N128, 7168, 128, DType::kBF16);
FI_ROUTER(mm_M1_16_K7168_N256, 7168, 256, DType::kF32);
FI_ROUTER(mm_M1_16_K7168_N256_bf16, 7168, 256, DType::kBF16);
FI_ROUTER(mm_M1_16_K7168_N384, 7168, 384, DType::kF32);
FI_ROUTER(mm_M1_16_K7168_N384_bf16, 7168, 384, DType::kBF16);
FI_ROUTER(mm_M1_16_K7168_N896, 7168, 896, DType::kF32);
FI_ROUTER(mm_M1_16_K7168_N896_bf16, 7168, 896, DType::kBF16);
#undef FI_ROUTER
constinit const op::Op tinygemm_op = op::define<TinygemmBf16, validate_tiny, cost<TinygemmBf16>>(
    "tinygemm_bf16", kModule, "out = input . weight^T + bias.", tiny_fields, tiny_candidates, tinygemm_cases);
constinit const op::Op prepare_low_latency_op =
    op::define<PrepareLowLatencyGemmWeights, validate_prepare, cost_prepare>(
        "prepare_low_latency_gemm_weights", "flashinfer", "A weight in the layout that mm_fp8 takes.", prepare_fields,
        prepare_candidates, prepare_low_latency_cases);
}  // namespace ops::gemm

void mm_M1_16_K6144_N256(const RouterGemm& a) { op::call(family::mm_M1_16_K6144_N256_op, a); }
void mm_M1_16_K7168_N128(const RouterGemm& a) { op::call(family::mm_M1_16_K7168_N128_op, a); }
void mm_M1_16_K7168_N256(const RouterGemm& a) { op::call(family::mm_M1_16_K7168_N256_op, a); }
void mm_M1_16_K7168_N256_bf16(const RouterGemm& a) { op::call(family::mm_M1_16_K7168_N256_bf16_op, a); }
void mm_M1_16_K7168_N384(const RouterGemm& a) { op::call(family::mm_M1_16_K7168_N384_op, a); }
void mm_M1_16_K7168_N384_bf16(const RouterGemm& a) { op::call(family::mm_M1_16_K7168_N384_bf16_op, a); }
void mm_M1_16_K7168_N896(const RouterGemm& a) { op::call(family::mm_M1_16_K7168_N896_op, a); }
void mm_M1_16_K7168_N896_bf16(const RouterGemm& a) { op::call(family::mm_M1_16_K7168_N896_bf16_op, a); }
void tinygemm_bf16(const TinygemmBf16& a) { op::call(family::tinygemm_op, a); }
Tensor prepare_low_latency_gemm_weights(const PrepareLowLatencyGemmWeights& a) {
  return op::call(family::prepare_low_latency_op, a);
}

}  // namespace flashinfer
