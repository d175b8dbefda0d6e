// SPDX-License-Identifier: Apache-2.0
// Parameters of the norm kernels with quantised results. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/kernels/common/scale_layout.h"
#include "flashinfer/ops/norm/kernels/params.h"

namespace flashinfer {

/// Results of 8 bits, or of `dtype` where only the activation is fused.
struct NormQuantConfig {
  DType dtype;              // of input and residual
  DType weight;             // `dtype` or f32
  DType out;                // e4m3, e5m2 or `dtype`
  unsigned char fused_add;  // residual is added first and updated
  unsigned char silu;       // applied to the normalised row

  static constexpr const char* kName = "flashinfer::NormQuantConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("weight", weight);
    v("out", out);
    v("fused_add", fused_add);
    v("silu", silu);
  }
  friend constexpr bool operator==(const NormQuantConfig&, const NormQuantConfig&) = default;
};

/// Results in block formats: e2m1 codes with a scale for 16 or 32.
struct NormFp4Config {
  DType dtype, weight;
  unsigned char fused_add, silu;
  unsigned char block;  // 16 or 32
  unsigned char ue8m0;  // scales are powers of two, else e4m3

  static constexpr const char* kName = "flashinfer::NormFp4Config";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("weight", weight);
    v("fused_add", fused_add);
    v("silu", silu);
    v("block", block);
    v("ue8m0", ue8m0);
  }
  friend constexpr bool operator==(const NormFp4Config&, const NormFp4Config&) = default;
};

struct NormQuantParams {
  NormParams norm;
  float scale;         // fp8: 1 / scale multiplies; layernorm: divides; fp4: the global scale
  float* block_scale;  // fp8 blocks: [d/128][row]
  int64_t block_scale_stride;
  void* normed;  // fp8 blocks, optional with fp4: the normalised row in `dtype`; null: none
  int64_t normed_stride[2];
  uint8_t* scales;  // fp4: scale bytes in `layout`, and additionally linear
  uint8_t* linear_scales;
  SfLayout layout;
  int64_t padded_rows;  // of scales; rows after norm.rows get 0
};

}  // namespace flashinfer
