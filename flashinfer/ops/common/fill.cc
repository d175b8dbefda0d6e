// SPDX-License-Identifier: Apache-2.0
// Not inline: sanitizer builds compile ops at -O0, and this with optimisation (CMakeLists.txt).
#include "flashinfer/ops/common/fill.h"

#include <cmath>
#include <numbers>

namespace flashinfer::ops {

double uniform(uint64_t seed, int64_t i) {
  return (static_cast<double>(mix(seed + static_cast<uint64_t>(i) * 2) >> 11) + 0.5) * 0x1p-53;
}

double normal(uint64_t seed, int64_t i) {
  const double u = uniform(seed, i), v = uniform(~seed, i);
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

}  // namespace flashinfer::ops
