// SPDX-License-Identifier: Apache-2.0
// NVFP4 and MXFP4: two e2m1 codes a byte, the even element in the low nibble, and a scale byte for 16 or 32 of a row.
//   NVFP4: gs = 448 * 6 / amax(tensor) is the usual global scale; scale = e4m3(amax(block) * (gs * (1/6))),
//     code = e2m1(x * m) with m = min(1 / (scale * (1 / gs)), FLT_MAX); element = code * scale / gs. A block whose
//     scale is 0 gets codes 0.
//   MXFP4: scale = 2^e, the least power of two >= amax(block) / 6 (kernels/common/scale_layout.h),
//     code = e2m1(x / scale).
// Each step is rounded once to nearest even in f32, conversions saturate: FlashInfer's exact mode
// (FLASHINFER_DISABLE_FP4_QUANT_FAST_MATH=1), bit for bit. e4m3 input: x * (6 / gs) is rounded to f16 first. A NaN
// makes its block's scale NaN. Scales are in tiles of 128x4 or 8x4 with padding of 0, or linear
// (kernels/common/scale_layout.h).
//
// All throw ValueError for a k that is not a multiple of the block, a scale that is not positive and normal,
// inconsistent shapes and dtypes, and a recipe 4 over 6 with ue8m0 scales, blocks of 32 or e4m3 input. nvfp4_4over6 is
// None or the number of a recipe by which each block takes the better of the scales amax / 6 and amax / 4: bit 0 is 1,
// bit 1 says that gs was made with 256 for 448, bits 2 and 3 how errors are compared (0 absolute, 1 squares), bit 4
// that they are compared without scaling back; -1 is the environment's (FLASHINFER_NVFP4_4OVER6*).
#pragma once
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

struct Fp4Quantize {
  TensorView input;                             // [..., k] f16|bf16, with e4m3 scales also e4m3; rank >= 2
  std::optional<TensorView> global_scale = {};  // gs, one f32; 1 when absent
  int64_t sf_vec_size = 16;                     // or 32, elements that share a scale; others: NotImplementedError
  bool sf_use_ue8m0 = false;                    // scales 2^e (of gs * amax / 6), else e4m3
  bool is_sf_swizzled_layout = true;
  bool is_sf_8x4_layout = false;
  bool is_global_scale_inversed = false;  // global_scale is 1 / gs
  std::optional<bool> enable_pdl = {};    // CUDA only
  std::string backend = "cuda";
  op::Value nvfp4_4over6 = {};
  std::optional<TensorView> x_q = {};  // C++ only: memory for the results, uint8 [..., k/2]
  std::optional<TensorView> sf = {};   // uint8 [rows padded, k/v padded], contiguous; linear: [m, k/v]
};
std::pair<Tensor, Tensor> fp4_quantize(const Fp4Quantize& args);

struct Nvfp4Quantize {
  TensorView a;                    // [..., k] f16|bf16|e4m3; rank >= 2
  op::ScalarOrTensor a_global_sf;  // gs: a number, one f32, or one f32 a row
  int64_t sfLayout = 0;            // SfLayout: 0 128x4, 1 8x4, 2 linear
  bool do_shuffle =
      false;  // rows of codes and scales shuffled for weights (epilogue tile 128; m % 128 == 0), scales in 128x4
  int64_t sf_vec_size = 16;  // only 16
  std::optional<bool> enable_pdl = {};
  std::string backend = "cuda";
  /// gs of a row is 448 * 6 / amax(row), and a_global_sf must be 1 / (448 * 6) (ValueError when it differs by 1e-3 of
  /// itself; a recipe 4 over 6 may have 256 for 448); a row of zeros has scale 0. f16 and bf16 only.
  bool per_token_activation = false;
  /// i32, one or more for each row: the rows that are needed, -1: none. All rows are quantised; with
  /// per_token_activation only.
  std::optional<TensorView> expanded_idx_to_permuted_idx = {};
  std::optional<TensorView> out_scale = {};  // one f32, a factor of the returned row scales
  op::Value nvfp4_4over6 = {};
  std::optional<TensorView> x_q = {};
  std::optional<TensorView> sf = {};
  std::optional<TensorView> per_token_scale = {};  // f32 [m]: 1 / gs of the row * out_scale
};
/// (x_q, sf), with per_token_activation (x_q, sf, per_token_scale).
op::Results nvfp4_quantize(const Nvfp4Quantize& args);

/// The global scale that nvfp4_quantize takes. Per tensor: gs = min(448 * 6 / amax, FLT_MAX), or `global_scale`; per
/// token: the factor 1 / (448 * 6) of each row's amax. ValueError: a tensor without elements whose amax is needed, a
/// global_scale that is not positive and normal or that is given per token. A recipe 4 over 6 may have 256 for 448.
struct MakeNvfp4GlobalScale {
  TensorView input_tensor;  // f16|bf16|f32; rank >= 1
  bool per_token_activation = false;
  std::optional<double> global_scale = {};
  op::Value nvfp4_4over6_config = {};
  std::optional<TensorView> out = {};  // C++ only: memory for the result, f32 [1]
};
Tensor make_nvfp4_global_scale(const MakeNvfp4GlobalScale& args);

struct Nvfp4BatchedQuantize {
  TensorView a;            // [b, m, k] f16|bf16
  TensorView a_global_sf;  // gs, one f32 or one for each batch
  int64_t sf_vec_size = 16;
  op::Value nvfp4_4over6 = {};
  std::optional<TensorView> x_q = {};  // uint8 [b, m, k/2]
  std::optional<TensorView> sf = {};   // uint8 [b, pad(m, 128) * pad(k/v, 4)], each batch in 128x4
};
std::pair<Tensor, Tensor> nvfp4_batched_quantize(const Nvfp4BatchedQuantize& args);

struct Mxfp4Quantize {
  TensorView a;  // [..., k] f16|bf16, k % 32 == 0; rank >= 2
  std::string backend = "cuda";
  std::optional<bool> enable_pdl = {};
  int64_t sfLayout = 0;
  std::optional<TensorView> x_q = {};  // uint8 [..., k/2]
  std::optional<TensorView> sf = {};   // uint8, as fp4_quantize's
};
std::pair<Tensor, Tensor> mxfp4_quantize(const Mxfp4Quantize& args);

}  // namespace flashinfer

#pragma GCC visibility pop
