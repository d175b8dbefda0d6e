// SPDX-License-Identifier: Apache-2.0
// From the ops of block formats to their CUDA kernels.
#pragma once
#include <optional>

#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/quantization/kernels/block_params.h"
#include "flashinfer/ops/quantization/kernels/cuda_params.h"

namespace flashinfer::ops {

inline constexpr jit::Kernel kBlockQuantizeCuda{"flashinfer/ops/quantization/kernels/cuda/block.cuh",
                                                "flashinfer::cu::block_quantize", "flashinfer::BlockQuantCudaParams"};
inline constexpr jit::Kernel kRowFactorsCuda{"flashinfer/ops/quantization/kernels/cuda/block.cuh",
                                             "flashinfer::cu::row_factors", "flashinfer::RowFactorParams"};
inline constexpr jit::Kernel kBlockDequantizeCuda{"flashinfer/ops/quantization/kernels/cuda/dequantize.cuh",
                                                  "flashinfer::cu::block_dequantize",
                                                  "flashinfer::BlockDequantCudaParams"};

/// [..., k] as rows with two axes: row r is (r / inner, r % inner).
struct RowAxes {
  int64_t rows = 0, inner = 1, stride[2] = {0, 0};
  uint64_t strides() const {
    return static_cast<uint64_t>(stride[0]) | static_cast<uint64_t>(inner > 1 ? stride[1] : 0);
  }
};
/// Nothing: the axes but the last are more than two after joining neighbours.
std::optional<RowAxes> row_axes(const TensorView& x);
/// Stride of the rows of [..., k] when they have one.
std::optional<int64_t> row_stride(const TensorView& x);
/// Why a layout is unsupported: "input is ..., whose rows have more than two strides".
op::Unsupported too_many_strides(const char* name, const TensorView& x);

FactorSource factor_of(const TensorView& t, int64_t batch_stride = 0, int64_t row_stride = 0);
inline FactorSource factor_of(const std::optional<TensorView>& t) {
  return t ? factor_of(*t) : FactorSource{.value = 1};
}

/// Sets aligned and threads from `p`; `code_rows`: bits of the strides of the codes' rows in bytes. Empty or why there
/// is no kernel.
BlockQuantCudaConfig block_config(const BlockQuantConfig& c, BlockInput input, const BlockQuantCudaParams& p);
/// Fills p's rows, strides and units from the tensors' shapes: [rows, k] codes of `padded_k` columns in `layout`.
void set_block_rows(BlockQuantCudaParams& p, const RowAxes& x, int64_t k, int64_t padded_k, int64_t block,
                    SfLayout layout);
cuda::Launch block_launch(const BlockQuantCudaConfig& c, const BlockQuantCudaParams& p, bool pdl);
/// Whether 32-bit indices suffice; else why not.
std::string block_unsupported(const BlockQuantCudaParams& p);

op::Prepared prepare_block_quantize_cuda(const BlockQuantConfig& config, BlockInput input,
                                         const BlockQuantCudaParams& p, Device device, bool pdl);
/// A result and the strides in whose order the kernel writes it; copied from memory of that order when it has others.
struct OrderedOutput {
  const TensorView& out;
  op::Shape strides;
  bool in_order() const;
};
/// The same for codes and scales that are permuted views; p.codes and p.scales are set here.
op::Prepared prepare_grouped_cuda(const BlockQuantConfig& config, BlockInput input, const BlockQuantCudaParams& p,
                                  const OrderedOutput& codes, const OrderedOutput& scales, Device device);
op::Prepared prepare_block_dequantize_cuda(const BlockDequantConfig& config, const BlockDequantCudaParams& p,
                                           Device device);

/// q = x / scale in 8 bits, and the scale: `given`, else the largest magnitude over the codes' largest value
/// (`numerator` 0), or min(numerator / largest magnitude, FLT_MAX), or `fixed` unless it is 0. q absent: the scale
/// alone.
struct Tensor8 {
  const TensorView& x;
  std::optional<TensorView> q = {}, given = {};
  const TensorView& scale;
  DType out = DType::kF8E4M3;
  float numerator = 0, fixed = 0;
};
op::Prepared prepare_tensor8_cuda(const Tensor8& t, Device device);
/// The launch that finds the largest magnitudes of x in parts, one a block: `params.parts` is memory for
/// `params.part_count` of them. `why_not`: empty, or why there is none.
struct TensorMost {
  Tensor8CudaParams params{};
  cuda::Launch launch;
  const jit::CudaLoaded* kernel = nullptr;
  std::string why_not;
};
TensorMost tensor_most(const TensorView& x, Device device);
/// q [rows, k] e4m3 of x, scales f32 [rows, k / group] = max(amax, eps) / 448 (fp8/group8.cc).
op::Prepared prepare_group8_cuda(const TensorView& x, const TensorView& q, const TensorView& scales, int64_t group,
                                 double eps, Device device);

}  // namespace flashinfer::ops
