// SPDX-License-Identifier: Apache-2.0
// Division and rounding of counts and sizes. Freestanding: kernels of the CPU and the GPU include it.
#pragma once

namespace flashinfer {

/// ceil(x / by), for x >= 0 and by > 0. The type is that of `x + by`, which must be able to hold x + by - 1.
template <class X, class By>
constexpr auto ceil_div(X x, By by) {
  return (x + by - 1) / by;
}

/// The least multiple of `to` that is >= x, for x >= 0 and to > 0. The type is that of `x + to`, which must be able to
/// hold x + to - 1.
template <class X, class To>
constexpr auto round_up(X x, To to) {
  return (x + to - 1) / to * to;
}

}  // namespace flashinfer
