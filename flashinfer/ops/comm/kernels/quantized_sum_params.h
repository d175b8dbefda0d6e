// SPDX-License-Identifier: Apache-2.0
// Config and Params of the kernels of the all-reduce of e4m3 codes. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/ops/comm/kernels/params.h"

namespace flashinfer {

struct QuantizedSumConfig {
  DType dtype;  // of the elements

  static constexpr const char* kName = "flashinfer::QuantizedSumConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
  }
  friend constexpr bool operator==(const QuantizedSumConfig&, const QuantizedSumConfig&) = default;
};
/// `n` elements in groups of `group`, the last one maybe shorter.
struct QuantizedSumParams {
  const void* x;                    // what is quantised, to codes[0] and scales[0]
  uint8_t* codes[kAllReduceRanks];  // of each rank
  float* scales[kAllReduceRanks];
  int ranks;
  int64_t n, group, groups_per_task;
  void* out;  // the sum
};

}  // namespace flashinfer
