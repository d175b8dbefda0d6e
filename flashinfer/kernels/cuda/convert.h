// SPDX-License-Identifier: Apache-2.0
// Converts element types to f32 and back with the GPU's cvt instructions (core/scalar.h has the types and, in integers,
// the same roundings for the host). bf16 to f32 is a shift; f32 to bf16 is an instruction from sm_80 on. e4m3 and e5m2
// need sm_89; before it they are shifted into wider floats. No kernel stores them.
#pragma once
#include "flashinfer/core/scalar.h"
#include "flashinfer/kernels/cuda/cu.h"

namespace flashinfer::cu {

FI_GLOBAL_FN float to_f32(float x) { return x; }
FI_GLOBAL_FN float to_f32(int16_t x) { return static_cast<float>(x); }
FI_GLOBAL_FN float to_f32(double x) { return static_cast<float>(x); }
FI_GLOBAL_FN float to_f32(bf16_t x) { return __builtin_bit_cast(float, static_cast<uint32_t>(x.bits) << 16); }
FI_GLOBAL_FN float to_f32(f16_t x) {
#if defined(__CUDACC__)
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
#elif defined(__F16C__) || defined(__aarch64__)
  return static_cast<float>(__builtin_bit_cast(_Float16, x.bits));
#else
  return static_cast<float>(x);
#endif
}
#if defined(__CUDACC__)
/// Exponent and mantissa have the bits of a float whose exponent is 120 lower; the product is exact, subnormals too.
FI_GLOBAL_FN float to_f32(e4m3_t x) {
  const uint32_t magnitude = x.bits & 0x7fu, sign = static_cast<uint32_t>(x.bits & 0x80u) << 24;
  const float y = magnitude == 0x7fu ? __builtin_bit_cast(float, 0x7ff00000u)
                                     : __builtin_bit_cast(float, magnitude << 20) * 0x1p120f;
  return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, y) | sign);
}
/// e5m2 is the upper half of a float16.
FI_GLOBAL_FN float to_f32(e5m2_t x) {
  f16_t y;
  y.bits = static_cast<uint16_t>(x.bits << 8);
  return to_f32(y);
}
#else
FI_GLOBAL_FN float to_f32(e4m3_t x) { return static_cast<float>(x); }
FI_GLOBAL_FN float to_f32(e5m2_t x) { return static_cast<float>(x); }
#endif

/// Converts N elements at once: GPUs from sm_89 on convert 8-bit floats in pairs.
template <int N, class T>
FI_GLOBAL_FN void widen(const T (&x)[N], float (&y)[N]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  if constexpr (sizeof(T) == 1 && N % 2 == 0) {
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      const uint16_t pair = static_cast<uint16_t>(x[i].bits | x[i + 1].bits << 8);
      uint32_t halves;
      if constexpr (kSame<T, e4m3_t>)
        asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(pair));
      else
        asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(halves) : "h"(pair));
      f16_t low, high;
      low.bits = static_cast<uint16_t>(halves), high.bits = static_cast<uint16_t>(halves >> 16);
      y[i] = to_f32(low), y[i + 1] = to_f32(high);
    }
  } else
#endif
  {
#pragma unroll
    for (int i = 0; i < N; ++i) y[i] = to_f32(x[i]);
  }
}

template <class T>
FI_GLOBAL_FN T from_f32(float x) {
#if defined(__CUDA_ARCH__)
  if constexpr (kSame<T, f16_t>) {
    T y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
  } else if constexpr (kSame<T, bf16_t>) {
    T y;
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
#else
    const uint32_t u = __builtin_bit_cast(uint32_t, x);  // round to nearest even
    y.bits = static_cast<uint16_t>(x != x ? u >> 16 | 0x40u : (u + 0x7fffu + (u >> 16 & 1u)) >> 16);
#endif
    return y;
  } else
#endif
    return static_cast<T>(x);
}

}  // namespace flashinfer::cu
