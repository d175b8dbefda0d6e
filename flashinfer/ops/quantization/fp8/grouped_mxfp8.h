// SPDX-License-Identifier: Apache-2.0
// MXFP8 of the rows of several groups, in the layout of masked grouped GEMM.
#pragma once
#include <optional>
#include <string>
#include <utility>

#include "flashinfer/core/tensor.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// The first mask[i] rows of group i as mxfp8_quantize makes them; columns are padded to a multiple of 128 with zeros.
/// Rows from mask[i] on are zero. Both results are permuted views of memory in which groups follow each other: the
/// codes of [B, M, padded K], the scale factors of the 128x4 layout of each group. ValueError: K that is no multiple of
/// 32, a mask outside 0..M.
struct Mxfp8GroupedQuantize {
  TensorView a;     // [B, M, K] f16|bf16
  TensorView mask;  // [B] i32
  std::string backend = "cutile";
  std::optional<TensorView> x_q{};  // C++ only: memory for the results, e4m3 [M, padded K, B]
  std::optional<TensorView> sf{};   // u8 [32, 4, ceil(M / 128), 4, padded K / 128, B]
};
std::pair<Tensor, Tensor> mxfp8_grouped_quantize(const Mxfp8GroupedQuantize& args);

}  // namespace flashinfer

#pragma GCC visibility pop
