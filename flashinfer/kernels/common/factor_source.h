// SPDX-License-Identifier: Apache-2.0
// Scales of quantisers as kernels for GPUs read them. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

/// A factor that the host knows, or the elements of a tensor, read by the kernel: a replayed graph reads them again.
struct FactorSource {
  const void* data;    // null: `value`
  int64_t batch, row;  // strides in elements
  float value;
  DType dtype;             // f32, f16 or bf16
  unsigned char inverted;  // 1 / element is meant
};

}  // namespace flashinfer
