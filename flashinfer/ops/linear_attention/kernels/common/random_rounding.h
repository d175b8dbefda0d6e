// SPDX-License-Identifier: Apache-2.0
// Rounding to f16 with random bits, one element at a time. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

/// x as f16, rounded up with the probability of the part cut off: the low 13 bits of `word` are added to the 13 bits
/// that f16 has not. What is below 2^-14 then is 0; 2^16 and above is infinite; NaN stays NaN.
inline f16_t round_randomly(float x, uint32_t word) {
  const uint32_t u = scalar_detail::bits(x), sign = u >> 31 << 15;
  const uint32_t magnitude = u & 0x7fffffffu;
  f16_t y;
  if (magnitude > 0x7f800000u) {
    y.bits = static_cast<uint16_t>(sign | 0x7e00u);
    return y;
  }
  const uint32_t sum = magnitude + (word & 0x1fffu), exponent = sum >> 23;
  if (exponent < 113)
    y.bits = static_cast<uint16_t>(sign);
  else if (exponent > 142)
    y.bits = static_cast<uint16_t>(sign | 0x7c00u);
  else
    y.bits = static_cast<uint16_t>(sign | ((sum >> 13) - (112u << 10)));
  return y;
}

/// Word `e` % 4 of Philox4x32 with key `seed` and counter e / 4.
inline uint32_t philox_word(uint64_t seed, uint64_t e, int64_t rounds) {
  uint32_t c0 = static_cast<uint32_t>(e / 4), c1 = static_cast<uint32_t>(e / 4 >> 32), c2 = 0, c3 = 0;
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int64_t round = 0; round < rounds; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
    const uint64_t a = uint64_t{0xD2511F53u} * c0, b = uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(b);
    c2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(a);
  }
  const uint32_t w = static_cast<uint32_t>(e % 4);
  return w == 0 ? c0 : w == 1 ? c1 : w == 2 ? c2 : c3;
}

}  // namespace flashinfer
