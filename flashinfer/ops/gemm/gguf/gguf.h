// SPDX-License-Identifier: Apache-2.0
// Weights in the block formats of GGUF files, multiplied without dequantising them first: Q4_0, Q4_1, Q8_0 (32 elements
// a block), Q4_K, Q6_K (256).
//
// Quants are multiplied exactly (bf16 dot products), a block's sum is scaled by its f32 scale, and sums of blocks are
// added in order: the result is that of the dequantised weight in f32, not of one rounded to bf16. One order whatever
// m, threads and layout of the weight.
//
// With quantize_a the rows of a are converted to blocks of 32 8-bit integers too: a block's sum is exact in integers
// and is scaled by (scale of a * scale of the weight). llama.cpp computes it this way; it is twice as fast and costs
// some 0.4 % rms of the result.
#pragma once
#include <optional>
#include <string>

#include "flashinfer/core/tensor.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// out[m, n] = sum over k of a[m, k] * weight[n, k]
struct MmGguf {
  TensorView a;         // [m, k] bf16, any strides
  TensorView b_blocks;  // [n, bytes of k elements] u8, rows as in the file; or the result of prepare_gguf_weights
  std::string format;   // "Q4_0", "Q4_1", "Q8_0", "Q4_K", "Q6_K"
  std::optional<TensorView> out;   // [m, n] of out_dtype; allocated when absent
  DType out_dtype = DType::kBF16;  // bf16, f16 or f32
  bool quantize_a = false;         // each 32 of a row of a: q = round(x * 127 / amax), value q * amax / 127
};
/// ValueError: k that is not a multiple of the block, rows of another length, a packed weight of another k or format.
Tensor mm_gguf(const MmGguf& args);

/// Packs rows of Q4_0, Q4_1 or Q8_0 blocks into panels of 16 columns (ops/gemm/kernels/gguf_layout.h), u8 [ceil(n /
/// 16), lines, 64], with as many bytes as before plus a header per panel: a GEMV with such a weight runs at memory
/// speed.
struct PrepareGgufWeights {
  TensorView b_blocks;            // [n, bytes of k elements] u8
  std::string format;             // "Q4_0", "Q4_1", "Q8_0"
  std::optional<TensorView> out;  // as returned; allocated when absent
};
Tensor prepare_gguf_weights(const PrepareGgufWeights& args);

/// out[n, k] = the values of the blocks, rounded once.
struct GgufDequantize {
  TensorView blocks;              // [n, bytes of k elements] u8
  std::string format;             // as MmGguf
  DType out_dtype = DType::kF32;  // f32, bf16 or f16
  std::optional<TensorView> out;  // [n, k]
};
Tensor gguf_dequantize(const GgufDequantize& args);

}  // namespace flashinfer

#pragma GCC visibility pop
