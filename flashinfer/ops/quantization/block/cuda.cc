// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/quantization/block/cuda.h"

#include <algorithm>
#include <vector>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/common/strided_copy.h"

namespace flashinfer::ops {
namespace {
constexpr int kThreads = 256;  // eight warps, neighbours of a row: 1 KB of bf16 at once

int64_t item_size(DType t) { return t == DType::kF32 ? 4 : t == DType::kF8E4M3 ? 1 : 2; }
unsigned blocks_of(int64_t units) { return static_cast<unsigned>(ceil_div(units, kThreads / 32)); }
}  // namespace

std::optional<RowAxes> row_axes(const TensorView& x) {
  RowAxes r{.rows = 1};
  int axes = 0;  // found, the fastest first
  int64_t size[2] = {1, 1}, stride[2] = {0, 0};
  for (int i = x.rank() - 2; i >= 0; --i) {
    r.rows *= x.size(i);
    if (x.size(i) == 1) continue;
    if (axes > 0 && x.stride(i) == stride[axes - 1] * size[axes - 1]) {
      size[axes - 1] *= x.size(i);
      continue;
    }
    if (axes == 2) return std::nullopt;
    size[axes] = x.size(i), stride[axes] = x.stride(i), ++axes;
  }
  r.inner = axes == 2 ? size[0] : 1;
  r.stride[0] = axes == 2 ? stride[1] : stride[0], r.stride[1] = axes == 2 ? stride[0] : 0;
  return r;
}
std::optional<int64_t> row_stride(const TensorView& x) {
  const std::optional<RowAxes> r = row_axes(x);
  if (!r || r->inner > 1) return std::nullopt;
  return r->stride[0];
}
op::Unsupported too_many_strides(const char* name, const TensorView& x) {
  return {str(name, " is ", to_string(x), ", whose rows have more strides than the kernel for GPUs takes")};
}

FactorSource factor_of(const TensorView& t, int64_t batch_stride, int64_t row_stride) {
  return {t.data(), batch_stride, row_stride, 1.0f, t.dtype(), 0};
}

BlockQuantCudaConfig block_config(const BlockQuantConfig& c, BlockInput input, const BlockQuantCudaParams& p) {
  const int64_t item = item_size(c.dtype), codes = 16 / item / (c.fp8 ? 1 : 2);
  uint64_t wide = reinterpret_cast<uintptr_t>(p.x) | reinterpret_cast<uintptr_t>(p.column_scale);
  for (const int64_t s : {p.row_stride[0], p.row_stride[1], p.batch_stride, p.second})
    wide |= static_cast<uint64_t>(s * item);
  const uint64_t narrow = reinterpret_cast<uintptr_t>(p.codes) | static_cast<uint64_t>(p.code_row_stride) |
                          static_cast<uint64_t>(p.code_batch_stride);
  return {.dtype = c.dtype,
          .input = input,
          .block = c.block,
          .ue8m0 = c.ue8m0,
          .fp8 = c.fp8,
          .four_over_six = c.four_over_six,
          .aligned = wide % 16 == 0 && narrow % static_cast<uint64_t>(codes) == 0,
          .threads = kThreads};
}
void set_block_rows(BlockQuantCudaParams& p, const RowAxes& x, int64_t k, int64_t padded_k, int64_t block,
                    SfLayout layout) {
  p.rows = static_cast<uint32_t>(x.rows), p.inner = static_cast<uint32_t>(x.inner);
  p.row_stride[0] = x.stride[0], p.row_stride[1] = x.inner > 1 ? x.stride[1] : 0;
  p.blocks = static_cast<uint32_t>(k / block);
  p.units = scale_units(layout, x.rows, padded_k / block);
  p.batches = 1;
}
std::string block_unsupported(const BlockQuantCudaParams& p) {
  const double all = static_cast<double>(p.units.units) * p.batches * kScaleUnit;
  if (all < 0x1p32) return {};
  return str("the call has ", all, " scale factors, but a GPU's call has fewer than 2^32");
}
cuda::Launch block_launch(const BlockQuantCudaConfig& c, const BlockQuantCudaParams& p, bool pdl) {
  cuda::Launch l;
  l.block[0] = static_cast<unsigned>(c.threads);
  l.grid[0] = blocks_of(int64_t{p.units.units} * p.batches);
  l.pdl = pdl;
  return l;
}
op::Prepared prepare_block_quantize_cuda(const BlockQuantConfig& config, BlockInput input,
                                         const BlockQuantCudaParams& p, Device device, bool pdl) {
  if (std::string why = block_unsupported(p); !why.empty()) return op::Unsupported{std::move(why)};
  const BlockQuantCudaConfig c = block_config(config, input, p);
  return prepare_cuda<kBlockQuantizeCuda>(c, p, device, block_launch(c, p, pdl));
}

bool OrderedOutput::in_order() const {
  for (int i = 0; i < out.rank(); ++i)
    if (out.size(i) > 1 && out.stride(i) != strides.size[i]) return false;
  return true;
}
namespace {
/// The copy to an output that is not in the kernel's order; its bytes in that order.
struct OutputCopy {
  std::optional<StridedCopy> copy;
  const jit::CudaLoaded* kernel = nullptr;
  int64_t bytes = 0;
};
/// Empty, or why there is no copy.
std::string plan_copy(const OrderedOutput& o, Device device, OutputCopy& c) {
  c.bytes = TensorView(nullptr, o.out.dtype(), o.out.shape(), o.strides.span()).span_bytes();
  std::vector<CopyAxis> axes;
  std::vector<int> order(static_cast<size_t>(o.out.rank()));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return o.strides.size[a] > o.strides.size[b]; });
  for (int i : order) axes.push_back({o.out.size(i), o.strides.size[i], o.out.stride(i)});
  c.copy = strided_copy(axes, o.out.item_size(), reinterpret_cast<uintptr_t>(o.out.data()));
  if (!c.copy) return "an output's layout needs a copy of more than 6 axes or 2^32 elements";
  c.copy->params.to = static_cast<char*>(o.out.data());
  c.kernel = &jit::cuda_kernel<kStridedCopy>(c.copy->config, device);
  return c.kernel->why_not;
}
}  // namespace

op::Prepared prepare_grouped_cuda(const BlockQuantConfig& config, BlockInput input, const BlockQuantCudaParams& params,
                                  const OrderedOutput& codes, const OrderedOutput& scales, Device device) {
  BlockQuantCudaParams p = params;
  p.codes = static_cast<uint8_t*>(codes.out.data()), p.scales = static_cast<uint8_t*>(scales.out.data());
  if (codes.in_order() && scales.in_order()) return prepare_block_quantize_cuda(config, input, p, device, true);
  if (std::string why = block_unsupported(p); !why.empty()) return op::Unsupported{std::move(why)};
  OutputCopy copies[2];
  for (int i = 0; i < 2; ++i)
    if (std::string why = plan_copy(i ? scales : codes, device, copies[i]); !why.empty()) return op::Unsupported{why};
  p.codes = p.scales = nullptr;  // of 256-byte aligned memory
  const BlockQuantCudaConfig c = block_config(config, input, p);
  const jit::CudaLoaded& quantize = jit::cuda_kernel<kBlockQuantizeCuda>(c, device);
  if (!quantize.why_not.empty()) return op::Unsupported{quantize.why_not};
  return [p, launch = block_launch(c, p, true), &quantize, first = copies[0], second = copies[1], device]() mutable {
    const Tensor codes_memory = Tensor::empty({std::max<int64_t>(first.bytes, 1)}, DType::kU8, device),
                 scales_memory = Tensor::empty({std::max<int64_t>(second.bytes, 1)}, DType::kU8, device);
    p.codes = codes_memory.data_as<uint8_t>(), p.scales = scales_memory.data_as<uint8_t>();
    launch_unless_empty(quantize, p, launch);
    first.copy->params.from = codes_memory.data_as<char>(), second.copy->params.from = scales_memory.data_as<char>();
    launch_unless_empty(*first.kernel, first.copy->params, first.copy->launch);
    launch_unless_empty(*second.kernel, second.copy->params, second.copy->launch);
  };
}

op::Prepared prepare_block_dequantize_cuda(const BlockDequantConfig& config, const BlockDequantCudaParams& p,
                                           Device device) {
  const uint64_t y = reinterpret_cast<uintptr_t>(p.y) | static_cast<uint64_t>(p.y_stride * 4),
                 codes = reinterpret_cast<uintptr_t>(p.codes) | static_cast<uint64_t>(p.code_stride);
  const BlockDequantCudaConfig c{.fp8 = config.fp8,
                                 .ue8m0 = config.ue8m0,
                                 .aligned = y % 16 == 0 && codes % (config.fp8 ? 4 : 2) == 0,
                                 .threads = kThreads};
  cuda::Launch l;
  l.block[0] = static_cast<unsigned>(c.threads);
  l.grid[0] = blocks_of(p.units.units);
  l.pdl = true;
  return prepare_cuda<kBlockDequantizeCuda>(c, p, device, l);
}

}  // namespace flashinfer::ops
