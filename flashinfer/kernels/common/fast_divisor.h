// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace flashinfer {

/// Divides 32-bit numbers by `by` > 0 with a product and shifts: for divisors that the host knows and a loop of a
/// kernel meets. After Granlund and Montgomery, "Division by invariant integers using multiplication" (1994).
struct FastDivisor {
  unsigned factor = 1;
  unsigned char first_shift = 0, last_shift = 0;
  constexpr FastDivisor() = default;  // by 1
  constexpr explicit FastDivisor(unsigned by) {
    unsigned bits = 0;  // ceil(log2(by))
    while (bits < 32 && (1ull << bits) < by) ++bits;
    factor = static_cast<unsigned>((((1ull << bits) - by) << 32) / by + 1);
    first_shift = bits > 0, last_shift = static_cast<unsigned char>(bits > 0 ? bits - 1 : 0);
  }
  constexpr unsigned divide(unsigned x) const {
    const unsigned high = static_cast<unsigned>((1ull * factor * x) >> 32);
    return (high + ((x - high) >> first_shift)) >> last_shift;
  }
};

}  // namespace flashinfer
