// SPDX-License-Identifier: Apache-2.0
// NVFP4 results of operators that write beside each other: rows of codes, and scales at some rows of a larger tensor.
#pragma once
#include "flashinfer/core/tensor.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// Writes row r of `input` (all extents but the first as one, n elements) as n / 2 bytes of codes to `data`, and its
/// n / 16 scales to row scale_start_index + r of `scale`, by the formulas of fp4.h; other rows of `scale`, and its
/// padding, stay as they are. An extension: FlashInfer's FP4Tensor is (data, scale, scale_start_index). ValueError: the
/// last extent is no multiple of 16, shapes that do not fit, rows beyond those of `scale`, a global_scale that is not
/// positive and normal in f32.
struct Nvfp4QuantizeInto {
  TensorView input;         // [m, ..., k] f16|bf16|f32; rank >= 2
  double global_scale = 0;  // gs
  TensorView data;          // u8 [m, ..., k/2]
  TensorView scale;         // e4m3 [rows % 128 == 0, pad(n / 16, 4)], tiles of 128x4, contiguous
  int64_t scale_start_index = 0;
};
void nvfp4_quantize_into(const Nvfp4QuantizeInto& args);

}  // namespace flashinfer

#pragma GCC visibility pop
