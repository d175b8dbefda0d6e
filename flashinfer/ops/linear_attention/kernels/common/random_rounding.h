// SPDX-License-Identifier: Apache-2.0
// Rounding to f16 and e4m3 with random bits, one element at a time. Freestanding.
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

/// x as e4m3, the low 16 bits of `word` being added to the highest of the bits that it has not; below 2^-6 these are
/// the bits below 2^-9. What is above 448 becomes 448; NaN stays NaN.
inline e4m3_t round_e4m3_randomly(float x, uint32_t word) {
  const uint32_t u = scalar_detail::bits(x), sign = u >> 31 << 7, magnitude = u & 0x7fffffffu;
  const int exponent = static_cast<int>(magnitude >> 23), drop = exponent < 121 ? 141 - exponent : 20;
  uint32_t code = 0;
  if (magnitude > 0x7f800000u) {
    code = 0x7f;
  } else if (magnitude >= 0x43e00000u) {
    code = 0x7e;
  } else if (drop <= 40) {  // else less than 2^-16 of the last place
    const uint64_t digits = (magnitude & 0x7fffffu) | 0x800000u;
    const auto places = static_cast<uint32_t>((digits + (uint64_t{word & 0xffffu} << (drop - 16))) >> drop);
    code = exponent < 121 ? places : (static_cast<uint32_t>(exponent - 121) << 3) + places;
  }
  e4m3_t y;
  y.bits = static_cast<uint8_t>(sign | code);
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
