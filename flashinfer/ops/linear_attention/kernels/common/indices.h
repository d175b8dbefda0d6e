// SPDX-License-Identifier: Apache-2.0
// Index arrays of kernels. Freestanding.
#pragma once
#include <stdint.h>

namespace flashinfer {

/// An index for each row, int32 or int64, strides in elements; null: row i has index i.
struct GdnIndices {
  const void* data;
  int64_t stride;
  bool wide;

  int64_t at(int64_t i) const {
    if (!data) return i;
    return wide ? static_cast<const int64_t*>(data)[i * stride] : static_cast<const int32_t*>(data)[i * stride];
  }
};

}  // namespace flashinfer
