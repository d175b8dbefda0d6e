// SPDX-License-Identifier: Apache-2.0
// Dense matrix products: f32 accumulation, one rounding at the end.
//
// Every output element is summed over k in one order that depends on nothing else: row i of a product is bitwise the
// same for m = 1, 8, 512, for any number of threads, and for a packed or unpacked weight.
#pragma once
#include <optional>
#include <string>

#include "flashinfer/core/tensor.h"
#include "flashinfer/ops/gemm/dense/batched.h"
#include "flashinfer/ops/gemm/dense/router.h"
#include "flashinfer/ops/gemm/gguf/gguf.h"
#include "flashinfer/ops/gemm/grouped/grouped.h"
#include "flashinfer/ops/gemm/grouped/scaled_batches.h"
#include "flashinfer/ops/gemm/packed/prepare_quantized.h"
#include "flashinfer/ops/gemm/scaled/bf16_fp4.h"
#include "flashinfer/ops/gemm/scaled/scaled.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// out[m, n] = sum over k of a[m, k] * b[k, n] (+ bias[n], in f32, before the rounding)
struct MmBf16 {
  TensorView a;  // [m, k] bf16, any strides (k contiguous is faster)
  TensorView b;  // [k, n] bf16, any strides, usually the transposed view of a [n, k] weight; or a packed
                 // weight from prepare_mm_weights
  std::optional<TensorView> bias;  // [n] bf16
  bool pdl = false;                // CUDA only
  std::optional<TensorView> out;   // [m, n] of out_dtype; allocated when absent
  DType out_dtype = DType::kBF16;  // bf16, f16 or f32
  std::string backend = "cudnn";   // FlashInfer's names of GPU kernels are accepted; the CPU has one kernel
};
/// ValueError: inconsistent extents or dtypes, a packed weight of another k or of unknown layout, an unknown backend.
Tensor mm_bf16(const MmBf16& args);

/// out[i] = A[i] . B[i]
struct BmmBf16 {
  TensorView A;                    // [b, m, k] bf16, any strides
  TensorView B;                    // [b, k, n] bf16, any strides
  std::optional<TensorView> out;   // [b, m, n] of out_dtype; allocated when absent
  DType out_dtype = DType::kBF16;  // bf16, f16 or f32
  std::string backend = "cudnn";
};
Tensor bmm_bf16(const BmmBf16& args);

/// out[i] = (A[i] . B[i]) * A_scale * B_scale
struct BmmFp8 {
  TensorView A;                   // [b, m, k] e4m3 or e5m2, any strides
  TensorView B;                   // [b, k, n] e4m3 or e5m2, but not both e5m2; any strides
  TensorView A_scale;             // one f32
  TensorView B_scale;             // one f32
  DType dtype = DType::kBF16;     // bf16 or f16
  std::optional<TensorView> out;  // [b, m, n] of dtype; allocated when absent
  std::string backend = "cublas";
};
Tensor bmm_fp8(const BmmFp8& args);

/// Packs a weight for the CPU kernels, once: [ceil(n / 16), 1 + ceil(k / 2), 32] bf16, panels of 16 columns, k pair by
/// k pair, each panel after a header line (ops/gemm/kernels/params.h). The result is an ordinary tensor (it can be
/// saved, recorded, sliced along panels) that mm_bf16 accepts as `b`; a GEMV reads it at memory speed, and products
/// with many rows save the packing of an unpacked weight at every call (about 10 %).
struct PrepareMmWeights {
  TensorView b;                   // [k, n] bf16, any strides
  std::optional<TensorView> out;  // [ceil(n / 16), 1 + ceil(k / 2), 32] bf16, contiguous; allocated when absent
};
Tensor prepare_mm_weights(const PrepareMmWeights& args);

}  // namespace flashinfer

#pragma GCC visibility pop
