// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/norm/fp4.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "flashinfer/op/call.h"
#include "flashinfer/ops/norm/cases.h"
#include "flashinfer/ops/norm/kernels/quant_params.h"
#include "flashinfer/ops/norm/launch.h"
#include "flashinfer/ops/norm/op.h"
#include "flashinfer/ops/norm/ops.h"
#include "flashinfer/ops/norm/quant_cuda.h"
#include "flashinfer/ops/norm/ref.h"
#include "flashinfer/ops/quantization/block/launch.h"
#include "flashinfer/ops/quantization/block/ref.h"

namespace flashinfer {
namespace {
namespace family = ops::norm;
using op::Shape;

inline constexpr jit::Kernel kFp4{"flashinfer/ops/norm/kernels/cpu/fp4.h", "flashinfer::cpu::rmsnorm_fp4",
                                  "flashinfer::NormQuantParams"};
inline constexpr jit::Kernel kSilu{"flashinfer/ops/norm/kernels/cpu/quant.h", "flashinfer::cpu::rmsnorm_quant",
                                   "flashinfer::NormQuantParams"};

inline constexpr jit::Kernel kFp4Cuda{"flashinfer/ops/norm/kernels/cuda/quant.cuh", "flashinfer::cu::rmsnorm_fp4",
                                      "flashinfer::NormQuantCudaParams"};

using Rms = RmsNormFp4Quant;
using Add = AddRmsNormFp4Quant;
using Silu = FusedRmsNormSilu;
template <class B>
constexpr const char* kName = "";
template <>
constexpr const char* kName<Rms> = "rmsnorm_fp4quant";
template <>
constexpr const char* kName<Add> = "add_rmsnorm_fp4quant";
template <>
constexpr const char* kName<Silu> = "fused_rmsnorm_silu";

// ---- formats and shapes ----
template <class B>
bool power(const B& a) {
  return a.scale_format ? *a.scale_format == "ue8m0" : a.block_size == 32;
}
bool swizzled(const Rms& a) { return a.is_sf_swizzled_layout; }
bool swizzled(const Add& a) { return a.is_sf_swizzled_layout || a.output_both_sf_layouts; }
Shape divided(const TensorView& x, int64_t by) {
  Shape s{x.rank()};
  for (int i = 0; i < s.rank; ++i) s.size[i] = x.size(i);
  s.size[s.rank - 1] /= by;
  return s;
}
template <class B>
Shape codes_shape(const B& a) {
  return divided(a.input, 2);
}
template <class B>
Shape scales_shape(const B& a) {
  if (!swizzled(a)) return divided(a.input, a.block_size);
  return {1, {sf_bytes(SfLayout::k128x4, ops::row_count(a.input), a.input.size(-1) / a.block_size)}};
}
Shape linear_shape(const Add& a) { return divided(a.input, a.block_size); }
bool both(const Add& a) { return a.output_both_sf_layouts; }
template <class B>
DType codes_dtype(const B& a) {
  return a.y_fp4 ? a.y_fp4->dtype() : DType::kF4E2M1x2;
}
template <class B>
DType scales_dtype(const B& a) {
  return a.block_scale ? a.block_scale->dtype() : power(a) ? DType::kU8 : DType::kF8E4M3;
}
DType linear_dtype(const Add& a) {
  return a.block_scale_unswizzled ? a.block_scale_unswizzled->dtype() : scales_dtype(a);
}

// ---- checks ----
template <class B>
void check_input(const B& a) {
  FI_CHECK(a.input.rank() == 2 || a.input.rank() == 3, ValueError, "input has rank ", a.input.rank(), " (",
           to_string(a.input), "), but must be [rows, d] or [rows, heads, d]");
  FI_CHECK(a.eps >= 0, ValueError, "eps is ", a.eps, ", but must be at least 0");
  FI_CHECK(a.weight.dtype() == a.input.dtype() || a.weight.dtype() == DType::kF32, ValueError, "weight.dtype is ",
           name(a.weight.dtype()), ", but must be ", name(a.input.dtype()), " (as input) or float32");
}
template <class B>
void validate_fp4(const B& a) {
  check_input(a);
  FI_CHECK(a.block_size == 16 || a.block_size == 32, ValueError, "block_size is ", a.block_size,
           ", but must be 16 or 32");
  FI_CHECK(!a.scale_format || *a.scale_format == "e4m3" || *a.scale_format == "ue8m0", ValueError, "scale_format is '",
           *a.scale_format, "', but must be 'e4m3' or 'ue8m0'");
  FI_CHECK(a.input.size(-1) >= 64, ValueError, "the last dimension is ", a.input.size(-1), ", but must be at least 64");
  ops::check_columns(a.input.size(-1), a.block_size);
  FI_CHECK(!a.global_scale || !power(a), ValueError, "global_scale is given, but scales of 'ue8m0' have none");
  if (a.global_scale) ops::global_scale("global_scale", *a.global_scale);
  if constexpr (std::is_same_v<B, Add>)
    FI_CHECK(!a.block_scale_unswizzled || a.output_both_sf_layouts, ValueError,
             "block_scale_unswizzled is given, but output_both_sf_layouts is False");
}
bool is_fp4(const Silu& a) { return a.out && a.out->dtype() == DType::kF4E2M1x2; }
void validate_silu(const Silu& a) {
  FI_CHECK(a.input.rank() == 2, ValueError, "input is ", to_string(a.input), ", but must be [rows, d]");
  check_input(a);
  if (!a.out) return;
  const DType t = a.out->dtype();
  FI_CHECK(t == a.input.dtype() || t == DType::kF8E4M3 || t == DType::kF4E2M1x2, ValueError, "out.dtype is ", name(t),
           ", but must be ", name(a.input.dtype()), " (as input), float8_e4m3fn or float4_e2m1fn_x2");
  if (!is_fp4(a)) return;
  ops::check_columns(a.input.size(1), 16);
}

// ---- launches ----
template <class B>
NormFp4Config config_of(const B& a) {
  if constexpr (std::is_same_v<B, Silu>)
    return {a.input.dtype(), a.weight.dtype(), 0, 1, 16, 0};
  else
    return {a.input.dtype(), a.weight.dtype(), std::is_same_v<B, Add>, 0, static_cast<unsigned char>(a.block_size),
            power(a)};
}
NormQuantConfig plain_config(const Silu& a) {
  return {a.input.dtype(), a.weight.dtype(), a.out ? a.out->dtype() : a.input.dtype(), 0, 1};
}
void set_layout(NormQuantParams& q, bool tiles) {
  q.layout = tiles ? SfLayout::k128x4 : SfLayout::kLinear;
  q.padded_rows = sf_padded_rows(q.layout, q.norm.rows);
}
op::Prepared prepare_fp4(const NormFp4Config& config, const NormQuantParams& q) {
  return ops::prepare_rows<kFp4>(config, q, q.padded_rows, q.norm.rows_per_task);
}
/// All but the scale.
template <class B>
NormQuantParams fp4_params(const B& a) {
  NormQuantParams q{.norm = ops::norm::params_of(a.input, *a.y_fp4, a.eps, std::is_same_v<B, Add> ? 3 : 1)};
  q.norm.weight = a.weight.data();
  q.scales = a.block_scale->template data_as<uint8_t>();
  if constexpr (std::is_same_v<B, Add>) {
    q.norm.residual = a.residual.data();
    ops::norm::row_strides(a.residual, q.norm.residual_stride);
    if (a.y_out) {
      q.normed = a.y_out->data();
      ops::norm::row_strides(*a.y_out, q.normed_stride);
    }
    if (a.output_both_sf_layouts) q.linear_scales = a.block_scale_unswizzled->template data_as<uint8_t>();
  }
  set_layout(q, swizzled(a));
  return q;
}
NormQuantParams silu_params(const Silu& a) {
  NormQuantParams q{.norm = ops::norm::params_of(a.input, *a.out, a.eps, 2)};
  q.norm.weight = a.weight.data();
  q.scale = 1;
  if (!is_fp4(a)) return q;
  q.scales = a.block_scale->data_as<uint8_t>();
  set_layout(q, false);
  return q;
}
template <class B>
op::Prepared prepare(const B& a) {
  NormQuantParams q = fp4_params(a);
  q.scale = a.global_scale ? a.global_scale->template data_as<float>()[0] : 1.0f;
  return prepare_fp4(config_of(a), q);
}
op::Prepared prepare_silu(const Silu& a) {
  const NormQuantParams q = silu_params(a);
  if (!is_fp4(a)) return ops::prepare_rows<kSilu>(plain_config(a), q, q.norm.rows, q.norm.rows_per_task);
  return prepare_fp4(config_of(a), q);
}

// ---- on a GPU ----
template <class B>
op::Prepared prepare_fp4_cuda(const B& a, const NormQuantParams& q, const FactorSource& scale, Device device,
                              bool pdl) {
  const NormFp4Config c = config_of(a);
  return ops::norm::prepare_quant_cuda<kFp4Cuda>({.dtype = c.dtype,
                                                  .weight = c.weight,
                                                  .out = DType::kF4E2M1x2,
                                                  .fused_add = c.fused_add,
                                                  .silu = c.silu,
                                                  .block = c.block,
                                                  .ue8m0 = c.ue8m0},
                                                 ops::norm::quant_cuda_params(q, scale), 4, device, pdl);
}
template <class B>
op::Prepared prepare_cuda(const B& a, const op::Call& call) {
  FactorSource scale{.value = 1};
  if (a.global_scale) scale = {a.global_scale->data(), 0, 0, 1.0f, DType::kF32, 0};
  return prepare_fp4_cuda(a, fp4_params(a), scale, call.device, ops::wants_pdl(a.enable_pdl));
}
op::Prepared prepare_silu_cuda(const Silu& a, const op::Call& call) {
  const NormQuantParams q = silu_params(a);
  if (is_fp4(a)) return prepare_fp4_cuda(a, q, {.value = 1}, call.device, true);
  const NormQuantConfig c = plain_config(a);
  return ops::norm::prepare_quant_cuda<ops::norm::kRmsQuantCuda>(
      {.dtype = c.dtype, .weight = c.weight, .out = c.out, .silu = 1}, ops::norm::quant_cuda_params(q, {.value = 1}),
      static_cast<int>(a.out->item_size() * 8), call.device, true);
}

// ---- references ----
Tensor f32_of(const TensorView& x) {
  const Tensor out = Tensor::empty(x.shape(), DType::kF32);
  ref::for_each_row(x, [&](const ref::Index& row) {
    for (int64_t i = 0; i < x.size(-1); ++i) ref::set(out.view(), row, i, ref::get(x, row, i));
  });
  return out;
}
/// The norm in double precision, rounded once to f32. Codes and scales are compared to the bit: the kernel's f32 may
/// give another code only where it lies within its last bits of the middle between two codes, which no row of the case
/// table does.
Tensor normalised(const TensorView& x, const TensorView& weight, double eps) {
  const Tensor y = Tensor::empty(x.shape(), DType::kF32);
  ref::rmsnorm(x, weight, eps, 0, y);
  return y;
}
/// silu(norm), rounded once to f32.
Tensor silu_of_norm(const TensorView& x, const TensorView& weight, double eps) {
  const Tensor y = Tensor::empty(x.shape(), DType::kF64);
  ref::rmsnorm(x, weight, eps, 0, y);
  for (double& v : y.span<double>()) v /= 1 + std::exp(-v);
  return f32_of(y);
}
void quantise_rows(const ref::BlockRule& rule, const Tensor& y, float encode, const TensorView& codes,
                   const TensorView& scales, SfLayout layout) {
  const int64_t d = y.view().size(-1), m = ops::row_count(y.view());
  const TensorView rows = y.view().view({m, d});
  const Tensor packed = Tensor::empty({m, d / 2}, DType::kU8);
  const TensorView bytes(scales.data(), DType::kU8, {scales.numel()});
  ref::clear(bytes);
  for (int64_t r = 0; r < m; ++r)
    ref::quantize_row(rule, ref::floats_of(rows, {r}), encode, packed.view().select(0, r), bytes, layout, r);
  ops::copy_strided(packed.view().view(codes.shape()), codes);
}
template <class B>
void reference_fp4(const B& a) {
  const float encode = a.global_scale ? a.global_scale->template data_as<float>()[0] : 1.0f;
  const ref::BlockRule rule{a.block_size, power(a), false};
  Tensor x = f32_of(a.input);
  if constexpr (std::is_same_v<B, Add>)
    ref::for_each_row(a.input, [&](const ref::Index& row) {
      for (int64_t i = 0; i < a.input.size(-1); ++i) {
        ref::set(x.view(), row, i, ref::get(a.input, row, i) + ref::get(a.residual, row, i));
        ref::set(a.residual, row, i, ref::get(x.view(), row, i));
      }
    });
  const Tensor y = normalised(x.view(), a.weight, a.eps);
  quantise_rows(rule, y, encode, *a.y_fp4, *a.block_scale, swizzled(a) ? SfLayout::k128x4 : SfLayout::kLinear);
  if constexpr (std::is_same_v<B, Add>) {
    if (a.output_both_sf_layouts)
      quantise_rows(rule, y, encode, *a.y_fp4, *a.block_scale_unswizzled, SfLayout::kLinear);
    if (a.y_out)
      ref::for_each_row(y.view(), [&](const ref::Index& row) {
        for (int64_t i = 0; i < y.view().size(-1); ++i) ref::set(*a.y_out, row, i, ref::get(y.view(), row, i));
      });
  }
}
void reference_silu(const Silu& a) {
  const Tensor y = silu_of_norm(a.input, a.weight, a.eps);
  if (is_fp4(a)) return quantise_rows({16, false, false}, y, 1.0f, *a.out, *a.block_scale, SfLayout::kLinear);
  const bool fp8 = a.out->dtype() == DType::kF8E4M3;
  for (int64_t r = 0; r < y.size(0); ++r)
    for (int64_t i = 0; i < y.size(1); ++i) {
      const double v = ref::at(y.view(), {r, i});
      ref::put(*a.out, {r, i}, fp8 && !std::isnan(v) ? std::clamp(v, -448.0, 448.0) : v);
    }
}

template <class B>
op::Cost cost(const B& a) {
  const double n = static_cast<double>(a.input.numel()), item = static_cast<double>(a.input.item_size());
  return {.bytes = n * ((std::is_same_v<B, Add> ? 3 : 1) * item + 0.5), .flops = 5 * n};
}
op::Cost cost_silu(const Silu& a) {
  return {.bytes =
              static_cast<double>(a.input.nbytes()) + static_cast<double>(a.out ? a.out->nbytes() : a.input.nbytes())};
}
// ---- tables ----
inline constexpr DTypeSet kHalves = DTypeSet(DType::kF16) | DType::kBF16;
inline constexpr DTypeSet kCodes = DTypeSet(DType::kF4E2M1x2) | DType::kU8;
inline constexpr DTypeSet kScales = DTypeSet(DType::kF8E4M3) | DType::kU8;
constexpr op::Field rms_fields[] = {
    op::in<&Rms::input>("input", "... d", kHalves),
    op::in<&Rms::weight>("weight", "d", op::floats),
    op::out<&Rms::y_fp4>("y_fp4", nullptr, kCodes, op::shape<codes_shape<Rms>>, op::dtype<codes_dtype<Rms>>),
    op::out<&Rms::block_scale>("block_scale", nullptr, kScales, op::contiguous, op::shape<scales_shape<Rms>>,
                               op::dtype<scales_dtype<Rms>>),
    op::in<&Rms::global_scale>("global_scale", nullptr, DType::kF32),
    op::attr<&Rms::eps>("eps"),
    op::attr<&Rms::block_size>("block_size"),
    op::attr<&Rms::scale_format>("scale_format"),
    op::attr<&Rms::is_sf_swizzled_layout>("is_sf_swizzled_layout"),
    op::attr<&Rms::enable_pdl>("enable_pdl"),
};
constexpr op::Field add_fields[] = {
    op::in<&Add::input>("input", "... d", kHalves),
    op::inout<&Add::residual>("residual", "... d", op::same_as("input")),
    op::in<&Add::weight>("weight", "d", op::floats),
    op::out<&Add::y_fp4>("y_fp4", nullptr, kCodes, op::shape<codes_shape<Add>>, op::dtype<codes_dtype<Add>>),
    op::out<&Add::block_scale>("block_scale", nullptr, kScales, op::contiguous, op::shape<scales_shape<Add>>,
                               op::dtype<scales_dtype<Add>>),
    op::in<&Add::global_scale>("global_scale", nullptr, DType::kF32),
    op::attr<&Add::eps>("eps"),
    op::attr<&Add::block_size>("block_size"),
    op::attr<&Add::scale_format>("scale_format"),
    op::attr<&Add::is_sf_swizzled_layout>("is_sf_swizzled_layout"),
    op::attr<&Add::output_both_sf_layouts>("output_both_sf_layouts"),
    op::out<&Add::block_scale_unswizzled>("block_scale_unswizzled", nullptr, kScales, op::contiguous,
                                          op::shape<linear_shape>, op::dtype<linear_dtype>, op::when<both>),
    op::inout<&Add::y_out>("y_out", "... d", op::same_as("input")),
    op::attr<&Add::enable_pdl>("enable_pdl"),
};
template <class B>
Shape silu_shape(const B& a) {
  return is_fp4(a) ? divided(a.input, 2) : divided(a.input, 1);
}
DType silu_dtype(const Silu& a) { return a.out ? a.out->dtype() : a.input.dtype(); }
// Of a block_scale that is given these two throw FlashInfer's words, which its callers match.
Shape silu_scales(const Silu& a) {
  const Shape want = divided(a.input, 16);
  if (a.block_scale && is_fp4(a))
    FI_CHECK(std::ranges::equal(a.block_scale->shape(), want.span()), ValueError, "block_scale shape mismatch: it is ",
             to_string(*a.block_scale), ", but must be ", to_string(TensorView(nullptr, DType::kF8E4M3, want.span())));
  return want;
}
DType silu_scales_dtype(const Silu& a) {
  FI_CHECK(!a.block_scale || a.block_scale->dtype() == DType::kF8E4M3, ValueError,
           "block_scale must be float8_e4m3fn, but block_scale.dtype is ", name(a.block_scale->dtype()));
  return DType::kF8E4M3;
}
constexpr op::Field silu_fields[] = {
    op::in<&Silu::input>("input", "n d", op::floats),
    op::in<&Silu::weight>("weight", "d", op::floats),
    op::attr<&Silu::eps>("eps"),
    op::out<&Silu::out>("out", nullptr, op::shape<silu_shape<Silu>>, op::dtype<silu_dtype>),
    op::out<&Silu::block_scale>("block_scale", nullptr, op::contiguous, op::shape<silu_scales>,
                                op::dtype<silu_scales_dtype>, op::when<is_fp4>),
};
constexpr op::Candidate rms_candidates[] = {op::cuda<prepare_cuda<Rms>>(), op::cpu<prepare<Rms>>(),
                                            op::reference<reference_fp4<Rms>>()};
constexpr op::Candidate add_candidates[] = {op::cuda<prepare_cuda<Add>>(), op::cpu<prepare<Add>>(),
                                            op::reference<reference_fp4<Add>>()};
constexpr op::Candidate silu_candidates[] = {op::cuda<prepare_silu_cuda>(), op::cpu<prepare_silu>(),
                                             op::reference<reference_silu>()};
constexpr const char* kModule = "flashinfer.norm";
}  // namespace

namespace ops::norm {
constinit const op::Op rmsnorm_fp4_op = op::define<Rms, validate_fp4<Rms>, cost<Rms>>(
    kName<Rms>, kModule, "rmsnorm as packed e2m1 codes with block scales.", rms_fields, rms_candidates,
    rmsnorm_fp4_cases);
constinit const op::Op add_rmsnorm_fp4_op = op::define<Add, validate_fp4<Add>, cost<Add>>(
    kName<Add>, kModule, "residual += input, then rmsnorm of the sum as packed e2m1 codes with block scales.",
    add_fields, add_candidates, add_rmsnorm_fp4_cases);
constinit const op::Op rmsnorm_silu_op = op::define<Silu, validate_silu, cost_silu>(
    kName<Silu>, kModule, "silu(rmsnorm(input)), also as 8-bit floats or packed e2m1 codes.", silu_fields,
    silu_candidates, rmsnorm_silu_cases);
}  // namespace ops::norm

op::Results rmsnorm_fp4quant(const Rms& a) { return op::call(family::rmsnorm_fp4_op, a); }
op::Results add_rmsnorm_fp4quant(const Add& a) { return op::call(family::add_rmsnorm_fp4_op, a); }
op::Results fused_rmsnorm_silu(const Silu& a) { return op::call(family::rmsnorm_silu_op, a); }

}  // namespace flashinfer
