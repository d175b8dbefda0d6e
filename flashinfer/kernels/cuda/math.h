// SPDX-License-Identifier: Apache-2.0
// The GPU's special functions: one instruction each, about 16 a clock on an SM (a quarter of the multiply-add rate).
// Errors are those of NVIDIA's PTX manual; the emulated versions use libm, so values differ from a GPU's within these
// bounds.
#pragma once
#include "flashinfer/kernels/cuda/cu.h"

namespace flashinfer::cu {

inline constexpr float kLog2e = 1.44269504088896340736f, kLn2 = 0.693147180559945309417f;

/// 2^x to 2^-22.5 of its value; results below 2^-126 are 0; 2^-inf is 0.
FI_CU float exp2_fast(float x) {
#if defined(__CUDACC__)
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  emu::api->count(emu::Count::kSpecial, 1);
  return x < -126.0f ? 0.0f : exp2f(x);
#endif
}
/// log2 x to 2^-22 absolutely; of 0: -inf.
FI_CU float log2_fast(float x) {
#if defined(__CUDACC__)
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  emu::api->count(emu::Count::kSpecial, 1);
  return log2f(x);
#endif
}
/// 1 / x to one unit in the last place.
FI_CU float rcp_fast(float x) {
#if defined(__CUDACC__)
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  emu::api->count(emu::Count::kSpecial, 1);
  return 1.0f / x;
#endif
}
/// 1 / sqrt x to 2^-22.4 of its value. (An IEEE square root or division is a call for its rare cases, which costs
/// registers around it.)
FI_CU float rsqrt_fast(float x) {
#if defined(__CUDACC__)
  float y;
  asm("rsqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  emu::api->count(emu::Count::kSpecial, 1);
  return 1.0f / sqrtf(x);
#endif
}
/// tanh x to 2^-11 of its value: enough for a soft cap whose result is rounded to 16 bits, not for f32 outputs.
FI_CU float tanh_fast(float x) {
#if defined(__CUDACC__)
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  emu::api->count(emu::Count::kSpecial, 1);
  return tanhf(x);
#endif
}
/// e^x.
FI_GLOBAL_FN float exp_fast(float x) { return exp2_fast(x * kLog2e); }
/// 1 / (1 + e^-x)
FI_GLOBAL_FN float sigmoid_fast(float x) { return rcp_fast(1.0f + exp_fast(-x)); }

}  // namespace flashinfer::cu
