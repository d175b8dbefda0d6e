// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdint.h>

namespace probe {

struct ExactConfig {
  int threads;
  static constexpr const char* kName = "probe::ExactConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("threads", threads);
  }
  friend constexpr bool operator==(const ExactConfig&, const ExactConfig&) = default;
};
struct ExactParams {
  const float *x, *positive;
  float *exp, *log2;
  int64_t n;  // a multiple of 64
};

}  // namespace probe
