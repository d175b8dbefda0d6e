// SPDX-License-Identifier: Apache-2.0
// Config and Params of the activation kernels. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

enum class Activation : unsigned char { kSilu, kGelu, kGeluTanh };

struct ActConfig {
  DType dtype;
  Activation kind;

  static constexpr const char* kName = "flashinfer::ActConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("kind", kind);
  }
  friend constexpr bool operator==(const ActConfig&, const ActConfig&) = default;
};

/// The same on a GPU.
struct ActCudaConfig {
  DType dtype;
  Activation kind;
  short aligned;  // every half row is 16-byte aligned and d is a whole number of 16-byte pieces: wide loads
  int threads;    // of a block

  static constexpr const char* kName = "flashinfer::ActCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("kind", kind);
    v("aligned", aligned);
    v("threads", threads);
  }
  friend constexpr bool operator==(const ActCudaConfig&, const ActCudaConfig&) = default;
};

/// Rows of any rank: `outer` leading axes, the last of them running fastest. The launcher merges axes that are evenly
/// spaced in both tensors, so there is nearly always one.
struct ActParams {
  static constexpr int kMaxOuter = 7;
  const void* input;
  void* out;
  int64_t rows, d, rows_per_task;
  int64_t size[kMaxOuter], input_stride[kMaxOuter], out_stride[kMaxOuter];  // strides in elements
  int32_t outer;
};

}  // namespace flashinfer
