// SPDX-License-Identifier: Apache-2.0
// Layouts of weights and scales for tile-programmed GPU kernels: bytes move, nothing is computed. The products of this
// library take logical layouts; these are for weights shared with such kernels.
#pragma once
#include <optional>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// Linear scales to tiles of 128x4 with padding of 0; with three dimensions each matrix separately.
struct BlockScaleInterleave {
  TensorView unswizzled_sf;            // [m, c] or [e, m, c] uint8|bf16
  std::optional<TensorView> out = {};  // flat, contiguous, [e * pad(m, 128) * pad(c, 4)]
};
Tensor nvfp4_block_scale_interleave(const BlockScaleInterleave& args);

/// Permutes the rows within each block of 32 (epilogue_tile_m % 128 == 0) or 16: row i moves to row i % p * 8 + i / p,
/// p = block / 8. ValueError: m that is not a multiple of the block.
struct ShuffleMatrixA {
  TensorView input_tensor;  // [m, k], any type
  int64_t epilogue_tile_m = 0;
  std::optional<TensorView> output = {};  // C++ only: memory for the result, as input_tensor
};
Tensor shuffle_matrix_a(const ShuffleMatrixA& args);

/// The same shuffle of linear scales, then nvfp4_block_scale_interleave. ValueError: m that is not a multiple of 128.
struct ShuffleMatrixSfA {
  TensorView input_tensor;  // [m, c] uint8|e4m3
  int64_t epilogue_tile_m = 0;
  int64_t num_elts_per_sf = 16;           // or 32; elements of a scale, ignored
  std::optional<TensorView> output = {};  // flat [m * pad(c, 4)], contiguous
};
Tensor shuffle_matrix_sf_a(const ShuffleMatrixSfA& args);

/// out[2i] = x[i], out[2i+1] = x[m/2 + i]. ValueError: odd m.
struct ReorderRowsForGatedActGemm {
  TensorView x;  // [m, k], any type
  std::optional<TensorView> output = {};
};
Tensor reorder_rows_for_gated_act_gemm(const ReorderRowsForGatedActGemm& args);

/// [m, k] to [k / blockK, m, blockK].
struct ConvertToBlockLayout {
  TensorView input_tensor;  // [m, k], any type
  int64_t blockK = 0;
  std::optional<TensorView> output = {};
};
Tensor convert_to_block_layout(const ConvertToBlockLayout& args);

}  // namespace flashinfer

#pragma GCC visibility pop
