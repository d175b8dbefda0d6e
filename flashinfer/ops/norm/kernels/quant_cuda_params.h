// SPDX-License-Identifier: Apache-2.0
// Config and Params of norms with quantised results on a GPU. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/kernels/common/factor_source.h"
#include "flashinfer/kernels/common/scale_layout.h"
#include "flashinfer/ops/norm/kernels/params.h"

namespace flashinfer {

struct NormQuantCudaConfig {
  DType dtype, weight;
  DType out;                // e4m3, e5m2, `dtype` (silu alone), or e2m1 with block scales
  unsigned char fused_add;  // residual is added first and updated
  unsigned char silu;       // applied to the normalised row
  unsigned char block;      // e2m1: 16 or 32 elements; e4m3: 128, each with an f32 scale; else 0
  unsigned char ue8m0;      // e2m1: scales are powers of two, else e4m3
  unsigned char aligned;    // 16-byte pieces of the inputs, and the results of one, are aligned in every row
  int group, threads;       // as NormCudaConfig

  /// Up to 128 registers a thread: left alone, ptxas took 96 for some kernels and spilled.
  constexpr int min_blocks() const { return 512 / threads; }

  static constexpr const char* kName = "flashinfer::NormQuantCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("weight", weight);
    v("out", out);
    v("fused_add", fused_add);
    v("silu", silu);
    v("block", block);
    v("ue8m0", ue8m0);
    v("aligned", aligned);
    v("group", group);
    v("threads", threads);
  }
  friend constexpr bool operator==(const NormQuantCudaConfig&, const NormQuantCudaConfig&) = default;
};

struct NormQuantCudaParams {
  NormParams norm;
  FactorSource scale;  // as NormQuantParams
  float* block_scale;  // [d/128][row]
  int64_t block_scale_stride;
  void* normed;  // the normalised row in `dtype`; null: none
  int64_t normed_stride[2];
  uint8_t* scales;  // in `layout`, and additionally linear
  uint8_t* linear_scales;
  SfLayout layout;
  int64_t padded_rows;  // of scales; rows after norm.rows get 0
};

}  // namespace flashinfer
