// SPDX-License-Identifier: Apache-2.0
// The machine's limits as kernels: streaming reads and arithmetic peaks. Freestanding.
#pragma once
#include <stdint.h>

namespace flashinfer {

struct PeakConfig {
  enum Kind : unsigned char { kRead, kFma, kDot };  // bytes read; f32 FMAs; bf16 pair dots
  Kind kind;
  static constexpr const char* kName = "flashinfer::PeakConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("kind", kind);
  }
  friend constexpr bool operator==(const PeakConfig&, const PeakConfig&) = default;
};

struct PeakParams {
  const char* data;        // kRead: what task t reads is [t * bytes_per_task, ...)
  int64_t bytes_per_task;  // a multiple of 1024
  int64_t iterations;      // kFma, kDot: of 12 independent accumulators
  float* sink;             // one float per task, so that nothing is optimised away
};

}  // namespace flashinfer
