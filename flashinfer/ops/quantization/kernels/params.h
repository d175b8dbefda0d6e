// SPDX-License-Identifier: Apache-2.0
// Parameters of the packing kernel. Freestanding.
#pragma once
#include <stdint.h>

namespace flashinfer {

struct PackBitsConfig {
  int big;  // the first element is the highest bit

  static constexpr const char* kName = "flashinfer::PackBitsConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("big", big);
  }
  friend constexpr bool operator==(const PackBitsConfig&, const PackBitsConfig&) = default;
};

struct PackBitsParams {
  const uint8_t* x;
  uint8_t* y;
  const int64_t* from;  // [segments + 1] first element of a segment
  const int64_t* to;    // [segments + 1] first byte
  int64_t segments, bytes_per_task;
};

}  // namespace flashinfer
