// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/quantization/fp8/grouped_mxfp8.h"

#include <algorithm>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/quantization/block/cuda.h"
#include "flashinfer/ops/quantization/block/launch.h"
#include "flashinfer/ops/quantization/block/ref.h"
#include "flashinfer/ops/quantization/cases.h"
#include "flashinfer/ops/quantization/ops.h"

namespace flashinfer {
namespace {
using G = Mxfp8GroupedQuantize;
using op::Shape;
constexpr int64_t kColumns = 128;  // codes and scale factors are padded to whole tiles of scale factors

int64_t padded_k(const G& a) { return round_up(a.a.size(2), kColumns); }
Shape codes_shape(const G& a) { return {3, {a.a.size(1), padded_k(a), a.a.size(0)}}; }
Shape codes_strides(const G& a) { return {3, {padded_k(a), 1, a.a.size(1) * padded_k(a)}}; }
int64_t row_tiles(const G& a) { return ceil_div(a.a.size(1), int64_t{128}); }
Shape scales_shape(const G& a) { return {6, {32, 4, row_tiles(a), 4, padded_k(a) / kColumns, a.a.size(0)}}; }
Shape scales_strides(const G& a) {
  const int64_t columns = padded_k(a) / 32;
  return {6, {16, 4, 128 * columns, 1, 512, 128 * row_tiles(a) * columns}};
}
void validate(const G& a) {
  FI_CHECK(a.a.size(2) % 32 == 0, ValueError, "a.shape[2] is ", a.a.size(2), ", but must be a multiple of 32");
  op::check_index_range("mask", a.mask, 0, a.a.size(1) + 1, "rows of a");
}
BlockQuantConfig config_of(const G& a) { return {a.a.dtype(), 32, 1, 1, 0}; }

void launch(const G& a, jit::CpuFn fn) {
  const Tensor codes = ops::in_order(*a.x_q, codes_strides(a)), scales = ops::in_order(*a.sf, scales_strides(a));
  const Tensor mask = Tensor::clone(a.mask);
  BlockQuantParams p{};
  p.x = a.a.data(), p.codes = static_cast<uint8_t*>(codes.data()), p.scales = scales.data_as<uint8_t>();
  p.batches = a.a.size(0), p.rows = a.a.size(1), p.k = a.a.size(2), p.padded_k = padded_k(a);
  p.batch_stride = a.a.stride(0), p.row_stride = a.a.stride(1);
  p.code_batch_stride = p.rows * p.padded_k, p.code_row_stride = p.padded_k;
  p.layout = SfLayout::k128x4;
  p.padded_rows = sf_padded_rows(p.layout, p.rows);
  p.scale_batch_stride = sf_bytes(p.layout, p.rows, p.padded_k / 32);
  p.mask = mask.data_as<int32_t>();
  ops::run_block_quantize(fn, config_of(a), p);
  if (codes.data() != a.x_q->data()) ops::copy_strided(codes.view(), *a.x_q);
  if (scales.data() != a.sf->data()) ops::copy_strided(scales.view(), *a.sf);
}
op::Prepared prepare(const G& a) {
  return ops::with_kernel<ops::kBlockQuantize>(config_of(a), [&a](jit::CpuFn fn) { launch(a, fn); });
}
op::Prepared prepare_cuda(const G& a, const op::Call& call) {
  BlockQuantCudaParams p{};
  p.x = a.a.data();
  ops::set_block_rows(p, {a.a.size(1), 1, {a.a.stride(1), 0}}, a.a.size(2), padded_k(a), 32, SfLayout::k128x4);
  p.batches = static_cast<uint32_t>(a.a.size(0));
  p.batch_stride = a.a.stride(0);
  p.code_batch_stride = a.a.size(1) * padded_k(a), p.code_row_stride = padded_k(a);
  p.scale_batch_stride = sf_bytes(SfLayout::k128x4, a.a.size(1), padded_k(a) / 32);
  p.encode.value = 1;
  p.mask = a.mask.data_as<int32_t>(), p.mask_stride = a.mask.stride(0);
  return ops::prepare_grouped_cuda(config_of(a), BlockInput::kPlain, p, {*a.x_q, codes_strides(a)},
                                   {*a.sf, scales_strides(a)}, call.device);
}
void reference(const G& a) {
  const int64_t k = padded_k(a), bytes = sf_bytes(SfLayout::k128x4, a.a.size(1), k / 32);
  const Tensor scales = Tensor::zeros({std::max<int64_t>(bytes * a.a.size(0), 1)}, DType::kU8);
  const Tensor codes = Tensor::zeros({a.a.size(0), a.a.size(1), k}, DType::kF8E4M3), x = Tensor::clone(a.a);
  for (int64_t b = 0; b < a.a.size(0); ++b)
    for (int64_t r = 0; r < op::index_at(a.mask, b); ++r)
      ref::quantize_row({32, true, true}, ref::floats_of(x.view(), {b, r}), 1.0f,
                        codes.view().select(0, b).select(0, r), scales.view().slice(0, b * bytes, (b + 1) * bytes),
                        SfLayout::k128x4, r, false, k / 32);
  ops::copy_strided(TensorView(codes.data(), DType::kF8E4M3, a.x_q->shape(), codes_strides(a).span()), *a.x_q);
  ops::copy_strided(TensorView(scales.data(), DType::kU8, a.sf->shape(), scales_strides(a).span()), *a.sf);
}
op::Cost cost(const G& a) {
  const double n = static_cast<double>(a.a.numel());
  return {.bytes = n * (3 + 1.0 / 32)};
}

constexpr op::Field fields[] = {
    op::in<&G::a>("a", "b m k", DTypeSet(DType::kF16) | DType::kBF16),
    op::in<&G::mask>("mask", "b", DType::kI32, op::any_layout, op::doc("rows of each group that count")),
    op::attr<&G::backend>("backend", op::backends("cutile:cuda|cake:cuda")),
    op::result<&G::x_q>("x_q", nullptr, DType::kF8E4M3, op::any_layout, op::shape<codes_shape>,
                        op::strides<codes_strides>),
    op::result<&G::sf>("sf", nullptr, DType::kU8, op::any_layout, op::shape<scales_shape>, op::strides<scales_strides>),
};
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda>(), op::cpu<prepare>(), op::reference<reference>()};
constexpr op::Case kCases[] = {
    {"padded_columns", "a=bf16:3x5x160:normal(0,16) mask=i32:[5,0,3]", "cpu", op::kAot | op::kTrace},
    {"f16_tiles", "a=f16:2x130x256:normal(0,16)^pad8 mask=i32:[129,7]"},
    {"no_groups", "a=bf16:0x4x64 mask=i32:[]"},
    {"bench", "a=bf16:8x1024x4096 mask=i32:8:const(1024)", "cpu", op::kBench},
};
std::span<const op::Case> cases() { return kCases; }
}  // namespace

namespace ops::quantization {
constinit const op::Op grouped_mxfp8_op =
    op::define<G, validate, cost>("mxfp8_grouped_quantize", "flashinfer.quantization",
                                  "The first mask[b] rows of each group as MXFP8.", fields, candidates, cases);
}  // namespace ops::quantization

std::pair<Tensor, Tensor> mxfp8_grouped_quantize(const G& a) {
  return op::call(ops::quantization::grouped_mxfp8_op, a);
}

}  // namespace flashinfer
