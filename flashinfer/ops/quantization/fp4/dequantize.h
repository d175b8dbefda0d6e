// SPDX-License-Identifier: Apache-2.0
// Packed e2m1 codes with block scales as f32: code * scale exactly, times the DECODE scale (1 / gs), rounded once.
#pragma once
#include <optional>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// ValueError: k that is not a multiple of sf_vec_size, scales of another size than the layout has.
struct E2m1ToFloat {
  TensorView e2m1_tensor;                              // [m, k/2] uint8
  TensorView ufp8_scale_tensor;                        // uint8|e4m3, contiguous, as many bytes as the layout has
  std::optional<TensorView> global_scale_tensor = {};  // one f32 that multiplies; 1 when absent
  int64_t sf_vec_size = 16;                            // or 32
  int64_t ufp8_type = 1;                               // 0: powers of two (ue8m0), 1: e4m3
  bool is_sf_swizzled_layout = true;
  bool is_sf_8x4_layout = false;
  std::optional<TensorView> output = {};  // C++ only: memory for the result, f32 [m, k]
};
Tensor e2m1_and_ufp8sf_scale_to_float(const E2m1ToFloat& args);

struct Mxfp4Dequantize {
  TensorView a_fp4;  // [m, k/2] uint8
  TensorView a_sf;   // uint8, contiguous
  int64_t sfLayout = 0;
  std::optional<TensorView> output = {};  // f32 [m, k]
};
Tensor mxfp4_dequantize(const Mxfp4Dequantize& args);

struct Mxfp4DequantizeHost {
  TensorView weight;  // [m, k/2] uint8
  TensorView scale;   // [m, k/group_size] uint8, linear, any strides
  int64_t group_size = 32;
  std::optional<TensorView> output = {};  // f32 [m, k]
};
Tensor mxfp4_dequantize_host(const Mxfp4DequantizeHost& args);

}  // namespace flashinfer

#pragma GCC visibility pop
