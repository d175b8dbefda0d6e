// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/gemm/scaled/scaled.h"

#include "flashinfer/core/layout_error.h"
#include "flashinfer/ops/gemm/cases.h"
#include "flashinfer/ops/gemm/cublaslt/cublaslt.h"
#include "flashinfer/ops/gemm/ops.h"
#include "flashinfer/ops/gemm/packed/packed_weight.h"
#include "flashinfer/ops/gemm/packed/ref.h"
#include "flashinfer/ops/gemm/scaled/tables.h"

namespace flashinfer {
namespace {

using gemm::Product;
namespace family = ops::gemm;

// ---- mm_fp8 ----
bool is_packed(const MmFp8& a) { return gemm::is_packed(a.b); }
bool in_blocks(const MmFp8& a) { return a.b.rank() == 3 && !is_packed(a); }  // of 128 along k
int64_t columns_of(const MmFp8& a) {
  FI_CHECK(a.b.rank() == 2 || a.b.rank() == 3, ValueError, "b is ", to_string(a.b),
           ", but must be a plain [n, k] weight, [k / 128, n, 128] from prepare_low_latency_gemm_weights or one from "
           "prepare_quantized_weights");
  if (is_packed(a)) return op::inferring() ? op::kAnyExtent : gemm::packed_columns("b", a.b, a.a.size(1));
  return a.b.size(in_blocks(a) ? 1 : 0);
}
op::Shape mm_fp8_shape(const MmFp8& a) { return {2, {a.a.size(0), columns_of(a)}}; }
void validate(const MmFp8& a) {
  const int64_t n = columns_of(a), k = a.a.size(1);
  FI_CHECK(a.b.rank() == 2 || a.b.dtype() == DType::kF8E4M3, ValueError, "b is ", to_string(a.b),
           ", but packed weights are float8_e4m3fn");
  if (in_blocks(a)) {
    FI_CHECK(a.b.size(2) == 128 && a.b.size(0) * 128 == k, ValueError, "b is ", to_string(a.b), ", but a.shape[1] is ",
             k, ", which needs [k / 128, n, 128]");
    FI_CHECK(n % 32 == 0, ValueError, "b.shape[1] is ", n,
             ", but a weight of prepare_low_latency_gemm_weights has a multiple of 32 columns");
    FI_CHECK(a.b.is_contiguous(), LayoutError, "b is ", to_string(a.b),
             ", but a weight of prepare_low_latency_gemm_weights must be contiguous");
  } else if (!is_packed(a)) {
    FI_CHECK(a.b.size(1) == k, ValueError, "b.shape[1] is ", a.b.size(1), ", but k is ", k, " (from a.shape[1])");
    FI_CHECK(a.a.dtype() != DType::kF8E5M2 || a.b.dtype() != DType::kF8E5M2, ValueError,
             "a.dtype and b.dtype are both float8_e5m2, but one of them must be float8_e4m3fn");
  }
  gemm::check_one("alpha", a.alpha);
  gemm::check_out_dtype(a.out_dtype, DType::kBF16);
}
Product product(const MmFp8& a) {
  Product p = gemm::product_with(a.a, a.b, *a.out);
  if (in_blocks(a))
    p.b = {.data = a.b.data(),
           .format = GemmFormat::kE4M3,
           .block_k = 128,
           .block_stride = a.b.size(1) * 128,
           .interleaved = true};
  p.alpha_a = gemm::number_of(a.alpha);
  return p;
}
void reference(const MmFp8& a) {
  ref::nt_product(
      *a.out, 0, a.out->size(0), a.a.size(1), [&](int64_t i, int64_t k) { return ref::at(a.a, {i, k}); },
      [&](int64_t j, int64_t k) {
        return in_blocks(a) ? ref::low_latency_at(a.b, j, k) : ref::weight_at(a.b, is_packed(a), false, j, k);
      },
      a.alpha ? ref::get(a.alpha->view({1}), 0) : 1.0);
}

/// The weight as [k, n]; alpha as the scale of `a`.
gemm::LtProduct lt_product(const MmFp8& a) {
  return {.a = a.a, .b = a.b.transpose(0, 1), .out = *a.out, .scale_a = a.alpha ? a.alpha->data_as<float>() : nullptr};
}
op::Prepared prepare_cublaslt(const MmFp8& a, const op::Call& call) {
  if (a.b.rank() == 3) return op::Unsupported{"b is a packed weight, but cuBLASLt reads a plain [n, k] weight"};
  return gemm::prepare_cublaslt(lt_product(a), call.device);
}
constexpr op::Candidate mm_fp8_candidates[] = {
    op::candidate<prepare_cublaslt>(op::Backend::kCublasLt), op::cuda<gemm::prepare_scaled_cuda<MmFp8, product>>(),
    op::cpu<gemm::prepare_scaled<MmFp8, product>>(), op::reference<static_cast<void (*)(const MmFp8&)>(reference)>()};

// ---- f32 scales of blocks ----
template <class B>
int64_t grid_columns(const B& a) {
  if (gemm::is_packed(a.b)) return op::inferring() ? op::kAnyExtent : gemm::packed_columns("b", a.b, a.a.size(1));
  FI_CHECK(a.b.rank() == 2 && a.b.size(1) == a.a.size(1), ValueError, "b is ", to_string(a.b),
           ", but must be [n, k] with k = ", a.a.size(1),
           " (from a.shape[1]), or a weight from prepare_quantized_weights");
  return a.b.size(0);
}
template <class B>
op::Shape grid_shape(const B& a) {
  return {2, {a.a.size(0), grid_columns(a)}};
}
struct Grids {
  BlockScales a, b;
  int64_t k;
};
Grids grids(const GemmFp8NtGroupwise& a) {
  gemm::check_granularity(a.scale_granularity_mnk);
  const bool plain = !a.scale_major_mode && a.backend == "trtllm", mn = a.scale_major_mode == "MN";
  FI_CHECK(plain || mn || a.scale_major_mode == "K", ValueError, "scale_major_mode is ",
           a.scale_major_mode.value_or("None"), ", but must be 'MN' or 'K' (None only with backend 'trtllm')");
  const std::vector<int64_t>& g = a.scale_granularity_mnk;
  return {gemm::check_grid("a_scale", a.a_scale, mn, 0, a.a.size(0), a.a.size(1), g[0], g[2]),
          gemm::check_grid("b_scale", a.b_scale, mn || plain, 0, grid_columns(a), a.a.size(1), g[1], g[2]), g[2]};
}
Grids grids(const GemmFp8NtBlockscaled& a) {
  const bool mn = a.scale_major_mode == "MN";
  return {gemm::check_grid("a_scale", a.a_scale, mn, 0, a.a.size(0), a.a.size(1), 128, 128),
          gemm::check_grid("b_scale", a.b_scale, mn, 0, grid_columns(a), a.a.size(1), 128, 128), 128};
}
template <class B>
DType grid_dtype(const B& a) {
  return a.out_dtype ? *a.out_dtype : a.out ? a.out->dtype() : DType::kBF16;
}
template <class B>
void validate_grid(const B& a) {
  grid_columns(a);
  if (!gemm::is_packed(a.b) || !op::inferring()) grids(a);
  FI_CHECK(a.mma_sm == 1 || a.mma_sm == 2, ValueError, "mma_sm is ", a.mma_sm, ", but must be 1 or 2");
  gemm::check_out_dtype(grid_dtype(a), gemm::kHalves);
}
void validate(const GemmFp8NtGroupwise& a) { validate_grid(a); }
void validate(const GemmFp8NtBlockscaled& a) { validate_grid(a); }
template <class B>
Product product_with_grids(const B& a) {
  const Grids g = grids(a);
  Product p = gemm::product_with(a.a, a.b, *a.out);
  p.a_grid = g.a;
  p.b_grid = g.b;
  p.grid_k = g.k;
  return p;
}
Product product(const GemmFp8NtGroupwise& a) { return product_with_grids(a); }
Product product(const GemmFp8NtBlockscaled& a) { return product_with_grids(a); }
template <class B>
void reference_grid(const B& a, const ref::BlockGrid& of_a, const ref::BlockGrid& of_b) {
  ref::nt_product(
      *a.out, 0, a.out->size(0), a.a.size(1),
      [&](int64_t i, int64_t k) { return ref::at(a.a, {i, k}) * of_a.at(0, i, k); },
      [&](int64_t j, int64_t k) { return ref::weight_at(a.b, a.b.rank() == 3, false, j, k) * of_b.at(0, j, k); }, 1);
}
void reference(const GemmFp8NtGroupwise& a) {
  const std::vector<int64_t>& g = a.scale_granularity_mnk;
  reference_grid(a, {a.a_scale, a.scale_major_mode == "MN", g[0], g[2]},
                 {a.b_scale, a.scale_major_mode != "K", g[1], g[2]});
}
void reference(const GemmFp8NtBlockscaled& a) {
  const bool k_first = a.scale_major_mode == "MN";
  reference_grid(a, {a.a_scale, k_first, 128, 128}, {a.b_scale, k_first, 128, 128});
}

template <class B>
op::Prepared prepare_grids_cublaslt(const B& a, const op::Call& call) {
  if (gemm::is_packed(a.b)) return op::Unsupported{"b is a packed weight, but cuBLASLt reads a plain [n, k] weight"};
  const Grids g = grids(a);
  const gemm::LtProduct p{
      .a = a.a, .b = a.b.transpose(0, 1), .out = *a.out, .grid_a = g.a, .grid_b = g.b, .grid_k = g.k};
  return gemm::prepare_cublaslt_or_own<B, product>(a, p, call);
}

// ---- tables ----
constexpr op::Field mm_fp8_fields[] = {
    op::in<&MmFp8::a>("a", "m k", op::fp8, op::any_layout),
    op::in<&MmFp8::b>("b", nullptr, op::fp8, op::any_layout),
    op::in<&MmFp8::alpha>("alpha", nullptr, DType::kF32),
    op::attr<&MmFp8::out_dtype>("out_dtype"),
    op::out<&MmFp8::out>("out", nullptr, op::dtype_from("out_dtype"), op::shape<mm_fp8_shape>),
    op::attr<&MmFp8::backend>("backend",
                              op::backends("trtllm_low_latency:cuda|cutedsl_low_latency:cuda|cublas:cuda|cudnn:cuda|"
                                           "cutlass:cuda|auto")),
};
constexpr op::Field groupwise_fields[] = {
    op::in<&GemmFp8NtGroupwise::a>("a", "m k", op::fp8, op::any_layout),
    op::in<&GemmFp8NtGroupwise::b>("b", nullptr, op::fp8, op::any_layout),
    op::in<&GemmFp8NtGroupwise::a_scale>("a_scale", nullptr, DType::kF32, op::any_layout),
    op::in<&GemmFp8NtGroupwise::b_scale>("b_scale", nullptr, DType::kF32, op::any_layout),
    op::attr<&GemmFp8NtGroupwise::scale_major_mode>("scale_major_mode"),
    op::attr<&GemmFp8NtGroupwise::mma_sm>("mma_sm"),
    op::attr<&GemmFp8NtGroupwise::scale_granularity_mnk>("scale_granularity_mnk", op::literal("(1, 128, 128)")),
    op::out<&GemmFp8NtGroupwise::out>("out", nullptr, op::dtype<grid_dtype<GemmFp8NtGroupwise>>,
                                      op::shape<grid_shape<GemmFp8NtGroupwise>>),
    op::attr<&GemmFp8NtGroupwise::out_dtype>("out_dtype"),
    op::attr<&GemmFp8NtGroupwise::backend>("backend", op::backends("cutlass:cuda|trtllm:cuda|cutile:cuda|auto")),
};
constexpr op::Field blockscaled_fields[] = {
    op::in<&GemmFp8NtBlockscaled::a>("a", "m k", op::fp8, op::any_layout),
    op::in<&GemmFp8NtBlockscaled::b>("b", nullptr, op::fp8, op::any_layout),
    op::in<&GemmFp8NtBlockscaled::a_scale>("a_scale", nullptr, DType::kF32, op::any_layout),
    op::in<&GemmFp8NtBlockscaled::b_scale>("b_scale", nullptr, DType::kF32, op::any_layout),
    op::attr<&GemmFp8NtBlockscaled::scale_major_mode>("scale_major_mode", op::choices("MN|K")),
    op::attr<&GemmFp8NtBlockscaled::mma_sm>("mma_sm"),
    op::out<&GemmFp8NtBlockscaled::out>("out", nullptr, op::dtype<grid_dtype<GemmFp8NtBlockscaled>>,
                                        op::shape<grid_shape<GemmFp8NtBlockscaled>>),
    op::attr<&GemmFp8NtBlockscaled::out_dtype>("out_dtype"),
};
}  // namespace

namespace ops::gemm {
constinit const op::Op mm_fp8_op = op::define<MmFp8, validate, flashinfer::gemm::cost_scaled<MmFp8, product>>(
    "mm_fp8", "flashinfer.gemm",
    "Product of FP8 matrices, alpha * a[m, k] . b; b is an unpacked [n, k] weight or a packed one.", mm_fp8_fields,
    mm_fp8_candidates, mm_fp8_cases);
constinit const op::Op groupwise_op =
    flashinfer::gemm::define_scaled<GemmFp8NtGroupwise, validate, product, prepare_grids_cublaslt, reference>(
        "gemm_fp8_nt_groupwise", "a[m, k] . b[n, k]^T of FP8 matrices with f32 scales of blocks.", groupwise_fields,
        groupwise_cases);
constinit const op::Op blockscaled_op =
    flashinfer::gemm::define_scaled<GemmFp8NtBlockscaled, validate, product, prepare_grids_cublaslt, reference>(
        "gemm_fp8_nt_blockscaled", "gemm_fp8_nt_groupwise with blocks of 128 x 128 on both sides.", blockscaled_fields,
        blockscaled_cases);
}  // namespace ops::gemm

Tensor mm_fp8(const MmFp8& a) { return op::call(family::mm_fp8_op, a); }
Tensor gemm_fp8_nt_groupwise(const GemmFp8NtGroupwise& a) { return op::call(family::groupwise_op, a); }
Tensor gemm_fp8_nt_blockscaled(const GemmFp8NtBlockscaled& a) { return op::call(family::blockscaled_op, a); }

}  // namespace flashinfer
