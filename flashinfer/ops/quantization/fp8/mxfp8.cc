// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/quantization/fp8/mxfp8.h"

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/quantization/block/cuda.h"
#include "flashinfer/ops/quantization/block/launch.h"
#include "flashinfer/ops/quantization/block/ref.h"
#include "flashinfer/ops/quantization/cases.h"
#include "flashinfer/ops/quantization/ops.h"

namespace flashinfer {
namespace {
namespace family = ops::quantization;
using op::Shape;
constexpr const char* kQuantize = "mxfp8_quantize";
constexpr const char* kDequantize = "mxfp8_dequantize_host";

template <class B>
SfLayout layout_of(const B& a) {
  if (a.sf_swizzle_layout) return static_cast<SfLayout>(*a.sf_swizzle_layout);
  return a.is_sf_swizzled_layout ? SfLayout::k128x4 : SfLayout::kLinear;
}
template <class B>
void check_layout(const B& a) {
  if (a.sf_swizzle_layout) ops::sf_layout("sf_swizzle_layout", *a.sf_swizzle_layout);
}

// ---- quantising ----
int64_t padded_k(const Mxfp8Quantize& a) { return round_up(a.input.size(-1), a.alignment); }
Shape codes_shape(const Mxfp8Quantize& a) {
  Shape s{a.input.rank()};
  for (int i = 0; i < s.rank; ++i) s.size[i] = a.input.size(i);
  s.size[s.rank - 1] = padded_k(a);
  return s;
}
Shape scales_shape(const Mxfp8Quantize& a) {
  return {1, {sf_bytes(layout_of(a), ops::row_count(a.input), padded_k(a) / 32)}};
}

void validate_quantize(const Mxfp8Quantize& a) {
  FI_CHECK(a.input.rank() >= 2, ValueError, "input is ", to_string(a.input), ", but must have at least two dimensions");
  ops::check_columns(a.input.size(-1), 32);
  FI_CHECK(a.alignment > 0 && a.alignment % 32 == 0, ValueError, "alignment is ", a.alignment,
           ", but must be a multiple of 32");
  check_layout(a);
}
BlockQuantConfig config_of(const Mxfp8Quantize& a) { return {a.input.dtype(), 32, 1, 1, 0}; }
void launch_quantize(const Mxfp8Quantize& a, jit::CpuFn fn) {
  const ops::Rows x = ops::as_rows(a.input), codes = ops::as_rows(*a.x_q);
  BlockQuantParams p{};
  p.x = x.view.data(), p.codes = codes.view.data_as<uint8_t>(), p.scales = a.sf->data_as<uint8_t>();
  p.batches = 1, p.rows = x.view.size(0), p.k = x.view.size(1), p.padded_k = padded_k(a);
  p.row_stride = x.view.stride(0), p.code_row_stride = codes.view.stride(0);
  p.layout = layout_of(a);
  p.padded_rows = sf_padded_rows(p.layout, p.rows);
  ops::run_block_quantize(fn, config_of(a), p);
  if (codes.keep.defined()) ops::copy_strided(codes.keep.view(), *a.x_q);
}
op::Prepared prepare_quantize(const Mxfp8Quantize& a) {
  return ops::with_kernel<ops::kBlockQuantize>(config_of(a), [&a](jit::CpuFn fn) { launch_quantize(a, fn); });
}
op::Prepared prepare_quantize_cuda(const Mxfp8Quantize& a, const op::Call& call) {
  const std::optional<ops::RowAxes> rows = ops::row_axes(a.input);
  const std::optional<int64_t> code_rows = ops::row_stride(*a.x_q);
  if (!rows) return ops::too_many_strides("input", a.input);
  if (!code_rows) return ops::too_many_strides("x_q", *a.x_q);
  BlockQuantCudaParams p{};
  p.x = a.input.data(), p.codes = static_cast<uint8_t*>(a.x_q->data()), p.scales = a.sf->data_as<uint8_t>();
  ops::set_block_rows(p, *rows, a.input.size(-1), padded_k(a), 32, layout_of(a));
  p.code_row_stride = *code_rows;
  p.encode.value = 1;
  return ops::prepare_block_quantize_cuda(config_of(a), BlockInput::kPlain, p, call.device,
                                          ops::wants_pdl(a.enable_pdl));
}
void reference_quantize(const Mxfp8Quantize& a) {
  const Tensor compact = Tensor::clone(a.input);
  const int64_t m = ops::row_count(a.input), k = padded_k(a);
  const TensorView rows = compact.view().view({m, a.input.size(-1)});
  const Tensor codes = Tensor::zeros({m, k}, DType::kF8E4M3);
  ref::clear(*a.sf);
  for (int64_t r = 0; r < m; ++r)
    ref::quantize_row({32, true, true}, ref::floats_of(rows, {r}), 1.0f, codes.view().select(0, r), *a.sf, layout_of(a),
                      r, false, k / 32);
  ops::copy_strided(codes.view().view(a.x_q->shape()), *a.x_q);
}

// ---- dequantising ----
void validate_dequantize(const Mxfp8Dequantize& a) {
  check_layout(a);
  ops::check_columns(a.input.size(1), 32);
  const int64_t bytes = sf_bytes(layout_of(a), a.input.size(0), a.input.size(1) / 32);
  FI_CHECK(a.scale_tensor.numel() == bytes, ValueError, "scale_tensor has ", a.scale_tensor.numel(), " bytes, but ",
           a.input.size(0), " rows of ", a.input.size(1), " elements need ", bytes, " in this layout");
}
op::Prepared prepare_dequantize(const Mxfp8Dequantize& a) {
  BlockDequantParams p{};
  p.codes = a.input.data_as<uint8_t>(), p.scales = a.scale_tensor.data_as<uint8_t>(), p.y = a.output->data_as<float>();
  p.rows = a.input.size(0), p.k = a.input.size(1), p.block = 32;
  p.code_stride = a.input.stride(0), p.y_stride = a.output->stride(0);
  p.layout = layout_of(a);
  p.scale_row_stride = p.k / 32, p.scale_column_stride = 1;
  p.global = 1;
  return ops::prepare_block_dequantize({1, 1}, p);
}
op::Prepared prepare_dequantize_cuda(const Mxfp8Dequantize& a, const op::Call& call) {
  BlockDequantCudaParams p{};
  p.codes = static_cast<const uint8_t*>(a.input.data()), p.scales = a.scale_tensor.data_as<uint8_t>(),
  p.y = a.output->data_as<float>();
  p.units = scale_units(layout_of(a), a.input.size(0), a.input.size(1) / 32), p.block = 32;
  p.code_stride = a.input.stride(0), p.y_stride = a.output->stride(0);
  p.scale_row_stride = a.input.size(1) / 32, p.scale_column_stride = 1;
  p.global.value = 1;
  return ops::prepare_block_dequantize_cuda({1, 1}, p, call.device);
}
void reference_dequantize(const Mxfp8Dequantize& a) {
  for (int64_t r = 0; r < a.input.size(0); ++r)
    for (int64_t i = 0; i < a.input.size(1); ++i) {
      e4m3_t code;
      code.bits = a.input.data_as<uint8_t>()[r * a.input.stride(0) + i];
      const uint8_t scale =
          a.scale_tensor.data_as<uint8_t>()[ref::scale_place(layout_of(a), r, i / 32, a.input.size(1) / 32)];
      ref::put(*a.output, {r, i}, static_cast<double>(static_cast<float>(code)) * ref::power_value(scale));
    }
}

op::Cost cost_quantize(const Mxfp8Quantize& a) {
  const double n = static_cast<double>(a.input.numel());
  return {.bytes = n * static_cast<double>(a.input.item_size() + 1) + n / 32};
}
op::Cost cost_dequantize(const Mxfp8Dequantize& a) { return {.bytes = 5 * static_cast<double>(a.input.numel())}; }

constexpr op::Field quantize_fields[] = {
    op::in<&Mxfp8Quantize::input>("input", nullptr, op::floats),
    op::attr<&Mxfp8Quantize::is_sf_swizzled_layout>("is_sf_swizzled_layout"),
    op::attr<&Mxfp8Quantize::alignment>("alignment"),
    op::attr<&Mxfp8Quantize::enable_pdl>("enable_pdl"),
    op::attr<&Mxfp8Quantize::backend>("backend", op::backends("cuda:cuda|cute-dsl:cuda")),
    op::attr<&Mxfp8Quantize::sf_swizzle_layout>("sf_swizzle_layout", op::enumeration(ops::kSfLayouts)),
    op::result<&Mxfp8Quantize::x_q>("x_q", nullptr, DType::kF8E4M3, op::shape<codes_shape>),
    op::result<&Mxfp8Quantize::sf>("sf", nullptr, DType::kU8, op::shape<scales_shape>, op::contiguous),
};
constexpr op::Field dequantize_fields[] = {
    op::in<&Mxfp8Dequantize::input>("input", "m k", DTypeSet(DType::kF8E4M3) | DType::kU8),
    op::in<&Mxfp8Dequantize::scale_tensor>("scale_tensor", nullptr, DType::kU8, op::contiguous),
    op::attr<&Mxfp8Dequantize::is_sf_swizzled_layout>("is_sf_swizzled_layout"),
    op::attr<&Mxfp8Dequantize::sf_swizzle_layout>("sf_swizzle_layout", op::enumeration(ops::kSfLayouts)),
    op::result<&Mxfp8Dequantize::output>("output", "m k", DType::kF32),
};
constexpr op::Candidate quantize_candidates[] = {op::cuda<prepare_quantize_cuda>(), op::cpu<prepare_quantize>(),
                                                 op::reference<reference_quantize>()};
constexpr op::Candidate dequantize_candidates[] = {op::cuda<prepare_dequantize_cuda>(), op::cpu<prepare_dequantize>(),
                                                   op::reference<reference_dequantize>()};
constexpr const char* kModule = "flashinfer.quantization";
}  // namespace

namespace ops::quantization {
constinit const op::Op mxfp8_op = op::define<Mxfp8Quantize, validate_quantize, cost_quantize>(
    kQuantize, kModule, "Rows as MXFP8: e4m3 codes, a power-of-two scale for 32.", quantize_fields, quantize_candidates,
    mxfp8_cases);
constinit const op::Op mxfp8_dequantize_op = op::define<Mxfp8Dequantize, validate_dequantize, cost_dequantize>(
    kDequantize, kModule, "MXFP8 rows as f32.", dequantize_fields, dequantize_candidates, mxfp8_dequantize_cases);
}  // namespace ops::quantization

std::pair<Tensor, Tensor> mxfp8_quantize(const Mxfp8Quantize& a) { return op::call(family::mxfp8_op, a); }
Tensor mxfp8_dequantize_host(const Mxfp8Dequantize& a) { return op::call(family::mxfp8_dequantize_op, a); }

}  // namespace flashinfer
