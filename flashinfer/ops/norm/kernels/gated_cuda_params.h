// SPDX-License-Identifier: Apache-2.0
// Configs of norms with gates, and of diffusion transformers, on a GPU. Freestanding.
#pragma once
#include "flashinfer/ops/norm/kernels/diffusion_params.h"
#include "flashinfer/ops/norm/kernels/gated_params.h"

namespace flashinfer {

struct GatedNormCudaConfig {
  DType dtype;            // as GatedNormConfig
  unsigned char aligned;  // 16-byte pieces of all rows and columns
  short group;
  int threads;

  static constexpr const char* kName = "flashinfer::GatedNormCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("aligned", aligned);
    v("group", group);
    v("threads", threads);
  }
  friend constexpr bool operator==(const GatedNormCudaConfig&, const GatedNormCudaConfig&) = default;
};

struct DitNormCudaConfig {
  DType dtype;
  unsigned char affine;  // as DitNormConfig
  short aligned;
  int group, threads;

  static constexpr const char* kName = "flashinfer::DitNormCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("affine", affine);
    v("aligned", aligned);
    v("group", group);
    v("threads", threads);
  }
  friend constexpr bool operator==(const DitNormCudaConfig&, const DitNormCudaConfig&) = default;
};

struct DitNormCudaParams {
  DitNormParams norm;
  const float* input_factor;  // null: norm.input_factor
};

}  // namespace flashinfer
