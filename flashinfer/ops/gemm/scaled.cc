// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/gemm/scaled.h"

#include "flashinfer/ops/gemm/cases.h"
#include "flashinfer/ops/gemm/check.h"
#include "flashinfer/ops/gemm/cublaslt.h"
#include "flashinfer/ops/gemm/ops.h"
#include "flashinfer/ops/gemm/ref_scaled.h"

namespace flashinfer {
namespace {

using gemm::Product;
namespace family = ops::gemm;

Product product_of(const TensorView& a, const TensorView& b, const TensorView& out, bool fp4 = false) {
  Product p{.k = a.size(-1) * (fp4 ? 2 : 1), .a = gemm::rows_of(a), .b = gemm::columns_of(b)};
  p.set_out(out);
  return p;
}

// ---- mm_fp8 ----

bool prepared(const MmFp8& a) { return a.b.rank() == 3; }
int64_t columns_of(const MmFp8& a) {
  FI_CHECK(a.b.rank() == 2 || a.b.rank() == 3, ValueError, "mm_fp8: b is ", to_string(a.b),
           ", but must be a plain [n, k] weight or [k / 128, n, 128] from prepare_low_latency_gemm_weights");
  return a.b.size(prepared(a) ? 1 : 0);
}
op::Shape mm_fp8_shape(const MmFp8& a) { return {2, {a.a.size(0), columns_of(a)}}; }
void validate(const MmFp8& a) {
  const int64_t n = columns_of(a), k = a.a.size(1);
  if (prepared(a)) {
    FI_CHECK(a.b.dtype() == DType::kF8E4M3, ValueError, "mm_fp8: b is ", to_string(a.b), ", but prepared weights are float8_e4m3fn");
    FI_CHECK(a.b.size(2) == 128 && a.b.size(0) * 128 == k, ValueError, "mm_fp8: b is ", to_string(a.b), ", but a.shape[1] is ", k,
             ", which needs [k / 128, n, 128]");
    FI_CHECK(n % 32 == 0, ValueError, "mm_fp8: b.shape[1] is ", n, ", but prepared weights have a multiple of 32 columns");
    FI_CHECK(a.b.is_contiguous(), ValueError, "mm_fp8: b is ", to_string(a.b), ", but prepared weights must be contiguous");
  } else {
    FI_CHECK(a.b.size(1) == k, ValueError, "mm_fp8: b.shape[1] is ", a.b.size(1), ", but k is ", k, " (from a.shape[1])");
    FI_CHECK(a.a.dtype() != DType::kF8E5M2 || a.b.dtype() != DType::kF8E5M2, ValueError,
             "mm_fp8: a.dtype and b.dtype are both float8_e5m2, but one of them must be float8_e4m3fn");
  }
  gemm::check_one("mm_fp8", "alpha", a.alpha);
  gemm::check_out_dtype("mm_fp8", a.out_dtype, DType::kBF16);
}
Product product(const MmFp8& a) {
  Product p = product_of(a.a, a.b, *a.out);
  p.b = prepared(a) ? gemm::Operand{.data = a.b.data(), .format = GemmFormat::kE4M3, .block_k = 128, .block_stride = a.b.size(1) * 128, .dealt = true}
                    : gemm::rows_of(a.b);
  p.scale_a = gemm::one_or(a.alpha, 1);
  return p;
}
void reference(const MmFp8& a) {
  ref::nt_product(
      *a.out, 0, a.out->size(0), a.a.size(1), [&](int64_t i, int64_t k) { return ref::at(a.a, {i, k}); },
      [&](int64_t j, int64_t k) { return prepared(a) ? ref::low_latency_at(a.b, j, k) : ref::at(a.b, {j, k}); },
      gemm::one_or(a.alpha, 1));
}

// ---- mxfp8 ----

constexpr int32_t kMxBlock = 32;

void check_mx_depth(std::string_view op, std::string_view argument, int64_t k) {
  FI_CHECK(k % kMxBlock == 0, ValueError, op, ": ", argument, ".shape[-1] is ", k, ", but k must be a multiple of 32 (one scale for 32)");
}
SfLayout layout_of(bool eight) { return eight ? SfLayout::k8x4 : SfLayout::k128x4; }
GemmSf sf_a(const MmMxfp8& a) {
  FI_CHECK(a.a_descale.rank() == 1, ValueError, "mm_mxfp8: a_descale is ", to_string(a.a_descale),
           ", but must be the flat, swizzled scales of mxfp8_quantize (a linear matrix is not taken)");
  return gemm::check_sf("mm_mxfp8", "a_descale", a.a_descale, layout_of(a.use_8x4_sf_layout), true, 1, a.a.size(0), a.a.size(1) / kMxBlock, kMxBlock);
}
GemmSf sf_b(const MmMxfp8& a) {
  FI_CHECK(a.b_descale.rank() == 1, ValueError, "mm_mxfp8: b_descale is ", to_string(a.b_descale),
           ", but must be the flat, swizzled scales of mxfp8_quantize (a linear matrix is not taken)");
  return gemm::check_sf("mm_mxfp8", "b_descale", a.b_descale, SfLayout::k128x4, true, 1, a.b.size(1), a.a.size(1) / kMxBlock, kMxBlock);
}
void validate(const MmMxfp8& a) {
  check_mx_depth("mm_mxfp8", "a", a.a.size(1));
  gemm::check_column_major("mm_mxfp8", "b", a.b);
  sf_a(a), sf_b(a);
  gemm::check_out_dtype("mm_mxfp8", a.out_dtype, gemm::kHalves);
}
GemmSf sf_a(const BmmMxfp8& a) {
  return gemm::check_sf("bmm_mxfp8", "A_scale", a.A_scale, SfLayout::k128x4, true, a.A.size(0), a.A.size(1), a.A.size(2) / kMxBlock, kMxBlock);
}
GemmSf sf_b(const BmmMxfp8& a) {
  return gemm::check_sf("bmm_mxfp8", "B_scale", a.B_scale, SfLayout::k128x4, true, a.B.size(0), a.B.size(2), a.A.size(2) / kMxBlock, kMxBlock);
}
void validate(const BmmMxfp8& a) {
  check_mx_depth("bmm_mxfp8", "A", a.A.size(2));
  gemm::check_column_major("bmm_mxfp8", "B", a.B);
  sf_a(a), sf_b(a);
  gemm::check_out_dtype("bmm_mxfp8", a.dtype, gemm::kHalves, "dtype");
}
Product product(const MmMxfp8& a) {
  Product p = product_of(a.a, a.b, *a.out);
  p.a.sf = sf_a(a);
  p.b.sf = sf_b(a);
  return p;
}
Product product(const BmmMxfp8& a) {
  Product p = product_of(a.A, a.B, *a.out);
  p.a.sf = sf_a(a);
  p.b.sf = sf_b(a);
  return p;
}
/// One matrix: a [m, k], b [k, n] or bytes of FP4, scales as checked.
void reference_sf(const TensorView& a, const TensorView& b, const TensorView& out, const GemmSf& sa, const GemmSf& sb, int64_t matrix,
                  bool fp4, double alpha) {
  const auto scales = [&](const GemmSf& s) { return ref::ScaleBytes{s.bytes + matrix * s.batch, s.layout, s.e8m0 != 0, s.columns, s.block}; };
  const ref::ScaleBytes fa = scales(sa), fb = scales(sb);
  const TensorView bt = b.transpose(0, 1);
  ref::nt_product(
      out, 0, out.size(0), a.size(1) * (fp4 ? 2 : 1), [&](int64_t i, int64_t k) { return ref::narrow_at(a, fp4, i, k) * fa.at(i, k); },
      [&](int64_t j, int64_t k) { return ref::narrow_at(bt, fp4, j, k) * fb.at(j, k); }, alpha);
}
void reference(const MmMxfp8& a) { reference_sf(a.a, a.b, *a.out, sf_a(a), sf_b(a), 0, false, 1); }
void reference(const BmmMxfp8& a) {
  for (int64_t i = 0; i < a.A.size(0); ++i)
    reference_sf(a.A.select(0, i), a.B.select(0, i), a.out->select(0, i), sf_a(a), sf_b(a), i, false, 1);
}

// ---- fp4 ----

GemmSf fp4_sf(const MmFp4& a, std::string_view name, const TensorView& t, SfLayout layout, int64_t lines) {
  const auto block = static_cast<int32_t>(a.block_size);
  return gemm::check_sf("mm_fp4", name, t, layout, !a.use_nvfp4, 1, lines, 2 * a.a.size(1) / block, block);
}
GemmSf sf_a(const MmFp4& a) { return fp4_sf(a, "a_descale", a.a_descale, layout_of(a.use_8x4_sf_layout), a.a.size(0)); }
GemmSf sf_b(const MmFp4& a) { return fp4_sf(a, "b_descale", a.b_descale, SfLayout::k128x4, a.b.size(1)); }
void validate(const MmFp4& a) {
  FI_CHECK(a.block_size == (a.use_nvfp4 ? 16 : 32), ValueError, "mm_fp4: block_size is ", a.block_size, ", but ",
           a.use_nvfp4 ? "NVFP4 has one scale for 16" : "MXFP4 (use_nvfp4 = False) has one scale for 32");
  FI_CHECK(2 * a.a.size(1) % a.block_size == 0, ValueError, "mm_fp4: a.shape[1] is ", a.a.size(1), ", k = ", 2 * a.a.size(1),
           ", but k must be a multiple of ", a.block_size);
  FI_CHECK(a.use_nvfp4 || (a.a_descale.dtype() == DType::kU8 && a.b_descale.dtype() == DType::kU8), ValueError,
           "mm_fp4: a_descale and b_descale are ", name(a.a_descale.dtype()), " and ", name(a.b_descale.dtype()),
           ", but scales of MXFP4 are uint8 (ue8m0)");
  FI_CHECK(a.a.size(1) <= 1 || a.a.stride(1) == 1, ValueError, "mm_fp4: a is ", to_string(a.a), " with stride ", a.a.stride(1),
           " along k, but must be row-major");
  gemm::check_column_major("mm_fp4", "b", a.b);
  gemm::check_one("mm_fp4", "alpha", a.alpha);
  gemm::check_out_dtype("mm_fp4", a.out_dtype, gemm::kHalves);
  sf_a(a), sf_b(a);
}
Product product(const MmFp4& a) {
  Product p = product_of(a.a, a.b, *a.out, true);
  p.a.sf = sf_a(a);
  p.b.sf = sf_b(a);
  p.scale_a = gemm::one_or(a.alpha, 1);
  return p;
}
void reference(const MmFp4& a) { reference_sf(a.a, a.b, *a.out, sf_a(a), sf_b(a), 0, true, gemm::one_or(a.alpha, 1)); }

// ---- f32 scales of blocks ----

struct Grids {
  GemmGrid a, b;
  int64_t k;
};
Grids grids(const GemmFp8NtGroupwise& a) {
  constexpr const char* kName = "gemm_fp8_nt_groupwise";
  gemm::check_granularity(kName, a.scale_granularity_mnk);
  const bool plain = !a.scale_major_mode && a.backend == "trtllm", mn = a.scale_major_mode == "MN";
  FI_CHECK(plain || mn || a.scale_major_mode == "K", ValueError, kName, ": scale_major_mode is ", a.scale_major_mode.value_or("None"),
           ", but must be 'MN' or 'K' (None only with backend 'trtllm')");
  const std::vector<int64_t>& g = a.scale_granularity_mnk;
  return {gemm::check_grid(kName, "a_scale", a.a_scale, mn, 0, a.a.size(0), a.a.size(1), g[0], g[2]),
          gemm::check_grid(kName, "b_scale", a.b_scale, mn || plain, 0, a.b.size(0), a.a.size(1), g[1], g[2]), g[2]};
}
Grids grids(const GemmFp8NtBlockscaled& a) {
  constexpr const char* kName = "gemm_fp8_nt_blockscaled";
  const bool mn = a.scale_major_mode == "MN";
  return {gemm::check_grid(kName, "a_scale", a.a_scale, mn, 0, a.a.size(0), a.a.size(1), 128, 128),
          gemm::check_grid(kName, "b_scale", a.b_scale, mn, 0, a.b.size(0), a.a.size(1), 128, 128), 128};
}
template <class B>
DType grid_dtype(const B& a) {
  return a.out_dtype ? *a.out_dtype : a.out ? a.out->dtype() : DType::kBF16;
}
template <class B>
void validate_grid(const B& a, const char* name) {
  grids(a);
  FI_CHECK(a.mma_sm == 1 || a.mma_sm == 2, ValueError, name, ": mma_sm is ", a.mma_sm, ", but must be 1 or 2");
  gemm::check_out_dtype(name, grid_dtype(a), gemm::kHalves);
}
void validate(const GemmFp8NtGroupwise& a) { validate_grid(a, "gemm_fp8_nt_groupwise"); }
void validate(const GemmFp8NtBlockscaled& a) { validate_grid(a, "gemm_fp8_nt_blockscaled"); }
template <class B>
Product product_with_grids(const B& a) {
  const Grids g = grids(a);
  Product p = product_of(a.a, a.a, *a.out);
  p.b = gemm::rows_of(a.b);
  p.a_grid = g.a;
  p.b_grid = g.b;
  p.grid_k = g.k;
  return p;
}
Product product(const GemmFp8NtGroupwise& a) { return product_with_grids(a); }
Product product(const GemmFp8NtBlockscaled& a) { return product_with_grids(a); }
template <class B>
void reference_grid(const B& a) {
  const Grids g = grids(a);
  const auto scale = [&](const GemmGrid& s, int64_t line, int64_t k) {
    return static_cast<double>(s.p[line / s.lines * s.line_stride + k / g.k * s.k_stride]);
  };
  ref::nt_product(
      *a.out, 0, a.out->size(0), a.a.size(1), [&](int64_t i, int64_t k) { return ref::at(a.a, {i, k}) * scale(g.a, i, k); },
      [&](int64_t j, int64_t k) { return ref::at(a.b, {j, k}) * scale(g.b, j, k); }, 1);
}
void reference(const GemmFp8NtGroupwise& a) { reference_grid(a); }
void reference(const GemmFp8NtBlockscaled& a) { reference_grid(a); }

// ---- candidates and tables ----

template <class B>
const TensorView& first_of(const B& a) {
  if constexpr (requires { a.A; }) return a.A;
  else return a.a;
}
template <class B>
const TensorView& second_of(const B& a) {
  if constexpr (requires { a.B; }) return a.B;
  else return a.b;
}
template <class B>
op::Cost cost(const B& a) {
  const TensorView &x = first_of(a), &y = second_of(a);
  return {.bytes = static_cast<double>(x.nbytes() + y.nbytes() + a.out->nbytes()),
          .flops = 2.0 * static_cast<double>(a.out->numel()) * static_cast<double>(product(a).k)};
}
template <const op::Op& O, class B>
op::Refusal refuse_cpu(const B& a) {
  if (op::Refusal r = op::refuse_unless_cpu(O, &a); !r.empty()) return r;
  return gemm::refuse(product(a));
}
template <class B>
void launch_cpu(const B& a) {
  gemm::run(product(a));
}
template <class B>
void launch_reference(const B& a) {
  reference(a);
}
template <const op::Op& O, class B>
constexpr op::Candidate kCandidates[] = {op::candidate<refuse_cpu<O, B>, launch_cpu<B>>("cpu"), op::reference<launch_reference<B>>()};
template <class B>
void check(const B& a) {
  validate(a);
}

/// The weight as [k, n]; alpha as the scale of `a`.
gemm::LtProduct lt_product(const MmFp8& a) {
  const int64_t shape[] = {a.b.size(1), a.b.size(0)}, strides[] = {a.b.stride(1), a.b.stride(0)};
  return {.a = a.a, .b = TensorView(a.b.data(), a.b.dtype(), shape, strides, a.b.device()), .out = *a.out,
          .scale_a = a.alpha ? a.alpha->data_as<float>() : nullptr};
}
op::Refusal refuse_cublaslt(const MmFp8& a) {
  if (prepared(a)) return "b is a prepared weight, but cuBLASLt reads a plain [n, k] weight";
  return gemm::refuse_cublaslt(family::mm_fp8_op, &a, lt_product(a));
}
void launch_cublaslt(const MmFp8& a) { gemm::run_cublaslt(lt_product(a)); }
constexpr op::Candidate mm_fp8_candidates[] = {op::candidate<refuse_cublaslt, launch_cublaslt>("cuda_cublaslt"),
                                               op::candidate<refuse_cpu<family::mm_fp8_op, MmFp8>, launch_cpu<MmFp8>>("cpu"),
                                               op::reference<launch_reference<MmFp8>>()};

constexpr op::Field mm_fp8_fields[] = {
    op::in<&MmFp8::a>("a", "m k", op::fp8, op::any_layout),
    op::in<&MmFp8::b>("b", nullptr, op::fp8, op::any_layout),
    op::in<&MmFp8::alpha>("alpha", nullptr, DType::kF32),
    op::attr<&MmFp8::out_dtype>("out_dtype"),
    op::out<&MmFp8::out>("out", nullptr, op::dtype_from("out_dtype"), op::shape<mm_fp8_shape>),
    op::attr<&MmFp8::backend>("backend", op::backends("trtllm_low_latency:cuda|cutedsl_low_latency:cuda|cublas:cuda|cudnn:cuda|"
                                                      "cutlass:cuda|auto")),
};
constexpr op::Field mm_mxfp8_fields[] = {
    op::in<&MmMxfp8::a>("a", "m k", DType::kF8E4M3),
    op::in<&MmMxfp8::b>("b", "k n", DType::kF8E4M3, op::any_layout),
    op::in<&MmMxfp8::a_descale>("a_descale", nullptr, DType::kU8),
    op::in<&MmMxfp8::b_descale>("b_descale", nullptr, DType::kU8),
    op::out<&MmMxfp8::out>("out", "m n", op::dtype_from("out_dtype")),
    op::attr<&MmMxfp8::out_dtype>("out_dtype"),
    op::attr<&MmMxfp8::use_8x4_sf_layout>("use_8x4_sf_layout"),
    op::attr<&MmMxfp8::backend>("backend", op::backends("auto|cutlass:cuda|cute-dsl:cuda|cutedsl_low_latency:cuda|trtllm:cuda|cudnn:cuda|"
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
    op::in<&MmFp4::b>("b", "kb n", gemm::kFp4Bytes, op::any_layout),
    op::in<&MmFp4::a_descale>("a_descale", nullptr, DTypeSet(DType::kU8) | DType::kF8E4M3, op::any_layout),
    op::in<&MmFp4::b_descale>("b_descale", nullptr, DTypeSet(DType::kU8) | DType::kF8E4M3, op::any_layout),
    op::in<&MmFp4::alpha>("alpha", nullptr, DType::kF32),
    op::attr<&MmFp4::out_dtype>("out_dtype"),
    op::out<&MmFp4::out>("out", "m n", op::dtype_from("out_dtype")),
    op::attr<&MmFp4::block_size>("block_size"),
    op::attr<&MmFp4::use_8x4_sf_layout>("use_8x4_sf_layout"),
    op::attr<&MmFp4::backend>("backend", op::backends("auto|cudnn:cuda|trtllm:cuda|cutlass:cuda|cute-dsl:cuda|cutedsl_low_latency:cuda|"
                                                      "b12x:cuda")),
    op::attr<&MmFp4::use_nvfp4>("use_nvfp4"),
    op::attr<&MmFp4::enable_pdl>("enable_pdl"),
};
constexpr op::Field groupwise_fields[] = {
    op::in<&GemmFp8NtGroupwise::a>("a", "m k", op::fp8, op::any_layout),
    op::in<&GemmFp8NtGroupwise::b>("b", "n k", op::fp8, op::any_layout),
    op::in<&GemmFp8NtGroupwise::a_scale>("a_scale", nullptr, DType::kF32, op::any_layout),
    op::in<&GemmFp8NtGroupwise::b_scale>("b_scale", nullptr, DType::kF32, op::any_layout),
    op::attr<&GemmFp8NtGroupwise::scale_major_mode>("scale_major_mode"),
    op::attr<&GemmFp8NtGroupwise::mma_sm>("mma_sm"),
    op::attr<&GemmFp8NtGroupwise::scale_granularity_mnk>("scale_granularity_mnk", op::literal("(1, 128, 128)")),
    op::out<&GemmFp8NtGroupwise::out>("out", "m n", op::dtype<grid_dtype<GemmFp8NtGroupwise>>),
    op::attr<&GemmFp8NtGroupwise::out_dtype>("out_dtype"),
    op::attr<&GemmFp8NtGroupwise::backend>("backend", op::backends("cutlass:cuda|trtllm:cuda|cutile:cuda|auto")),
};
constexpr op::Field blockscaled_fields[] = {
    op::in<&GemmFp8NtBlockscaled::a>("a", "m k", op::fp8, op::any_layout),
    op::in<&GemmFp8NtBlockscaled::b>("b", "n k", op::fp8, op::any_layout),
    op::in<&GemmFp8NtBlockscaled::a_scale>("a_scale", nullptr, DType::kF32, op::any_layout),
    op::in<&GemmFp8NtBlockscaled::b_scale>("b_scale", nullptr, DType::kF32, op::any_layout),
    op::attr<&GemmFp8NtBlockscaled::scale_major_mode>("scale_major_mode", op::choices("MN|K")),
    op::attr<&GemmFp8NtBlockscaled::mma_sm>("mma_sm"),
    op::out<&GemmFp8NtBlockscaled::out>("out", "m n", op::dtype<grid_dtype<GemmFp8NtBlockscaled>>),
    op::attr<&GemmFp8NtBlockscaled::out_dtype>("out_dtype"),
};
constexpr const char* kModule = "flashinfer.gemm";

}  // namespace

namespace ops::gemm {
constinit const op::Op mm_fp8_op = op::define<MmFp8, check<MmFp8>, cost<MmFp8>>(
    "mm_fp8", kModule, "Product of FP8 matrices, alpha * a[m, k] . b; b a plain [n, k] weight or a prepared one.", mm_fp8_fields,
    mm_fp8_candidates, mm_fp8_cases);
constinit const op::Op mm_mxfp8_op = op::define<MmMxfp8, check<MmMxfp8>, cost<MmMxfp8>>(
    "mm_mxfp8", kModule, "Product of MXFP8 matrices: e4m3 elements, a power of two for 32 along k.", mm_mxfp8_fields,
    kCandidates<family::mm_mxfp8_op, MmMxfp8>, mm_mxfp8_cases);
constinit const op::Op bmm_mxfp8_op = op::define<BmmMxfp8, check<BmmMxfp8>, cost<BmmMxfp8>>(
    "bmm_mxfp8", kModule, "Batched product of MXFP8 matrices.", bmm_mxfp8_fields, kCandidates<family::bmm_mxfp8_op, BmmMxfp8>,
    bmm_mxfp8_cases);
constinit const op::Op mm_fp4_op = op::define<MmFp4, check<MmFp4>, cost<MmFp4>>(
    "mm_fp4", kModule, "Product of NVFP4 or MXFP4 matrices times alpha, in f32, rounded once.", mm_fp4_fields,
    kCandidates<family::mm_fp4_op, MmFp4>, mm_fp4_cases);
constinit const op::Op groupwise_op = op::define<GemmFp8NtGroupwise, check<GemmFp8NtGroupwise>, cost<GemmFp8NtGroupwise>>(
    "gemm_fp8_nt_groupwise", kModule, "a[m, k] . b[n, k]^T of FP8 matrices with f32 scales of blocks.", groupwise_fields,
    kCandidates<family::groupwise_op, GemmFp8NtGroupwise>, groupwise_cases);
constinit const op::Op blockscaled_op = op::define<GemmFp8NtBlockscaled, check<GemmFp8NtBlockscaled>, cost<GemmFp8NtBlockscaled>>(
    "gemm_fp8_nt_blockscaled", kModule, "gemm_fp8_nt_groupwise with blocks of 128 x 128 on both sides.", blockscaled_fields,
    kCandidates<family::blockscaled_op, GemmFp8NtBlockscaled>, blockscaled_cases);
}  // namespace ops::gemm

Tensor mm_fp8(const MmFp8& a) { return op::call(family::mm_fp8_op, a); }
Tensor mm_mxfp8(const MmMxfp8& a) { return op::call(family::mm_mxfp8_op, a); }
Tensor bmm_mxfp8(const BmmMxfp8& a) { return op::call(family::bmm_mxfp8_op, a); }
Tensor mm_fp4(const MmFp4& a) { return op::call(family::mm_fp4_op, a); }
Tensor gemm_fp8_nt_groupwise(const GemmFp8NtGroupwise& a) { return op::call(family::groupwise_op, a); }
Tensor gemm_fp8_nt_blockscaled(const GemmFp8NtBlockscaled& a) { return op::call(family::blockscaled_op, a); }

}  // namespace flashinfer
