// SPDX-License-Identifier: Apache-2.0
// NVFP4 of silu(gate) * up and of the tokens of experts. Codes and scales as in fp4.h; silu_and_mul's result is rounded
// to the input's dtype before it is quantised. ValueError as there, and for a mask outside [0, m].
#pragma once
#include <optional>
#include <utility>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

struct SiluNvfp4Quantize {
  TensorView input;          // [..., 2k] f16|bf16, gate first; rank >= 2, leading dimensions are m rows
  TensorView global_scale;   // gs, one f32
  int64_t sf_vec_size = 16;  // only 16
  bool is_sf_swizzled_layout = true;
  bool is_sf_8x4_layout = false;
  std::optional<bool> enable_pdl = {};
  op::Value nvfp4_4over6 = {};
  std::optional<TensorView> x_q = {};  // C++ only: memory for the results, uint8 [m, k/2]
  std::optional<TensorView> sf = {};   // uint8, as fp4_quantize's
};
std::pair<Tensor, Tensor> silu_and_mul_nvfp4_quantize(const SiluNvfp4Quantize& args);

/// The first mask[b] rows of each expert b; codes and scales of the others are 0. Results are views whose last axis is
/// the expert: codes of memory [b, m, k/2], scales of memory [b, tiles of 128x4].
struct Fp4GroupedQuantize {
  TensorView a;            // [b, m, k] f16|bf16 (silu form: [b, m, 2k])
  TensorView mask;         // [b] i32
  TensorView a_global_sf;  // [b] f32, or one
  op::Value nvfp4_4over6 = {};
  std::optional<TensorView> x_q = {};  // uint8 [m, k/2, b]
  std::optional<TensorView> sf = {};   // e4m3 [32, 4, pad(m, 128)/128, 4, pad(k/16, 4)/4, b]
};
std::pair<Tensor, Tensor> scaled_fp4_grouped_quantize(const Fp4GroupedQuantize& args);
std::pair<Tensor, Tensor> silu_and_mul_scaled_nvfp4_experts_quantize(const Fp4GroupedQuantize& args);

}  // namespace flashinfer

#pragma GCC visibility pop
