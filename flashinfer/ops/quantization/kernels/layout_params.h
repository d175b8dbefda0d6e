// SPDX-License-Identifier: Apache-2.0
// Parameters of the kernels for GPUs that only move or pack. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/kernels/common/page_table.h"

namespace flashinfer {

struct InterleaveCudaConfig {
  short item;     // bytes of an element: 1 or 2
  short aligned;  // eight elements of a row are aligned
  int threads;

  static constexpr const char* kName = "flashinfer::InterleaveCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("item", item);
    v("aligned", aligned);
    v("threads", threads);
  }
  friend constexpr bool operator==(const InterleaveCudaConfig&, const InterleaveCudaConfig&) = default;
};
struct InterleaveParams {
  const char* from;
  char* to;
  uint32_t matrices, rows, columns;   // without padding
  uint32_t tiles, row_units;          // of four columns; of eight rows, the padding's included
  uint32_t shuffle;                   // rows of a block that are permuted (kernels/cpu/block.h); 0: none
  int64_t matrix_stride, row_stride;  // in elements
  int64_t to_matrix_stride;           // in bytes
};

struct PackBitsCudaConfig {
  short big, aligned;
  int threads;

  static constexpr const char* kName = "flashinfer::PackBitsCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("big", big);
    v("aligned", aligned);
    v("threads", threads);
  }
  friend constexpr bool operator==(const PackBitsCudaConfig&, const PackBitsCudaConfig&) = default;
};
struct PackBitsCudaParams {
  const uint8_t* x;
  uint8_t* y;
  int64_t n;
};
/// Segment s: elements [from[s], from[s + 1]) of x, bytes [to[s], to[s + 1]) of y.
struct PackSegmentsCudaParams {
  const uint8_t* x;
  uint8_t* y;
  StridedIndices from, to;
  int64_t segments, bytes;
};

}  // namespace flashinfer
