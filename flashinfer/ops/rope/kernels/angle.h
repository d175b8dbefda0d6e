// SPDX-License-Identifier: Apache-2.0
// cos and sin of an angle, for every device: the same arithmetic, so the same values up to contraction. Freestanding.
#pragma once
#include <math.h>
#include <stdint.h>

/// Qualifiers of a function of CPU and GPU kernels: NVRTC compiles every function for the device, nvcc does not.
#if defined(__CUDACC__)
#define FI_ROPE_FN __host__ __device__ inline
#else
#define FI_ROPE_FN inline
#endif

namespace flashinfer {

/// cos and sin of t: reduced in double to [-pi/4, pi/4] and a quadrant, then Taylor sums in f32 (first dropped terms
/// 2e-9 and 2e-10). Branch-free, so that the loop over angles vectorises.
FI_ROPE_FN void cos_sin(double t, float* c, float* s) {
  constexpr double kPi = 3.14159265358979323846;
  t -= 2 * kPi * rint(t * (0.5 / kPi));
  const double n = rint(t * (2 / kPi));
  const int32_t q = static_cast<int32_t>(n);
  const float r = static_cast<float>(t - n * (kPi / 2)), u = r * r;
  const float sr = r + r * u * (-1.6666667e-1f + u * (8.3333333e-3f + u * (-1.9841270e-4f + u * 2.7557319e-6f)));
  const float cr =
      1.0f + u * (-0.5f + u * (4.1666667e-2f + u * (-1.3888889e-3f + u * (2.4801587e-5f + u * -2.7557319e-7f))));
  const float a = q & 1 ? cr : sr, b = q & 1 ? sr : cr;  // sin, cos up to sign
  *s = q & 2 ? -a : a;
  *c = (q + 1) & 2 ? -b : b;
}

}  // namespace flashinfer
