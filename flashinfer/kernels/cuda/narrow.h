// SPDX-License-Identifier: Apache-2.0
// f32 to e4m3, e5m2, int8 and e2m1, and e2m1 to f32: nearest, ties to the even code, saturating, as
// kernels/cpu/narrow.h bit for bit. NaN gives 0x7f in the 8-bit floats and 0 in int8; e2m1 has none (callers check the
// block's scale). GPUs convert 8-bit floats in pairs from sm_89 on, e2m1 from sm_100 on (targets with a suffix); before
// that a multiply-add rounds: with 2^(23 - M) times the value's power of two added, the last place of the sum is that
// of the code.
#pragma once
#include "flashinfer/core/scalar.h"
#include "flashinfer/kernels/cuda/cu.h"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define FI_CVT_FP8 1
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000 &&                             \
    (defined(__CUDA_ARCH_SPECIFIC__) || defined(__CUDA_ARCH_FAMILY_SPECIFIC__) ||  \
     defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__CUDA_ARCH_FEAT_SM103_ALL) || \
     defined(__CUDA_ARCH_FEAT_SM110_ALL) || defined(__CUDA_ARCH_FEAT_SM120_ALL) || \
     defined(__CUDA_ARCH_FEAT_SM121_ALL))
#define FI_CVT_FP4 1
#endif

namespace flashinfer::cu {

FI_GLOBAL_FN uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }
FI_GLOBAL_FN float float_of(uint32_t u) { return __builtin_bit_cast(float, u); }

/// The larger of two magnitudes; NaN beats all numbers.
FI_GLOBAL_FN float max_magnitude(float a, float b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(fabsf(a)), "f"(fabsf(b)));
  return y;
#else
  const uint32_t u = bits_of(a) & 0x7fffffffu, v = bits_of(b) & 0x7fffffffu;
  return float_of(u < v ? v : u);
#endif
}

/// Code of a magnitude that is at most the largest value of a float with E exponent and M mantissa bits, bias
/// 2^(E-1) - 1. Bits above the code's are unspecified.
template <int E, int M>
FI_GLOBAL_FN uint32_t encode_magnitude(float a) {
  constexpr uint32_t kFirst = 128 - ((1u << (E - 1)) - 1);  // biased exponent, in f32, of the smallest normal number
  const uint32_t u = bits_of(a) & 0x7f800000u, power = u < kFirst << 23 ? kFirst << 23 : u;
  const uint32_t sum = bits_of(fmaf(float_of(power), static_cast<float>(1u << (23 - M)), a));
  return sum + (sum >> (23 - M)) - ((kFirst + 23 - M) << M);
}
template <int E, int M>
FI_GLOBAL_FN uint32_t encode_byte(float x, float largest) {
  const uint32_t code = encode_magnitude<E, M>(fminf(fabsf(x), largest));
  return x != x ? 0x7fu : (code & 0x7fu) | (bits_of(x) >> 24 & 0x80u);
}

/// Two codes, the first in the low byte.
template <class Q>
FI_GLOBAL_FN uint32_t narrow_pair(float a, float b) {
#if defined(FI_CVT_FP8)
  uint16_t y;
  if constexpr (kSame<Q, e4m3_t>)
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %2, %1;" : "=h"(y) : "f"(a), "f"(b));
  else
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %2, %1;" : "=h"(y) : "f"(a), "f"(b));
  return y;
#else
  if constexpr (kSame<Q, e4m3_t>)
    return encode_byte<4, 3>(a, 448.0f) | encode_byte<4, 3>(b, 448.0f) << 8;
  else
    return encode_byte<5, 2>(a, 57344.0f) | encode_byte<5, 2>(b, 57344.0f) << 8;
#endif
}
FI_GLOBAL_FN uint32_t narrow_int8(float x) {
  const float y = fminf(fmaxf(x, -128.0f), 127.0f) + 12582912.0f;  // 1.5 * 2^23: the integer is in the low bits
  return x != x ? 0 : bits_of(y) & 0xffu;
}
/// Four codes of Q: e4m3_t, e5m2_t or int8_t.
template <class Q>
FI_GLOBAL_FN uint32_t narrow_four(float a, float b, float c, float d) {
  if constexpr (kSame<Q, int8_t>)
    return narrow_int8(a) | narrow_int8(b) << 8 | narrow_int8(c) << 16 | narrow_int8(d) << 24;
  else
    return narrow_pair<Q>(a, b) | narrow_pair<Q>(c, d) << 16;
}
FI_GLOBAL_FN uint32_t narrow_e4m3(float x) { return narrow_pair<e4m3_t>(x, 0.0f) & 0xffu; }
/// N codes, a multiple of 4, into N / 4 words.
template <class Q, int N>
FI_GLOBAL_FN void narrow(const float (&x)[N], uint32_t (&y)[N / 4]) {
#pragma unroll
  for (int i = 0; i < N / 4; ++i) y[i] = narrow_four<Q>(x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]);
}

/// Eight e2m1 codes, the first in the lowest bits.
FI_GLOBAL_FN uint32_t narrow_e2m1(const float* x) {
#if defined(FI_CVT_FP4)
  uint32_t y;
  asm("{\n .reg .b8 a, b, c, d;\n"
      " cvt.rn.satfinite.e2m1x2.f32 a, %2, %1;\n cvt.rn.satfinite.e2m1x2.f32 b, %4, %3;\n"
      " cvt.rn.satfinite.e2m1x2.f32 c, %6, %5;\n cvt.rn.satfinite.e2m1x2.f32 d, %8, %7;\n"
      " mov.b32 %0, {a, b, c, d};\n}"
      : "=r"(y)
      : "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]), "f"(x[4]), "f"(x[5]), "f"(x[6]), "f"(x[7]));
  return y;
#else
  uint32_t y = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const uint32_t code = encode_magnitude<2, 1>(fminf(fabsf(x[i]), 6.0f));
    y |= ((code & 7u) | (bits_of(x[i]) >> 28 & 8u)) << (4 * i);
  }
  return y;
#endif
}

/// e2m1 of the low four bits: exponent and mantissa have the bits of a float whose exponent is 126 lower.
FI_GLOBAL_FN float e2m1_value(uint32_t code) {
  return float_of(bits_of(float_of((code & 7u) << 22) * 0x1p126f) | (code & 8u) << 28);
}

}  // namespace flashinfer::cu
