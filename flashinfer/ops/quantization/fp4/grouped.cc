// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/quantization/fp4/grouped.h"

#include <algorithm>
#include <vector>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/activation/ref.h"
#include "flashinfer/ops/quantization/block/cuda.h"
#include "flashinfer/ops/quantization/block/four_over_six_ref.h"
#include "flashinfer/ops/quantization/block/launch.h"
#include "flashinfer/ops/quantization/cases.h"
#include "flashinfer/ops/quantization/ops.h"

namespace flashinfer {
namespace {
namespace family = ops::quantization;
using op::Shape;
using Silu = SiluNvfp4Quantize;
using Grouped = Fp4GroupedQuantize;
inline constexpr DTypeSet kHalves = DTypeSet(DType::kF16) | DType::kBF16;
constexpr const char* kSilu = "silu_and_mul_nvfp4_quantize";
template <bool kGated>
constexpr const char* kGroupedName =
    kGated ? "silu_and_mul_scaled_nvfp4_experts_quantize" : "scaled_fp4_grouped_quantize";

template <class B>
BlockQuantConfig config_of(const B& a, DType t, bool gated) {
  return {t, 16, 0, 0, gated, ops::four_over_six(a.nvfp4_4over6).config()};
}
void reference_row(const op::Value& setting, const std::vector<float>& x, float encode, const TensorView& codes,
                   const TensorView& scales, SfLayout layout, int64_t row) {
  const ops::FourOverSix recipe = ops::four_over_six(setting);
  if (recipe.on) return ref::quantize_row(recipe, x, encode, 0, codes, scales, layout, row);
  ref::quantize_row({16, false, false}, x, encode, codes, scales, layout, row);
}

// ---- silu_and_mul_nvfp4_quantize ----
SfLayout layout_of(const Silu& a) {
  return !a.is_sf_swizzled_layout ? SfLayout::kLinear : a.is_sf_8x4_layout ? SfLayout::k8x4 : SfLayout::k128x4;
}
Shape silu_codes(const Silu& a) { return {2, {ops::row_count(a.input), a.input.size(-1) / 4}}; }
Shape silu_scales(const Silu& a) {
  return {
      2,
      {sf_padded_rows(layout_of(a), ops::row_count(a.input)), sf_padded_columns(layout_of(a), a.input.size(-1) / 32)}};
}
void validate_silu(const Silu& a) {
  FI_CHECK(a.input.rank() >= 2, ValueError, "input is ", to_string(a.input), ", but must have at least two dimensions");
  FI_CHECK(a.sf_vec_size == 16, NotImplementedError, "sf_vec_size is ", a.sf_vec_size, ", but only 16 is implemented");
  FI_CHECK(a.input.size(-1) % 32 == 0, ValueError, "the last dimension is ", a.input.size(-1),
           ", but must be a multiple of 32 (two halves of blocks of 16)");
  FI_CHECK(a.is_sf_swizzled_layout || !a.is_sf_8x4_layout, ValueError,
           "is_sf_8x4_layout is True, but is_sf_swizzled_layout is False (the scales are linear)");
  ops::global_scale("global_scale", a.global_scale);
}
op::Prepared prepare_silu(const Silu& a) {
  const ops::Rows x = ops::as_rows(a.input);
  BlockQuantParams p{};
  p.x = x.view.data(), p.codes = a.x_q->data_as<uint8_t>(), p.scales = a.sf->data_as<uint8_t>();
  p.batches = 1, p.rows = x.view.size(0), p.k = p.padded_k = x.view.size(1) / 2;
  p.row_stride = x.view.stride(0), p.code_row_stride = a.x_q->stride(0);
  p.layout = layout_of(a);
  p.padded_rows = sf_padded_rows(p.layout, p.rows);
  p.encode = a.global_scale.data_as<float>();
  const BlockQuantConfig config = config_of(a, a.input.dtype(), true);
  return ops::with_kernel<ops::kBlockQuantize>(
      config, [config, p, x](jit::CpuFn fn) { ops::run_block_quantize(fn, config, p); });
}
/// silu(x[..., :k]) * x[..., k:] in double precision, rounded once to x's dtype. Codes and scales are compared to the
/// bit: the kernel's f32 may round to another value only where it is within its last bits of the middle between two,
/// which no row of the case table does.
Tensor gated(const TensorView& x) {
  std::vector<int64_t> shape(x.shape().begin(), x.shape().end());
  shape.back() /= 2;
  const Tensor y = Tensor::empty(shape, x.dtype());
  ref::act_and_mul(x, y.view(), ref::silu);
  return y;
}
void reference_silu(const Silu& a) {
  const Tensor compact = Tensor::clone(a.input);
  const TensorView x = compact.view().view({ops::row_count(a.input), a.input.size(-1)});
  const Tensor y = gated(x);
  ref::clear(*a.sf);
  for (int64_t r = 0; r < x.size(0); ++r)
    reference_row(a.nvfp4_4over6, ref::floats_of(y.view(), {r}), a.global_scale.data_as<float>()[0],
                  a.x_q->select(0, r), *a.sf, layout_of(a), r);
}

// ---- experts ----
template <bool kGated>
int64_t k_of(const Grouped& a) {
  return a.a.size(2) / (kGated ? 2 : 1);
}
template <bool kGated>
Shape codes_shape(const Grouped& a) {
  return {3, {a.a.size(1), k_of<kGated>(a) / 2, a.a.size(0)}};
}
template <bool kGated>
Shape codes_strides(const Grouped& a) {
  const int64_t half = k_of<kGated>(a) / 2;
  return {3, {half, 1, a.a.size(1) * half}};
}
template <bool kGated>
Shape scales_shape(const Grouped& a) {
  return {6, {32, 4, ceil_div(a.a.size(1), 128), 4, ceil_div(k_of<kGated>(a) / 16, 4), a.a.size(0)}};
}
template <bool kGated>
Shape scales_strides(const Grouped& a) {
  const int64_t padded = round_up(k_of<kGated>(a) / 16, 4);
  return {6, {16, 4, 128 * padded, 1, 512, round_up(a.a.size(1), 128) * padded}};
}
template <bool kGated>
void validate_grouped(const Grouped& a) {
  const int64_t step = kGated ? 32 : 16, m = a.a.size(1);
  FI_CHECK(a.a.size(2) % step == 0, ValueError, "a.shape[2] is ", a.a.size(2), ", but must be a multiple of ", step);
  const TensorView& g = a.a_global_sf;
  FI_CHECK(g.rank() <= 1 && (g.numel() == 1 || g.numel() == a.a.size(0)), ValueError, "a_global_sf is ", to_string(g),
           ", but must be one f32 or one for each of ", a.a.size(0), " experts");
  if (a.mask.device() != kCpu || g.device() != kCpu) return;
  op::check_index_range("mask", a.mask, 0, m + 1, "rows of a");
  for (int64_t i = 0; i < g.numel(); ++i) {
    const float one[1] = {g.data_as<float>()[g.rank() ? i * g.stride(0) : 0]};
    ops::global_scale("a_global_sf", TensorView(one, {1}));
  }
}
template <bool kGated>
void launch_grouped(const Grouped& a, jit::CpuFn fn) {
  const Tensor codes = ops::in_order(*a.x_q, codes_strides<kGated>(a)),
               scales = ops::in_order(*a.sf, scales_strides<kGated>(a));
  const Tensor mask = Tensor::clone(a.mask), encode = Tensor::clone(a.a_global_sf);
  BlockQuantParams p{};
  p.x = a.a.data(), p.codes = codes.data_as<uint8_t>(), p.scales = scales.data_as<uint8_t>();
  p.batches = a.a.size(0), p.rows = a.a.size(1), p.k = p.padded_k = k_of<kGated>(a);
  p.batch_stride = a.a.stride(0), p.row_stride = a.a.stride(1);
  p.code_batch_stride = p.rows * p.k / 2, p.code_row_stride = p.k / 2;
  p.layout = SfLayout::k128x4;
  p.padded_rows = sf_padded_rows(p.layout, p.rows);
  p.scale_batch_stride = sf_bytes(p.layout, p.rows, p.k / 16);
  p.encode = encode.data_as<float>(), p.encode_batch = encode.numel() > 1;
  p.mask = mask.data_as<int32_t>();
  ops::run_block_quantize(fn, config_of(a, a.a.dtype(), kGated), p);
  if (codes.data() != a.x_q->data()) ops::copy_strided(codes.view(), *a.x_q);
  if (scales.data() != a.sf->data()) ops::copy_strided(scales.view(), *a.sf);
}
template <bool kGated>
void reference_grouped(const Grouped& a) {
  const Tensor y = kGated ? gated(a.a) : Tensor::clone(a.a);
  const int64_t bytes = sf_bytes(SfLayout::k128x4, a.a.size(1), k_of<kGated>(a) / 16);
  ref::clear(*a.x_q);
  const Tensor scales = Tensor::zeros({std::max<int64_t>(bytes * a.a.size(0), 1)}, DType::kU8);
  for (int64_t b = 0; b < a.a.size(0); ++b)
    for (int64_t r = 0; r < op::index_at(a.mask, b); ++r)
      reference_row(a.nvfp4_4over6, ref::floats_of(y.view(), {b, r}),
                    a.a_global_sf.data_as<float>()[a.a_global_sf.numel() > 1 ? b * a.a_global_sf.stride(0) : 0],
                    a.x_q->select(2, b).select(0, r), scales.view().slice(0, b * bytes, (b + 1) * bytes),
                    SfLayout::k128x4, r);
  ops::copy_strided(TensorView(scales.data(), DType::kF8E4M3, a.sf->shape(), scales_strides<kGated>(a).span()), *a.sf);
}

// ---- on a GPU ----
op::Prepared prepare_silu_cuda(const Silu& a, const op::Call& call) {
  const std::optional<ops::RowAxes> rows = ops::row_axes(a.input);
  if (!rows) return ops::too_many_strides("input", a.input);
  const int64_t k = a.input.size(-1) / 2;
  BlockQuantCudaParams p{};
  p.x = a.input.data(), p.codes = a.x_q->data_as<uint8_t>(), p.scales = a.sf->data_as<uint8_t>();
  ops::set_block_rows(p, *rows, k, k, 16, layout_of(a));
  p.second = k, p.code_row_stride = a.x_q->stride(0);
  p.encode = ops::factor_of(a.global_scale);
  return ops::prepare_block_quantize_cuda(config_of(a, a.input.dtype(), false), BlockInput::kGated, p, call.device,
                                          ops::wants_pdl(a.enable_pdl));
}
template <bool kGated>
op::Prepared prepare_grouped_cuda(const Grouped& a, const op::Call& call) {
  BlockQuantCudaParams p{};
  const int64_t k = k_of<kGated>(a);
  p.x = a.a.data();
  ops::set_block_rows(p, {a.a.size(1), 1, {a.a.stride(1), 0}}, k, k, 16, SfLayout::k128x4);
  p.batches = static_cast<uint32_t>(a.a.size(0));
  p.batch_stride = a.a.stride(0), p.second = kGated ? k : 0;
  p.code_batch_stride = a.a.size(1) * k / 2, p.code_row_stride = k / 2;
  p.scale_batch_stride = sf_bytes(SfLayout::k128x4, a.a.size(1), k / 16);
  p.encode = ops::factor_of(a.a_global_sf, a.a_global_sf.numel() > 1 ? a.a_global_sf.stride(0) : 0);
  p.mask = a.mask.data_as<int32_t>(), p.mask_stride = a.mask.stride(0);
  return ops::prepare_grouped_cuda(config_of(a, a.a.dtype(), false), kGated ? BlockInput::kGated : BlockInput::kPlain,
                                   p, {*a.x_q, codes_strides<kGated>(a)}, {*a.sf, scales_strides<kGated>(a)},
                                   call.device);
}

template <bool kGated>
op::Prepared prepare_grouped(const Grouped& a) {
  return ops::with_kernel<ops::kBlockQuantize>(config_of(a, a.a.dtype(), kGated),
                                               [&a](jit::CpuFn fn) { launch_grouped<kGated>(a, fn); });
}

op::Cost cost_silu(const Silu& a) {
  const double n = static_cast<double>(a.input.numel());
  return {.bytes = n * (2 + 0.25 + 1.0 / 32)};
}
template <bool kGated>
op::Cost cost_grouped(const Grouped& a) {
  const double n = static_cast<double>(a.a.numel());
  return {.bytes = n * (kGated ? 2 + 0.25 + 1.0 / 32 : 2 + 0.5 + 1.0 / 16)};
}
// ---- tables ----
constexpr op::Field silu_fields[] = {
    op::in<&Silu::input>("input", nullptr, kHalves),
    op::in<&Silu::global_scale>("global_scale", nullptr, DType::kF32),
    op::attr<&Silu::sf_vec_size>("sf_vec_size"),
    op::attr<&Silu::is_sf_swizzled_layout>("is_sf_swizzled_layout"),
    op::attr<&Silu::is_sf_8x4_layout>("is_sf_8x4_layout"),
    op::attr<&Silu::enable_pdl>("enable_pdl"),
    op::attr<&Silu::nvfp4_4over6>("nvfp4_4over6", op::literal(ops::kUnset4Over6)),
    op::result<&Silu::x_q>("x_q", nullptr, DType::kU8, op::shape<silu_codes>),
    op::result<&Silu::sf>("sf", nullptr, DType::kU8, op::contiguous, op::shape<silu_scales>),
};
template <bool kGated>
constexpr op::Field grouped_fields[] = {
    op::in<&Grouped::a>("a", "b m k", kHalves),
    op::in<&Grouped::mask>("mask", "b", DType::kI32, op::any_layout, op::doc("rows of each group that are computed")),
    op::in<&Grouped::a_global_sf>("a_global_sf", nullptr, DType::kF32),
    op::attr<&Grouped::nvfp4_4over6>("nvfp4_4over6", op::literal(ops::kUnset4Over6)),
    op::result<&Grouped::x_q>("x_q", nullptr, DType::kU8, op::any_layout, op::shape<codes_shape<kGated>>,
                              op::strides<codes_strides<kGated>>),
    op::result<&Grouped::sf>("sf", nullptr, DType::kF8E4M3, op::any_layout, op::shape<scales_shape<kGated>>,
                             op::strides<scales_strides<kGated>>),
};
constexpr op::Candidate silu_candidates[] = {op::cuda<prepare_silu_cuda>(), op::cpu<prepare_silu>(),
                                             op::reference<reference_silu>()};
constexpr op::Candidate grouped_candidates[] = {op::cuda<prepare_grouped_cuda<false>>(),
                                                op::cpu<prepare_grouped<false>>(),
                                                op::reference<reference_grouped<false>>()};
constexpr op::Candidate experts_candidates[] = {
    op::cuda<prepare_grouped_cuda<true>>(), op::cpu<prepare_grouped<true>>(), op::reference<reference_grouped<true>>()};
}  // namespace

namespace ops::quantization {
constinit const op::Op silu_fp4_op = op::define<Silu, validate_silu, cost_silu>(
    kSilu, "flashinfer.quantization", "silu(input[..., :k]) * input[..., k:], rounded, as NVFP4.", silu_fields,
    silu_candidates, silu_fp4_cases);
constinit const op::Op grouped_fp4_op = op::define<Grouped, validate_grouped<false>, cost_grouped<false>>(
    kGroupedName<false>, "flashinfer.quantization", "The first mask[b] rows of each expert as NVFP4.",
    grouped_fields<false>, grouped_candidates, grouped_fp4_cases);
constinit const op::Op silu_experts_fp4_op = op::define<Grouped, validate_grouped<true>, cost_grouped<true>>(
    kGroupedName<true>, "flashinfer.activation",
    "silu_and_mul of the first mask[b] rows of each expert, rounded, as NVFP4.", grouped_fields<true>,
    experts_candidates, silu_experts_fp4_cases);
}  // namespace ops::quantization

std::pair<Tensor, Tensor> silu_and_mul_nvfp4_quantize(const Silu& a) { return op::call(family::silu_fp4_op, a); }
std::pair<Tensor, Tensor> scaled_fp4_grouped_quantize(const Grouped& a) { return op::call(family::grouped_fp4_op, a); }
std::pair<Tensor, Tensor> silu_and_mul_scaled_nvfp4_experts_quantize(const Grouped& a) {
  return op::call(family::silu_experts_fp4_op, a);
}

}  // namespace flashinfer
