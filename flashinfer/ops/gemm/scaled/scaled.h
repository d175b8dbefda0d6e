// SPDX-License-Identifier: Apache-2.0
// Products of narrow matrices with scales. Layouts of scale factors: kernels/common/scale_layout.h.
//
// One-byte scale factors (mxfp8, nvfp4, mxfp4) are multiplied into the operands, exactly; f32 block scales multiply the
// sum of each block of k, in order. As in op.h, an element's sum has one order whatever m, the other rows and threads
// are.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "flashinfer/core/tensor.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// out[m, n] = alpha * a[m, :] . b[:, n]
struct MmFp8 {
  TensorView a;  // [m, k] e4m3 or e5m2
  TensorView
      b;  // a plain [n, k] weight, or one from prepare_quantized_weights or prepare_low_latency_gemm_weights (e4m3)
  std::optional<TensorView> alpha;  // one f32; 1 when absent
  DType out_dtype = DType::kBF16;   // bf16
  std::optional<TensorView> out;    // [m, n]
  std::string backend = "trtllm_low_latency";
};
/// ValueError: extents that are inconsistent, both operands e5m2, alpha of more than one value, another out_dtype.
Tensor mm_fp8(const MmFp8& args);

/// out[m, n] = a[m, :] . b[:, n], elements e4m3 times 2^(scale - 127), one scale for 32 along k
struct MmMxfp8 {
  TensorView a;          // [m, k] e4m3, k a multiple of 32
  TensorView b;          // [k, n] e4m3, column-major: the transposed view of a [n, k] weight; or a packed weight
  TensorView a_descale;  // [padded m * padded k/32] u8 ue8m0, 128x4 or 8x4
  TensorView b_descale;  // [padded n * padded k/32] u8 ue8m0, 128x4; or prepare_quantized_weights's
  std::optional<TensorView> out;   // [m, n]
  DType out_dtype = DType::kBF16;  // bf16 or f16
  bool use_8x4_sf_layout = false;  // of a_descale
  std::string backend = "auto";    // "trtllm": rows of b and their scales are shuffled (shuffle_matrix_a), n % 32 = 0
};
Tensor mm_mxfp8(const MmMxfp8& args);

/// The same for each i of a batch; scales of a matrix follow those of the one before.
struct BmmMxfp8 {
  TensorView A;                // [b, m, k] e4m3
  TensorView B;                // [b, k, n] e4m3, column-major
  TensorView A_scale;          // u8 ue8m0, 128x4, b matrices
  TensorView B_scale;          // u8 ue8m0, 128x4, b matrices
  DType dtype = DType::kBF16;  // bf16 or f16
  std::optional<TensorView> out;
  std::string backend = "auto";
};
Tensor bmm_mxfp8(const BmmMxfp8& args);

/// out[m, n] = alpha * sum over k of (a * scale of a)(b * scale of b), e2m1 elements, two a byte along k, the even one
/// low. NVFP4: e4m3 scales for 16. MXFP4: ue8m0 scales for 32.
struct MmFp4 {
  TensorView a;  // [m, k / 2] u8 or e2m1x2
  TensorView b;  // [k / 2, n] of the same, column-major: the transposed view of a [n, k / 2] weight; or a packed one
  TensorView a_descale;             // padded m x padded k / block, 128x4 (or 8x4), as fp4_quantize returns it
  TensorView b_descale;             // padded n x padded k / block, 128x4; a transposed view of it is taken too; or
                                    // prepare_quantized_weights's
  std::optional<TensorView> alpha;  // one f32, 1 / (global scale of a * of b); 1 when absent
  DType out_dtype = DType::kBF16;   // bf16 or f16
  std::optional<TensorView> out;    // [m, n]
  int64_t block_size = 16;          // 16 with use_nvfp4, else 32
  bool use_8x4_sf_layout = false;   // of a_descale
  std::string backend = "auto";     // "trtllm": rows of b and their scales are shuffled (shuffle_matrix_a), n % 32 = 0
  bool use_nvfp4 = true;
  bool enable_pdl = true;  // CUDA only
};
/// ValueError: extents, dtypes, sizes of the scales, a block size of the other format.
Tensor mm_fp4(const MmFp4& args);

/// out[m, n] = sum over blocks of k of a_scale * b_scale * (a[m, block] . b[n, block])
struct GemmFp8NtGroupwise {
  TensorView a;        // [m, k] e4m3 or e5m2
  TensorView b;        // [n, k] e4m3 or e5m2, or from prepare_quantized_weights
  TensorView a_scale;  // f32, "K": [m / gm, k / gk]; "MN": [k / gk, m / gm]; extents rounded up
  TensorView b_scale;  // f32, "K": [n / gn, k / gk]; "MN": [k / gk, n / gn]
  std::optional<std::string>
      scale_major_mode;  // "MN" or "K"; with backend trtllm None: a_scale [m, k / gk], b_scale [k / gk, n / gn]
  int64_t mma_sm = 1;    // 1 or 2, CUDA only
  std::vector<int64_t> scale_granularity_mnk = {1, 128, 128};
  std::optional<TensorView> out;   // [m, n]
  std::optional<DType> out_dtype;  // bf16 or f16; out's, else bf16
  std::string backend = "cutlass";
};
Tensor gemm_fp8_nt_groupwise(const GemmFp8NtGroupwise& args);

/// gemm_fp8_nt_groupwise with scales of 128 x 128 blocks on both sides.
struct GemmFp8NtBlockscaled {
  TensorView a, b;
  TensorView a_scale, b_scale;
  std::string scale_major_mode = "MN";
  int64_t mma_sm = 1;
  std::optional<TensorView> out;
  std::optional<DType> out_dtype;
};
Tensor gemm_fp8_nt_blockscaled(const GemmFp8NtBlockscaled& args);

/// out = input . weight^T of FP8 with f32 scales for 128 along k. bf16 operands are quantised here, each 128 elements
/// of a row with scale = max(amax, 1e-4) / 448 and codes e4m3(x / scale). ValueError: an FP8 input with a bf16 weight,
/// FP8 without scales or bf16 with, k that is not a multiple of 128, n that is not a multiple of 64.
struct Fp8BlockscaleGemmSm90 {
  TensorView input;                             // [m, k] bf16 or e4m3
  TensorView weight;                            // [n, k] bf16 or e4m3
  std::optional<TensorView> input_scale = {};   // f32 [m, k / 128]
  std::optional<TensorView> weight_scale = {};  // f32 [n, k / 128] or [n / 128, k / 128], rounded up
  std::optional<TensorView> out = {};           // [m, n]
  std::optional<DType> out_dtype = {};          // bf16 (when absent, or out's) or f16
};
Tensor fp8_blockscale_gemm_sm90(const Fp8BlockscaleGemmSm90& args);

}  // namespace flashinfer

#pragma GCC visibility pop
