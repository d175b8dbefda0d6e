// SPDX-License-Identifier: Apache-2.0
// Config of SwiGLU to MXFP8 on a GPU; its Params are the CPU's. Freestanding.
#pragma once
#include "flashinfer/ops/quantization/kernels/swiglu_params.h"

namespace flashinfer {

struct SwigluMxfp8CudaConfig {
  DType dtype;
  unsigned char backward;
  short aligned;  // pieces of 16 bytes of the inputs
  int threads;

  static constexpr const char* kName = "flashinfer::SwigluMxfp8CudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("backward", backward);
    v("aligned", aligned);
    v("threads", threads);
  }
  friend constexpr bool operator==(const SwigluMxfp8CudaConfig&, const SwigluMxfp8CudaConfig&) = default;
};

}  // namespace flashinfer
