// SPDX-License-Identifier: Apache-2.0
// Arithmetic that is bitwise equal to the CPU kernels': no contraction of a * b + c (NVRTC would fuse it), and the
// polynomials of kernels/cpu/exp.h and of the CPU sampler, on one number. For results that must not depend on the back
// end, such as the token of a sampler. 15 to 25 instructions where the special function unit takes one.
#pragma once
#include "flashinfer/kernels/cuda/cu.h"

#if (defined(__CUDA_FTZ) && __CUDA_FTZ) || (defined(__CUDA_PREC_DIV) && !__CUDA_PREC_DIV) || \
    (defined(__CUDA_PREC_SQRT) && !__CUDA_PREC_SQRT)
#error "FLASHINFER_EXTRA_CUDAFLAGS: fast math, --ftz, --prec-div and --prec-sqrt would change the CPU's bits given here"
#endif

namespace flashinfer::cu {

FI_GLOBAL_FN float mul_rn(float a, float b) {
#if defined(__CUDACC__)
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}
FI_GLOBAL_FN float add_rn(float a, float b) {
#if defined(__CUDACC__)
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}
FI_GLOBAL_FN double mul_rn(double a, double b) {
#if defined(__CUDACC__)
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}
FI_GLOBAL_FN double add_rn(double a, double b) {
#if defined(__CUDACC__)
  return __dadd_rn(a, b);
#else
  return a + b;
#endif
}

/// e^x as cpu::exp where it has a fused multiply-add.
FI_GLOBAL_FN float exp_exact(float x) {
  constexpr float kC[] = {0.4999999403953552f, 0.1666651964187622f, 0.04166840761899948f, 0.008368914015591145f,
                          0.001381418900564313f};
  x = -105.0f > x ? -105.0f : x;  // a NaN stays
  x = 89.0f < x ? 89.0f : x;
  const float n = rintf(mul_rn(x, 1.44269504f));
  const float r = fmaf(-n, -2.12194440e-4f, fmaf(-n, 0.693359375f, x));
  float p = kC[4];
#pragma unroll
  for (int i = 3; i >= 0; --i) p = fmaf(p, r, kC[i]);
  const float y = add_rn(fmaf(mul_rn(r, r), p, r), 1.0f);
  if (x != x) return x;
  const int whole = static_cast<int>(n), half = whole >> 1;
  const auto power = [](int e) { return __builtin_bit_cast(float, static_cast<uint32_t>(e + 127) << 23); };
  return mul_rn(mul_rn(y, power(half)), power(whole - half));
}

/// log2 of a normal positive number, bitwise equal to the CPU sampler's.
FI_GLOBAL_FN float log2_exact(float x) {
  const uint32_t shifted = __builtin_bit_cast(uint32_t, x) - 0x3f3504f3u;
  const float e = static_cast<float>(static_cast<int32_t>(shifted) >> 23);
  const float m = __builtin_bit_cast(float, (shifted & 0x7fffffu) + 0x3f3504f3u);
  const float s = add_rn(m, -1.0f) / add_rn(m, 1.0f), q = mul_rn(s, s);
  float p = 0.32059890f;
  p = add_rn(0.41219858f, mul_rn(q, p));
  p = add_rn(0.57707802f, mul_rn(q, p));
  p = add_rn(0.96179669f, mul_rn(q, p));
  p = add_rn(2.88539008f, mul_rn(q, p));
  return add_rn(e, mul_rn(s, p));
}

}  // namespace flashinfer::cu
