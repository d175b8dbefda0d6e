// SPDX-License-Identifier: Apache-2.0
// What the ops of block formats share: arguments to BlockQuantParams, checks, the launch.
#pragma once
#include <string>
#include <string_view>

#include "flashinfer/jit/jit.h"
#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/quantization/kernels/block_params.h"

namespace flashinfer::ops {

inline constexpr jit::Kernel kBlockQuantize{"flashinfer/ops/quantization/kernels/cpu/block.h",
                                            "flashinfer::cpu::block_quantize", "flashinfer::BlockQuantParams"};
inline constexpr jit::Kernel kBlockDequantize{"flashinfer/ops/quantization/kernels/cpu/block.h",
                                              "flashinfer::cpu::block_dequantize", "flashinfer::BlockDequantParams"};

inline constexpr jit::Kernel kGroup8{"flashinfer/ops/quantization/kernels/cpu/group8.h", "flashinfer::cpu::group8",
                                     "flashinfer::Group8Params"};

inline constexpr const char* kSfLayouts = "SfLayout: layout_128x4=0|layout_8x4=1|layout_linear=2";
inline constexpr const char* kUnset4Over6 = "<nvfp4_4over6 unset: read FLASHINFER_NVFP4_4OVER6*>";

/// ValueError unless `value` is one of SfLayout.
SfLayout sf_layout(std::string_view name, int64_t value);
/// A global scale of one f32: ValueError unless it is one positive normal number.
float global_scale(std::string_view name, const TensorView& t);
/// ValueError unless k is a multiple of `block`.
void check_columns(int64_t k, int64_t block);

/// [..., k] as rows of one stride: a view where the axes allow it, else of a copy that `keep` holds.
struct Rows {
  TensorView view;  // [m, k]
  Tensor keep;
};
Rows as_rows(const TensorView& x);
/// Product of all extents but the last.
int64_t row_count(const TensorView& x);

/// Strides, extents and pointers of [b, m, k] or [m, k] x, codes and scales; the rest of `p` is the caller's.
void run_block_quantize(jit::CpuFn fn, const BlockQuantConfig& config, BlockQuantParams p);

/// Sets rows_per_task.
op::Prepared prepare_block_dequantize(const BlockDequantConfig& config, BlockDequantParams p);

/// The largest magnitude of x (f16|bf16|f32, rank >= 1), NaN when it holds one, by `fn`, the kernel of
/// per_tensor_quant_fp8 for x's dtype.
float largest_magnitude(jit::CpuFn fn, const TensorView& x);

/// Memory of `strides`, in whose order a kernel writes: the output itself, or a copy that copy_strided moves
/// afterwards.
Tensor in_order(const TensorView& out, const op::Shape& strides);
/// Copies elements between tensors of the same shape and item size, any strides.
void copy_strided(const TensorView& from, const TensorView& to);

}  // namespace flashinfer::ops
