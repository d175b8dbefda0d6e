// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/quantization/block/launch.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/common/reference.h"

namespace flashinfer::ops {

SfLayout sf_layout(std::string_view name, int64_t value) {
  FI_CHECK(value >= 0 && value <= 2, ValueError, name, " is ", value,
           ", but must be SfLayout.layout_128x4 (0), layout_8x4 (1) or layout_linear (2)");
  return static_cast<SfLayout>(value);
}

float global_scale(std::string_view name, const TensorView& t) {
  FI_CHECK(t.numel() == 1, ValueError, name, " is ", to_string(t), ", but must be one f32");
  if (t.device() != kCpu) return 1.0f;  // its value cannot be seen from here
  const float v = t.data_as<float>()[0];
  FI_CHECK(v >= std::numeric_limits<float>::min() && std::isfinite(v), ValueError, name, " is ", v,
           ", but must be a positive normal f32 number");
  return v;
}

void check_columns(int64_t k, int64_t block) {
  FI_CHECK(k % block == 0, ValueError, "the last dimension is ", k, ", but must be a multiple of ", block,
           " (elements that share a scale)");
}

int64_t row_count(const TensorView& x) {
  int64_t m = 1;
  for (int i = 0; i + 1 < x.rank(); ++i) m *= x.size(i);
  return m;
}

Rows as_rows(const TensorView& x) {
  const int64_t m = row_count(x), k = x.size(-1);
  int64_t stride = k, expected = -1;  // the stride that the next outer axis must have
  bool even = true;
  for (int i = x.rank() - 2; i >= 0; --i) {
    if (x.size(i) == 1) continue;
    if (expected < 0)
      stride = x.stride(i);
    else
      even = even && x.stride(i) == expected;
    expected = x.stride(i) * x.size(i);
  }
  const int64_t shape[2] = {m, k}, strides[2] = {stride, 1};
  if (even) return {TensorView(x.data(), x.dtype(), shape, strides, x.device()), {}};
  Tensor copy = Tensor::clone(x);
  return {copy.view().view({m, k}), copy};
}

void run_block_quantize(jit::CpuFn fn, const BlockQuantConfig& config, BlockQuantParams p) {
  const int64_t item = config.dtype == DType::kF32 ? 4 : config.dtype == DType::kF8E4M3 ? 1 : 2;
  const int64_t rows = p.batches * p.padded_rows,
                bytes = p.k * (config.gated ? 2 : 1) * item + p.k * (config.fp8 ? 2 : 1) / 2;
  p.rows_per_task = rows_per_task(rows, bytes);
  // Whole tiles of scales, so that no two threads write to a line; only where there are tasks enough.
  if (p.layout != SfLayout::kLinear && rows / 128 >= 4 * Context::current().executor.threads)
    p.rows_per_task = round_up(p.rows_per_task, 128);
  run_rows(fn, p, rows, p.rows_per_task);
}

op::Prepared prepare_block_dequantize(const BlockDequantConfig& config, BlockDequantParams p) {
  p.rows_per_task = rows_per_task(p.rows, p.k * 5);
  return prepare_rows<kBlockDequantize>(config, p, p.rows, p.rows_per_task);
}

Tensor in_order(const TensorView& out, const op::Shape& strides) {
  bool same = true;
  for (int i = 0; i < out.rank(); ++i) same = same && (out.size(i) <= 1 || out.stride(i) == strides.size[i]);
  if (same) return Tensor(out, nullptr);
  const TensorView layout(nullptr, out.dtype(), out.shape(), strides.span());
  const Tensor memory = Tensor::empty({layout.span_bytes()}, DType::kU8);
  return Tensor(TensorView(memory.data(), out.dtype(), out.shape(), strides.span()), memory.owner());
}

void copy_strided(const TensorView& from, const TensorView& to) {
  const auto item = static_cast<size_t>(from.item_size());
  if (from.numel() == 0) return;
  ref::for_each_row(from, [&](const ref::Index& row) {
    const char* p = from.data_as<char>() + ref::offset_of(from, row) * from.item_size();
    char* q = to.data_as<char>() + ref::offset_of(to, row) * to.item_size();
    for (int64_t i = 0; i < from.size(-1); ++i)
      std::memcpy(q + i * to.stride(-1) * to.item_size(), p + i * from.stride(-1) * from.item_size(), item);
  });
}

}  // namespace flashinfer::ops
