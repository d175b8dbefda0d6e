// SPDX-License-Identifier: Apache-2.0
// bf16 rows times an NVFP4 weight.
#pragma once
#include <optional>
#include <string>
#include <tuple>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// Converts a weight for mm_bf16_fp4. The CPU uses unpacked weights, so the results are copies of the arguments, and
/// alpha 1 when absent. ValueError: k that is not a multiple of 16, another number of scales.
struct PrepareBf16Fp4Weights {
  TensorView b;                          // [n, k / 2] uint8, two e2m1 codes a byte, the even element low
  TensorView b_descale;                  // e4m3|uint8, pad(n, 128) * pad(k / 16, 4) in tiles of 128x4
  std::optional<TensorView> alpha = {};  // f32 [1]
  std::string backend = "auto";
  int64_t block_size = 16;
  std::optional<TensorView> b_prepared = {}, b_descale_prepared = {},
                            alpha_prepared = {};  // C++ only: memory for the results
};
std::tuple<Tensor, Tensor, Tensor> prepare_bf16_fp4_weights(const PrepareBf16Fp4Weights& args);

/// out = alpha * sum over k of a * (e2m1 * scale), f32 sums in one order, rounded once.
struct MmBf16Fp4 {
  TensorView a;          // [m, k] bf16
  TensorView b;          // [n, k / 2] uint8
  TensorView b_descale;  // as above
  std::optional<TensorView> alpha = {};
  std::string backend = "auto";
  std::optional<DType> out_dtype = {};  // bf16, f16 or f32; bf16 when absent
  std::optional<TensorView> out = {};   // [m, n]
  int64_t block_size = 16;
  bool enable_pdl = true;  // CUDA only
};
Tensor mm_bf16_fp4(const MmBf16Fp4& args);

}  // namespace flashinfer

#pragma GCC visibility pop
