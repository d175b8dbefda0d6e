// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): ten rounds of multiply and xor
// make four 32-bit numbers of a 128-bit counter and a 64-bit key. The counter is (offset / 4, subsequence), each 64
// bits, low word first.
#pragma once
#include <stdint.h>

namespace flashinfer::cpu {

struct PhiloxBlock {
  uint32_t word[4];
};

constexpr PhiloxBlock philox(uint64_t seed, uint64_t subsequence, uint64_t block) {
  uint32_t c0 = static_cast<uint32_t>(block), c1 = static_cast<uint32_t>(block >> 32);
  uint32_t c2 = static_cast<uint32_t>(subsequence), c3 = static_cast<uint32_t>(subsequence >> 32);
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * c0, b = uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(b);
    c2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(a);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

/// Number `offset` of a subsequence as a float in (0, 1]: bits * 2^-32 + 2^-33, rounded.
constexpr float philox_uniform(uint64_t seed, uint64_t subsequence, uint64_t offset) {
  const uint32_t bits = philox(seed, subsequence, offset / 4).word[offset % 4];
  return static_cast<float>(bits) * 0x1p-32f + 0x1p-33f;
}

}  // namespace flashinfer::cpu
