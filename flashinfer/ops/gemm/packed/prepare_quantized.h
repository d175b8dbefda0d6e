// SPDX-License-Identifier: Apache-2.0
// Packing of FP8 and FP4 weights, so that products with few rows read them at memory speed.
#pragma once
#include <optional>
#include <utility>

#include "flashinfer/core/tensor.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// Packs a weight into panels of 16 columns (ops/gemm/kernels/packed_layout.h): as many bytes as before, with k padded
/// to a multiple of 32 and n to one of 16, and a header of 64 bytes per panel. mm_fp8, gemm_fp8_nt_groupwise,
/// gemm_fp8_nt_blockscaled, mm_mxfp8, mm_fp4 and cutlass_fused_moe accept the result in place of the weight (a [n, k]
/// or a transposed [k, n] one), and the second result in place of its scale factors; f32 block scales stay unchanged.
/// Results are bitwise those of the unpacked weight, for every m. ValueError: k not contiguous, k that is not a
/// multiple of the block, another number of scale factors.
struct PrepareQuantizedWeights {
  TensorView b;  // [n, k] e4m3, or [n, k / 2] bytes of two e2m1 codes; or a stack [e, n, ...] of them
  std::optional<TensorView> b_descale{};   // their scale factors of a byte (MXFP8, NVFP4, MXFP4), matrix after matrix
  std::optional<int64_t> block_size{};     // elements for a scale factor: 16 or 32; 32 for e4m3, else 16, when absent
  bool is_sf_swizzled_layout = true;       // b_descale: 128x4, else linear [n, k / block_size]
  std::optional<TensorView> b_prepared{};  // [panels, lines, 64] as b; C++ only: memory for the results
  std::optional<TensorView> b_descale_prepared{};  // [panels, k / block_size rounded up to 4, 16] as b_descale
};
/// The second is undefined without b_descale.
std::pair<Tensor, Tensor> prepare_quantized_weights(const PrepareQuantizedWeights& args);

}  // namespace flashinfer

#pragma GCC visibility pop
