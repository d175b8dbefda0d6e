// SPDX-License-Identifier: Apache-2.0
// Config and Params of offsets padded to multiples of 4 rows on a GPU. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/kernels/common/page_table.h"

namespace flashinfer {

struct PadIndptrConfig {
  int wide;  // results are int64, else int32
  int threads;

  static constexpr const char* kName = "flashinfer::PadIndptrConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("wide", wide);
    v("threads", threads);
  }
  friend constexpr bool operator==(const PadIndptrConfig&, const PadIndptrConfig&) = default;
};
struct PadIndptrParams {
  StridedIndices from;                    // [groups + 1]
  void *to, *place;                       // [groups + 1], [rows]
  int64_t to_stride, place_stride, rows;  // in elements
  uint32_t groups;
};

}  // namespace flashinfer
