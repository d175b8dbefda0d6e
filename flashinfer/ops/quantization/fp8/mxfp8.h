// SPDX-License-Identifier: Apache-2.0
// MXFP8: e4m3 codes, and a power of two for 32 elements of a row. scale = 2^e, the least >= amax(block) / 448 (byte e +
// 127; subnormal quotients up to 2^-127 give byte 0), code = e4m3(x / scale), saturating, rounded to nearest even. Byte
// 0 implies codes of 0; an infinity or NaN in a block gives byte 255 (NaN).
#pragma once
#include <optional>
#include <string>
#include <utility>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// ValueError: k that is not a multiple of 32, an invalid alignment, inconsistent dtypes and shapes.
struct Mxfp8Quantize {
  TensorView input;                   // [..., k] f16|bf16|f32; rank >= 2
  bool is_sf_swizzled_layout = true;  // 128x4, else linear
  int64_t alignment = 32;             // columns of x_q are padded to a multiple of it, with 0
  std::optional<bool> enable_pdl = {};
  std::string backend = "cuda";
  std::optional<int64_t> sf_swizzle_layout = {};  // SfLayout; instead of is_sf_swizzled_layout
  std::optional<TensorView> x_q = {};             // C++ only: memory for the results, e4m3 [..., pad(k, alignment)]
  std::optional<TensorView> sf = {};              // uint8 [bytes of the layout], contiguous
};
std::pair<Tensor, Tensor> mxfp8_quantize(const Mxfp8Quantize& args);

/// f32 of codes and scales, exact (but for subnormal results).
struct Mxfp8Dequantize {
  TensorView input;         // [m, k] e4m3|uint8
  TensorView scale_tensor;  // uint8, contiguous, as many bytes as the layout has
  bool is_sf_swizzled_layout = true;
  std::optional<int64_t> sf_swizzle_layout = {};
  std::optional<TensorView> output = {};  // C++ only: memory for the result, f32 [m, k]
};
Tensor mxfp8_dequantize_host(const Mxfp8Dequantize& args);

}  // namespace flashinfer

#pragma GCC visibility pop
