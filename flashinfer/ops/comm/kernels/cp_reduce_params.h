// SPDX-License-Identifier: Apache-2.0
// Config and Params of the kernel that adds the ranks' partial attention outputs. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

inline constexpr int kCpRanks = 64;

struct CpReduceConfig {
  DType dtype;

  static constexpr const char* kName = "flashinfer::CpReduceConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
  }
  friend constexpr bool operator==(const CpReduceConfig&, const CpReduceConfig&) = default;
};
struct CpReduceParams {
  const void* source[kCpRanks];  // each rank's rows [rows, d]
  const float* weights;          // [rows, ranks]; a rank of weight 0 is not read
  void* out;                     // [rows, d]
  int64_t ranks, rows, d, rows_per_task;
};

}  // namespace flashinfer
