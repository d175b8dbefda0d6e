// SPDX-License-Identifier: Apache-2.0
// 8-bit values with f32 scales: q = x / scale, divided in f32, rounded to nearest even, saturating; x = q * scale. NaN
// stays NaN in 8-bit floats and is 0 in int8.
#pragma once
#include <optional>
#include <string>
#include <utility>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// scale of each group of a row: max(amax, eps) / qmax, qmax 448 (e4m3), 57344 (e5m2) or 127 (int8), rounded up to a
/// power of two with scale_ue8m0. group_size = k is one scale for each token. ValueError: k that is not a multiple of
/// group_size, an eps below 2^-100, scale_tma_aligned without column_major_scales.
struct PerTokenGroupQuant8Bit {
  TensorView x;  // [..., k] f16|bf16|f32
  int64_t group_size = 0;
  double eps = 1e-10;
  std::optional<DType> dst_dtype = {};  // e4m3 when absent
  bool column_major_scales = false;     // memory order of the scales: rows fastest
  bool scale_tma_aligned = false;       // and each column padded to a multiple of four rows
  bool scale_ue8m0 = false;
  std::string backend = "cutile";
  std::optional<TensorView> x_q = {};  // C++ only: memory for the results, [..., k] dst_dtype
  std::optional<TensorView> x_s = {};  // f32 [..., k/group_size]
};
std::pair<Tensor, Tensor> per_token_group_quant_8bit(const PerTokenGroupQuant8Bit& args);

/// One scale for all of x: amax / qmax (1 where all is 0), or the one that is given.
struct PerTensorQuantFp8 {
  TensorView x;                          // [..., k] f16|bf16|f32
  std::optional<TensorView> scale = {};  // one f32, positive
  DType dst_dtype = DType::kF8E4M3;      // or e5m2
  std::optional<TensorView> x_q = {};    // C++ only: memory for the results, [..., k] dst_dtype
  std::optional<TensorView> x_s = {};    // f32 [1]
};
std::pair<Tensor, Tensor> per_tensor_quant_fp8(const PerTensorQuantFp8& args);

}  // namespace flashinfer

#pragma GCC visibility pop
