// SPDX-License-Identifier: Apache-2.0
// Pairs of narrow numbers to pairs of 16 bits, the first in the lower half, exactly: operands of products.
#pragma once
#include "flashinfer/kernels/cuda/convert.h"

namespace flashinfer::cu {

/// Two f32 to two T, rounded; on any GPU (pack2 of mma.h needs sm_80).
template <class T>
FI_GLOBAL_FN uint32_t pair_of(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  uint32_t y;
  if constexpr (kSame<T, f16_t>)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
#else
  return static_cast<uint32_t>(from_f32<T>(low).bits) | static_cast<uint32_t>(from_f32<T>(high).bits) << 16;
#endif
}

/// The two e4m3 in the lower half of `codes` as f16.
FI_GLOBAL_FN uint32_t e4m3_halves(uint32_t codes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  uint32_t y;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(y) : "h"(static_cast<uint16_t>(codes)));
  return y;
#else
  e4m3_t low, high;
  low.bits = static_cast<uint8_t>(codes), high.bits = static_cast<uint8_t>(codes >> 8);
  return pair_of<f16_t>(to_f32(low), to_f32(high));
#endif
}
/// The two e5m2 in the lower half of `codes`, which are upper halves of f16.
FI_GLOBAL_FN uint32_t e5m2_halves(uint32_t codes) { return (codes & 0xffu) << 8 | (codes & 0xff00u) << 16; }

/// Both halves of a pair as f32.
template <class T>
FI_GLOBAL_FN void halves_to_f32(uint32_t pair, float& low, float& high) {
  T x, y;
  x.bits = static_cast<uint16_t>(pair), y.bits = static_cast<uint16_t>(pair >> 16);
  low = to_f32(x), high = to_f32(y);
}

}  // namespace flashinfer::cu
