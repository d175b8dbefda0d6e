// SPDX-License-Identifier: Apache-2.0
// Parameters of the strided copy. Freestanding.
#pragma once
#include <stdint.h>

namespace flashinfer {

struct StridedCopyConfig {
  int bytes;  // of an element: 1, 2, 4, 8 or 16, its alignment on both sides
  int threads;

  static constexpr const char* kName = "flashinfer::StridedCopyConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("bytes", bytes);
    v("threads", threads);
  }
  friend constexpr bool operator==(const StridedCopyConfig&, const StridedCopyConfig&) = default;
};
inline constexpr int kStridedCopyAxes = 6;
struct StridedCopyParams {
  const char* from;
  char* to;
  uint32_t count, axes;
  uint32_t size[kStridedCopyAxes];                                     // the fastest axis first, in elements
  int64_t from_stride[kStridedCopyAxes], to_stride[kStridedCopyAxes];  // in bytes
};

}  // namespace flashinfer
