// SPDX-License-Identifier: Apache-2.0
// Norms whose results are e2m1 codes with block scales, and the norm with silu. The normalised row stays in f32 until
// it is quantised as in quantization/fp4/fp4.h: e4m3 scales (NVFP4, by gs) for 16, powers of two (MXFP4) for 32.
#pragma once
#include <optional>
#include <string>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// y = rmsnorm(input) as codes and scales. ValueError: d that is below 64 or no multiple of block_size, a block_size
/// other than 16 and 32, a scale_format other than "e4m3" and "ue8m0", a global scale that is not positive and normal,
/// or one with "ue8m0".
struct RmsNormFp4Quant {
  TensorView input;                      // [..., d] f16|bf16, rank 2 or 3
  TensorView weight;                     // [d], dtype of input or f32
  std::optional<TensorView> y_fp4 = {};  // [..., d/2] fp4x2|uint8; allocated when absent
  std::optional<TensorView> block_scale =
      {};  // linear [..., d/block]; swizzled: flat, the bytes of 128x4 tiles; e4m3|uint8, contiguous
  std::optional<TensorView> global_scale = {};  // gs, one f32; 1 when absent
  double eps = 1e-6;
  int64_t block_size = 16;
  std::optional<std::string> scale_format = {};  // by block_size when absent: 16 "e4m3", 32 "ue8m0"
  bool is_sf_swizzled_layout = false;
  std::optional<bool> enable_pdl = {};
};
op::Results rmsnorm_fp4quant(const RmsNormFp4Quant& args);

/// residual = round(s), s = input + residual in f32; the norm of the unrounded s as codes and scales.
struct AddRmsNormFp4Quant {
  TensorView input;     // [..., d] f16|bf16, rank 2 or 3
  TensorView residual;  // as input; read, then the sum
  TensorView weight;    // [d], dtype of input or f32
  std::optional<TensorView> y_fp4 = {};
  std::optional<TensorView> block_scale = {};
  std::optional<TensorView> global_scale = {};
  double eps = 1e-6;
  int64_t block_size = 16;
  std::optional<std::string> scale_format = {};
  bool is_sf_swizzled_layout = false;
  bool output_both_sf_layouts = false;                    // block_scale swizzled, block_scale_unswizzled linear
  std::optional<TensorView> block_scale_unswizzled = {};  // [..., d/block]
  std::optional<TensorView> y_out = {};                   // [..., d] as input: also the norm rounded, when given
  std::optional<bool> enable_pdl = {};
};
/// (y_fp4, block_scale), with output_both_sf_layouts (y_fp4, block_scale, block_scale_unswizzled).
op::Results add_rmsnorm_fp4quant(const AddRmsNormFp4Quant& args);

/// silu(rmsnorm(input)), silu(x) = x / (1 + e^-x). The dtype of `out` decides the format: input's, e4m3 (saturating),
/// or fp4x2 with e4m3 scales for 16 (gs = 1). ValueError: d not a multiple of 16 for fp4x2, a block_scale of another
/// shape or dtype.
struct FusedRmsNormSilu {
  TensorView input;   // [n, d] f16|bf16|f32
  TensorView weight;  // [d], dtype of input or f32
  double eps = 1e-6;
  std::optional<TensorView> out = {};          // [n, d], fp4x2: [n, d/2]
  std::optional<TensorView> block_scale = {};  // [n, d/16] e4m3; allocated when absent; ignored unless out is fp4x2
};
/// out, for fp4x2 (out, block_scale).
op::Results fused_rmsnorm_silu(const FusedRmsNormSilu& args);

}  // namespace flashinfer

#pragma GCC visibility pop
