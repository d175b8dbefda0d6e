// SPDX-License-Identifier: Apache-2.0
// Types of the selection, shared by CPU and GPU kernels. Freestanding, without vectors. Functions are constexpr because
// nvcc compiles those for host and device (NVRTC compiles every function for the device).
#pragma once
#include <stdint.h>

#include "flashinfer/kernels/common/select_scratch.h"

namespace flashinfer::cpu {

struct BlockStats {
  float* sums;    // [blocks] of positive elements; NaN or infinite when the block holds such an element
  float* tops;    // [blocks] NaN ignored; -inf when there is nothing else
  float* maxima;  // [groups]; not computed on GPUs
};
constexpr BlockStats stats_at(float* words, int64_t n) {
  return {words, words + stats_blocks(n), words + 2 * stats_blocks(n)};
}

/// The elements above a value: their number, and the sum of the positive ones.
struct Above {
  int64_t count = 0;
  double sum = 0;
};

/// One of the two limits: top-k by count, top-p by sum.
struct Filter {
  int64_t count;  // larger than the number of elements: off
  double sum;     // infinity: off
  constexpr bool allows(const Above& a) const { return a.count < count && a.sum < sum; }
};

// ---- keys: integers in the order of the values (NaN lowest, -0 equal to +0) ----
constexpr uint32_t value_key(float v) {
  if (v != v) return 0;
  const uint32_t u = __builtin_bit_cast(uint32_t, v + 0.0f);
  return u >> 31 ? ~u : u | 0x80000000u;
}
constexpr float key_value(uint32_t k) {
  return __builtin_bit_cast(float, k == 0 ? 0x7fc00000u : k >> 31 ? k & 0x7fffffffu : ~k);
}

/// Value in the upper half, index in the lower: all keys of a row differ. Among equal values the smaller index wins, or
/// the larger one if `large`.
constexpr uint64_t element_key(float v, int64_t index, bool large) {
  const uint32_t i = static_cast<uint32_t>(index);
  return uint64_t{value_key(v)} << 32 | (large ? i : ~i);
}
constexpr int64_t key_index(uint64_t key, bool large) {
  const uint32_t i = static_cast<uint32_t>(key);
  return large ? i : static_cast<uint32_t>(~i);
}

}  // namespace flashinfer::cpu
