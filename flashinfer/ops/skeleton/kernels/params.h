// SPDX-License-Identifier: Apache-2.0
// What the kernels need to know, on both devices. Freestanding, as everything in a folder `kernels`: it is compiled
// when a call needs it, by the host's compiler or by NVRTC.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

/// What a kernel is compiled for: its template argument. No padding: its bytes are the key of the kernel.
struct SkeletonConfig {
  DType dtype;

  static constexpr const char* kName = "flashinfer::SkeletonConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
  }
  friend constexpr bool operator==(const SkeletonConfig&, const SkeletonConfig&) = default;
};

/// On a GPU.
struct SkeletonCudaConfig {
  DType dtype;
  bool aligned;   // rows begin at 16 bytes and fill whole ones: wide loads
  short threads;  // of a block

  static constexpr const char* kName = "flashinfer::SkeletonCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("aligned", aligned);
    v("threads", threads);
  }
  friend constexpr bool operator==(const SkeletonCudaConfig&, const SkeletonCudaConfig&) = default;
};

/// What it is launched with.
struct SkeletonParams {
  const void* input;
  void* out;
  int64_t rows, d;
  int64_t input_stride, out_stride;  // of a row, in elements
  int64_t rows_per_task;             // on the CPU
  float peak;
};

}  // namespace flashinfer
