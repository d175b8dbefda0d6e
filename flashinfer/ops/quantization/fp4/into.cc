// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/quantization/fp4/into.h"

#include <cmath>

#include "flashinfer/ops/quantization/block/cuda.h"
#include "flashinfer/ops/quantization/block/launch.h"
#include "flashinfer/ops/quantization/block/ref.h"
#include "flashinfer/ops/quantization/cases.h"
#include "flashinfer/ops/quantization/ops.h"

namespace flashinfer {
namespace {

using Into = Nvfp4QuantizeInto;
constexpr const char* kInto = "nvfp4_quantize_into";

/// Scales of one row of the input.
int64_t scales_of_row(const Into& a) { return a.input.size(0) ? a.input.numel() / a.input.size(0) / 16 : 0; }
uint8_t* scale_at(const Into& a, int64_t row, int64_t column) {
  return static_cast<uint8_t*>(a.scale.data()) +
         sf_offset(SfLayout::k128x4, a.scale_start_index + row, column, a.scale.size(1));
}

void validate(const Into& a) {
  FI_CHECK(a.input.rank() >= 2, ValueError, "input is ", to_string(a.input), ", but must have at least two dimensions");
  ops::check_columns(a.input.size(-1), 16);
  const auto gs = static_cast<float>(a.global_scale);
  FI_CHECK(gs >= 0x1p-126f && std::isfinite(gs), ValueError, "global_scale is ", a.global_scale,
           ", but must be a positive normal f32 number");
  bool fits = a.data.rank() == a.input.rank() && a.data.size(-1) == a.input.size(-1) / 2;
  for (int i = 0; fits && i + 1 < a.input.rank(); ++i) fits = a.data.size(i) == a.input.size(i);
  FI_CHECK(fits, ValueError, "data is ", to_string(a.data), ", but must be as input, ", to_string(a.input),
           ", with half its last extent");
  const int64_t rows = a.input.size(0), columns = round_up(scales_of_row(a), 4);
  FI_CHECK(a.scale.rank() == 2 && a.scale.size(0) % 128 == 0, ValueError, "scale is ", to_string(a.scale),
           ", but must be [rows, columns] with a multiple of 128 rows");
  FI_CHECK(rows == 0 || a.scale.size(1) == columns, ValueError, "scale.shape[1] is ", a.scale.size(1),
           ", but a row of ", 16 * scales_of_row(a), " elements has ", columns, " (a multiple of 4)");
  FI_CHECK(a.scale_start_index >= 0 && a.scale_start_index <= a.scale.size(0) - rows, ValueError,
           "scale_start_index is ", a.scale_start_index, ", but scale has ", a.scale.size(0), " rows and input ", rows);
}

op::Prepared prepare(const Into& a) {
  const BlockQuantConfig config{a.input.dtype(), 16, 0, 0, 0};
  return ops::with_kernel<ops::kBlockQuantize>(config, [&a, config](jit::CpuFn fn) {
    const ops::Rows x = ops::as_rows(a.input), codes = ops::as_rows(a.data);
    const int64_t rows = a.input.size(0), columns = scales_of_row(a);
    const Tensor scales = Tensor::empty({rows, columns}, DType::kU8);
    const auto encode = static_cast<float>(a.global_scale);
    BlockQuantParams p{};
    p.x = x.view.data(), p.codes = codes.view.data_as<uint8_t>(), p.scales = scales.data_as<uint8_t>();
    p.batches = 1, p.rows = p.padded_rows = x.view.size(0), p.k = p.padded_k = x.view.size(1);
    p.row_stride = x.view.stride(0), p.code_row_stride = codes.view.stride(0);
    p.layout = SfLayout::kLinear, p.encode = &encode;
    ops::run_block_quantize(fn, config, p);
    if (codes.keep.defined()) ops::copy_strided(codes.keep.view(), a.data);
    ops::for_rows(rows, ops::rows_per_task(rows, 2 * columns), [&](int64_t row) {
      const uint8_t* from = scales.data_as<uint8_t>() + row * columns;
      for (int64_t i = 0; i < columns; ++i) *scale_at(a, row, i) = from[i];
    });
  });
}

/// A row of [m, ..., k] as runs of neighbouring elements. Nothing: they are not the same distance apart.
struct Runs {
  int64_t length, count = 1, stride = 0;
};
std::optional<Runs> runs_of(const TensorView& x) {
  Runs r{x.size(-1)};
  for (int i = x.rank() - 2; i >= 1; --i) {
    if (x.size(i) == 1) continue;
    if (r.count == 1 && x.stride(i) == r.length)
      r.length *= x.size(i);
    else if (r.count == 1)
      r.count = x.size(i), r.stride = x.stride(i);
    else if (x.stride(i) == r.count * r.stride)
      r.count *= x.size(i);
    else
      return std::nullopt;
  }
  return r;
}
op::Prepared prepare_cuda(const Into& a, const op::Call& call) {
  if (a.input.numel() == 0) return [] {};
  std::optional<Runs> x = runs_of(a.input), codes = runs_of(a.data);
  if (!x) return ops::too_many_strides("input", a.input);
  if (!codes) return ops::too_many_strides("data", a.data);
  const int64_t run = std::min(x->length, 2 * codes->length);  // each length is a product of trailing extents
  if (x->count > 1 && x->length > run) return ops::too_many_strides("input", a.input);
  if (codes->count > 1 && 2 * codes->length > run) return ops::too_many_strides("data", a.data);
  if (x->length > run) x->stride = run;
  if (2 * codes->length > run) codes->stride = run / 2;
  const int64_t tile = a.scale_start_index / 128, first = a.scale_start_index % 128, columns = scales_of_row(a);
  BlockQuantCudaParams p{};
  p.x = a.input.data(), p.codes = a.data.data_as<uint8_t>();
  p.scales = static_cast<uint8_t*>(a.scale.data()) + tile * 128 * a.scale.size(1);
  p.batches = 1, p.rows = static_cast<uint32_t>(a.input.size(0)), p.inner = static_cast<uint32_t>(run / 16);
  p.blocks = static_cast<uint32_t>(columns), p.first_row = static_cast<uint32_t>(first);
  p.units = scale_units(SfLayout::k128x4, first + a.input.size(0), columns);
  p.row_stride[0] = a.input.stride(0), p.row_stride[1] = x->stride;
  p.code_row_stride = a.data.stride(0), p.code_batch_stride = codes->stride;
  p.encode.value = static_cast<float>(a.global_scale);
  return ops::prepare_block_quantize_cuda({a.input.dtype(), 16, 0, 0, 0}, BlockInput::kInto, p, call.device, true);
}

void reference(const Into& a) {
  const int64_t rows = a.input.size(0), n = rows ? a.input.numel() / rows : 0;
  const Tensor compact = Tensor::clone(a.input);
  const Tensor codes = Tensor::empty({rows, n / 2}, DType::kU8);
  const int64_t shape[] = {a.scale.size(0), a.scale.size(1)};
  const TensorView scales(a.scale.data(), DType::kU8, shape);
  for (int64_t r = 0; r < rows; ++r)
    ref::quantize_row({16, false, false}, ref::floats_of(compact.view().view({rows, n}), {r}),
                      static_cast<float>(a.global_scale), codes.view().select(0, r), scales, SfLayout::k128x4,
                      a.scale_start_index + r, false, n / 16);
  if (rows) ops::copy_strided(codes.view().view(a.data.shape()), a.data);
}
op::Cost cost(const Into& a) {
  return {.bytes = static_cast<double>(a.input.nbytes()) + static_cast<double>(a.input.numel()) * (0.5 + 1.0 / 16)};
}

constexpr op::Field fields[] = {
    op::in<&Into::input>("input", nullptr, op::floats),
    op::attr<&Into::global_scale>("global_scale", op::required,
                                  op::doc("factor of the largest magnitude of a block / 6, which gives its scale")),
    op::inout<&Into::data>("data", nullptr, DType::kU8, op::doc("codes, two a byte, the first in the low half")),
    op::inout<&Into::scale>("scale", nullptr, DType::kF8E4M3, op::contiguous,
                            op::doc("scale factors in tiles of 128x4")),
    op::attr<&Into::scale_start_index>("scale_start_index", op::doc("row of `scale` for the first row of `input`")),
};
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda>(), op::cpu<prepare>(), op::reference<reference>()};

}  // namespace

namespace ops::quantization {
constinit const op::Op into_op = op::define<Into, validate, cost>(
    kInto, "flashinfer.quantization", "Rows as NVFP4 into memory of the caller, scales from some row of theirs on.",
    fields, candidates, into_cases);
}  // namespace ops::quantization

void nvfp4_quantize_into(const Into& a) { op::call(ops::quantization::into_op, a); }

}  // namespace flashinfer
