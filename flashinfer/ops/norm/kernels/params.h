// SPDX-License-Identifier: Apache-2.0
// Config and Params of the norm kernels. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

/// One artifact for each (dtypes, kind): widths, strides and eps are run-time values (specialising the width gained
/// nothing measurable on rows of 576 to 8192 elements: the loop is bound by loads).
struct NormConfig {
  DType dtype;              // of input, residual and output
  DType weight;             // `dtype` or f32
  unsigned char gemma;      // weight + 1
  unsigned char fused_add;  // residual is added first and updated

  static constexpr const char* kName = "flashinfer::NormConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("weight", weight);
    v("gemma", gemma);
    v("fused_add", fused_add);
  }
  friend constexpr bool operator==(const NormConfig&, const NormConfig&) = default;
};

struct LayerNormConfig {
  DType dtype;  // of input and output; gamma and beta are f32

  static constexpr const char* kName = "flashinfer::LayerNormConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
  }
  friend constexpr bool operator==(const LayerNormConfig&, const LayerNormConfig&) = default;
};

/// rmsnorm on a GPU. `group` threads process a row, 16 bytes of input each at a time: which thread adds which element,
/// and so the order of the sum, depends on dtype and d alone.
struct NormCudaConfig {
  DType dtype, weight;
  unsigned char gemma, fused_add;
  int aligned;  // every row and the weight are 16-byte aligned and d is a whole number of 16-byte pieces: wide loads
  int group;    // 8 or 32 threads, or the whole block
  int threads;  // of a block

  static constexpr const char* kName = "flashinfer::NormCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("weight", weight);
    v("gemma", gemma);
    v("fused_add", fused_add);
    v("aligned", aligned);
    v("group", group);
    v("threads", threads);
  }
  friend constexpr bool operator==(const NormCudaConfig&, const NormCudaConfig&) = default;
};
struct LayerNormCudaConfig {
  DType dtype;
  unsigned char aligned;
  short group;
  int threads;

  /// Without a bound ptxas 13.0 spills 4 to 12 bytes for sm_90a, with 512 / threads as many for sm_120a.
  constexpr int min_blocks() const { return 384 / threads; }

  static constexpr const char* kName = "flashinfer::LayerNormCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("aligned", aligned);
    v("group", group);
    v("threads", threads);
  }
  friend constexpr bool operator==(const LayerNormCudaConfig&, const LayerNormCudaConfig&) = default;
};

/// Rows are addressed as [outer, inner] with one stride each, which covers [..., d] inputs of rank 2 and 3.
struct NormParams {
  const void* input;
  void* residual;  // fused_add only, read and written
  const void* weight;
  const void* beta;  // layernorm only
  void* out;
  int64_t rows, d, inner;                                      // row r is (r / inner, r % inner)
  int64_t input_stride[2], residual_stride[2], out_stride[2];  // in elements
  int64_t rows_per_task;
  double eps;
};

}  // namespace flashinfer
