// SPDX-License-Identifier: Apache-2.0
// Pairs of narrow numbers to pairs of 16 bits, the first in the lower half, exactly: operands of products. Arithmetic
// on pairs rounds each half once.
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

/// The bytes of a (0 to 3) and b (4 to 7) that the hex digits of `which` name, the lowest first.
FI_GLOBAL_FN uint32_t pick_bytes(uint32_t a, uint32_t b, uint32_t which) {
#if defined(__CUDACC__)
  return __byte_perm(a, b, which);
#else
  const uint64_t all = static_cast<uint64_t>(b) << 32 | a;
  uint32_t y = 0;
  for (uint32_t i = 0; i < 4; ++i) y |= static_cast<uint32_t>(all >> (which >> 4 * i & 7) * 8 & 0xff) << 8 * i;
  return y;
#endif
}

/// Both halves of a pair as f32.
template <class T>
FI_GLOBAL_FN void halves_to_f32(uint32_t pair, float& low, float& high) {
  T x, y;
  x.bits = static_cast<uint16_t>(pair), y.bits = static_cast<uint16_t>(pair >> 16);
  low = to_f32(x), high = to_f32(y);
}

/// a * b + c of both halves; bf16 needs sm_80.
template <class T>
FI_GLOBAL_FN uint32_t fma_pairs(uint32_t a, uint32_t b, uint32_t c) {
#if defined(__CUDA_ARCH__)
  uint32_t y;
  if constexpr (kSame<T, f16_t>)
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(y) : "r"(a), "r"(b), "r"(c));
  else
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(y) : "r"(a), "r"(b), "r"(c));
  return y;
#else
  float x[2], by[2], more[2];
  halves_to_f32<T>(a, x[0], x[1]), halves_to_f32<T>(b, by[0], by[1]), halves_to_f32<T>(c, more[0], more[1]);
  for (int i = 0; i < 2; ++i) x[i] = x[i] * by[i] + more[i];
  return pair_of<T>(x[0], x[1]);
#endif
}
/// a * b of both halves. bf16 has no such instruction before sm_90: minus zero is added, which changes nothing.
template <class T>
FI_GLOBAL_FN uint32_t mul_pairs(uint32_t a, uint32_t b) {
  uint32_t y;
#if defined(__CUDA_ARCH__)
  if constexpr (kSame<T, f16_t>)
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
  else
#endif
    y = fma_pairs<T>(a, b, 0x80008000u);
  return y;
}

/// e4m3 in the upper bytes of both halves, the lower ones 0, as f16: exponent and mantissa are those of an f16 that is
/// 2^8 smaller; the product is exact, subnormals too. NaN stays one.
FI_GLOBAL_FN uint32_t upper_e4m3_halves(uint32_t codes) {
  const uint32_t small = (codes >> 1 & 0x3f803f80u) | (codes & 0x80008000u),
                 nan = ((codes & 0x7f007f00u) + 0x01000100u) & 0x80008000u;
  return mul_pairs<f16_t>(small, 0x5c005c00u) | (nan - (nan >> 6));
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define FI_CVT_E4M3_HALVES 1
#endif
/// The two e4m3 in the lower half of `codes` as f16.
FI_GLOBAL_FN uint32_t e4m3_halves(uint32_t codes) {
#if defined(FI_CVT_E4M3_HALVES)
  uint32_t y;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(y) : "h"(static_cast<uint16_t>(codes)));
  return y;
#else
  return upper_e4m3_halves(pick_bytes(codes, 0, 0x1404));
#endif
}
/// The two e5m2 in the lower half of `codes`, which are upper halves of f16.
FI_GLOBAL_FN uint32_t e5m2_halves(uint32_t codes) { return pick_bytes(codes, 0, 0x1404); }

/// Two pairs of f16.
struct TwoPairs {
  uint32_t r[2];
};
/// Four e4m3_t or e5m2_t of a register: pairs (0, 1) and (2, 3); across: (0, 2) and (1, 3).
template <class Q, bool kAcross>
FI_GLOBAL_FN TwoPairs four_halves(uint32_t codes) {
#if defined(FI_CVT_E4M3_HALVES)
  if constexpr (kSame<Q, e4m3_t>) {
    if (kAcross) codes = pick_bytes(codes, 0, 0x3120);
    return {{e4m3_halves(codes), e4m3_halves(codes >> 16)}};
  }
#endif
  const uint32_t x = pick_bytes(codes, 0, kAcross ? 0x2404 : 0x1404),
                 y = pick_bytes(codes, 0, kAcross ? 0x3414 : 0x3424);
  if constexpr (kSame<Q, e4m3_t>)
    return {{upper_e4m3_halves(x), upper_e4m3_halves(y)}};
  else
    return {{x, y}};
}

}  // namespace flashinfer::cu
