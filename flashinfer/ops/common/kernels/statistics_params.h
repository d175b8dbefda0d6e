// SPDX-License-Identifier: Apache-2.0
// Parameters of the kernel that prints statistics of a tensor. Freestanding.
#pragma once
#include "flashinfer/core/scalar.h"

namespace flashinfer {

struct StatisticsConfig {
  int threads;
  static constexpr const char* kName = "flashinfer::StatisticsConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("threads", threads);
  }
};

struct StatisticsParams {
  const void* data;  // contiguous
  int64_t numel, id;
  DType dtype;  // f32 f16 bf16 i32 i64 u8
};

}  // namespace flashinfer
