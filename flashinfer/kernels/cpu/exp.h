// SPDX-License-Identifier: Apache-2.0
// Exponentials and activations made of them, on vectors of f32. Polynomials are our own minimax fits over the reduced
// range; errors were measured against double on 2^22 points of each range and are held by tests/kernels/vec_test.cc.
//   exp2, exp     <= 1.3 ulp (1.5 without a fused multiply-add); -inf -> 0, above the f32 range -> inf, subnormal
//                 results kept, NaN -> NaN
//   tanh, erf     <= 2 ulp
//   silu, gelu_tanh, gelu_erf: small relative error in the tails too (never 1 - something near 1)
#pragma once
#include "flashinfer/kernels/cpu/vec.h"

namespace flashinfer::cpu {

namespace detail {
/// c[0] + x c[1] + x^2 c[2] + ...
template <int N>
FI_VEC_INLINE Vec horner(Vec x, const float (&c)[N]) {
  Vec p = splat(c[N - 1]);
#pragma GCC unroll 16
  for (int i = N - 2; i >= 0; --i) p = fma(p, x, splat(c[i]));
  return p;
}
/// `max` and `min` return their second operand when one is NaN: NaN passes through.
FI_VEC_INLINE Vec clamp(Vec x, float lo, float hi) { return min(splat(hi), max(splat(lo), x)); }
}  // namespace detail

/// 2^x.
FI_VEC_INLINE Vec exp2(Vec x) {
  constexpr float kC[] = {0.6931471824645996f,  0.24022647738456726f,   0.055503323674201965f,
                          0.00961843691766262f, 0.0013398875016719103f, 0.00015353360504377633f};
  x = detail::clamp(x, -151.0f, 129.0f);
  const Vec n = round(x), f = x - n;
  return ldexp(fma(f, detail::horner(f, kC), splat(1.0f)), n);
}

/// 2^x for x <= 0, to 2.3 ulp, which is enough for softmax: 8 operations instead of 13 with AVX-512, where vreduceps
/// gives x - floor(x) and vscalefps multiplies by 2^floor(x). -inf -> 0, NaN -> NaN.
FI_VEC_INLINE Vec exp2_falling(Vec x) {
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
  constexpr float kC[] = {0.9999999403953552f,  0.6931530833244324f,  0.24015361070632935f,
                          0.05582631751894951f, 0.00898933969438076f, 0.0018775766948238015f};
  return {_mm512_scalef_ps(detail::horner(Vec{_mm512_reduce_ps(x.r, 0x09)}, kC).r, x.r)};
#else
  return exp2(x);
#endif
}

/// e^x.
FI_VEC_INLINE Vec exp(Vec x) {
  constexpr float kC[] = {0.4999999403953552f, 0.1666651964187622f, 0.04166840761899948f, 0.008368914015591145f,
                          0.001381418900564313f};
  x = detail::clamp(x, -105.0f, 89.0f);
  const Vec n = round(x * splat(1.44269504f));
  // ln 2 in two parts, the first with 9 trailing zero bits, so that n * high is exact.
  const Vec r = fnma(n, splat(-2.12194440e-4f), fnma(n, splat(0.693359375f), x));
  return ldexp(fma(r * r, detail::horner(r, kC), r) + splat(1.0f), n);
}

/// 1 / (1 + e^-x).
FI_VEC_INLINE Vec sigmoid(Vec x) { return splat(1.0f) / (splat(1.0f) + exp(-x)); }

/// x / (1 + e^-x).
FI_VEC_INLINE Vec silu(Vec x) { return x / (splat(1.0f) + exp(-x)); }

FI_VEC_INLINE Vec tanh(Vec x) {
  constexpr float kC[] = {-0.3333328366279602f, 0.13331489264965057f, -0.053743306547403336f, 0.02064993418753147f,
                          -0.005716281943023205f};
  const Vec a = abs(x), u = x * x, e = exp(a + a);
  const Vec far = with_sign_of(splat(1.0f) - splat(2.0f) / (e + splat(1.0f)), x);
  const Vec near = fma(x * u, detail::horner(u, kC), x);
  return select(is_nan(x), x, select(a < splat(0.625f), near, far));
}

/// GELU by tanh: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), which is x * sigmoid of twice that argument.
FI_VEC_INLINE Vec gelu_tanh(Vec x) {
  const Vec twice = x * fma(x * x, splat(2.0f * 0.7978845608f * 0.044715f), splat(2.0f * 0.7978845608f));
  return x / (splat(1.0f) + exp(-twice));
}

namespace detail {
/// erf(x) for |x| <= 0.51.
FI_VEC_INLINE Vec erf_near(Vec x) {
  constexpr float kC[] = {0.1283791065216064f, -0.3761260509490967f, 0.11282721906900406f, -0.026749620214104652f,
                          0.004700778517872095f};
  return fma(x, horner(x * x, kC), x);
}
/// erfc(z) for z in [0.5, 10.2]: e^(-z^2) times a polynomial in t = (z - 2) / (z + 2). The caller passes z^2 as sq -
/// low, since the exponential amplifies the rounding error of the square.
FI_VEC_INLINE Vec erfc_far(Vec z, Vec sq, Vec low) {
  constexpr float kC[] = {0.25539568066596985f,    -0.42718586325645447f,  0.24165815114974976f,
                          -0.07897847145795822f,   0.003733833786100149f,  0.006995631847530603f,
                          -0.0008538569672964513f, -0.000970655819401145f, 6.421790749300271e-05f,
                          0.00014502243720926344f};
  const Vec p = horner((z - splat(2.0f)) / (z + splat(2.0f)), kC);
  return exp(-sq) * fma(low, p, p);
}
}  // namespace detail

FI_VEC_INLINE Vec erf(Vec x) {
  const Vec a = abs(x), z = min(splat(10.0f), a), sq = z * z;
  const Vec far = with_sign_of(splat(1.0f) - detail::erfc_far(z, sq, fnma(z, z, sq)), x);
  return select(is_nan(x), x, select(a < splat(0.5f), detail::erf_near(x), far));
}

/// GELU by erf: x * Phi(x), Phi the normal distribution function. The lower tail uses erfc and keeps its relative
/// precision.
FI_VEC_INLINE Vec gelu_erf(Vec x) {
  const Vec z = x * splat(0.70710678f), a = abs(z), y = min(splat(14.4f), abs(x)), sq = y * y, half = splat(0.5f);
  const Vec tail = half * detail::erfc_far(min(splat(10.2f), a), half * sq, half * fnma(y, y, sq));  // Phi(-|x|)
  const Vec far = select(x < zero(), tail, splat(1.0f) - tail);
  const Vec phi = select(a < half, fma(half, detail::erf_near(z), half), far);
  return x * phi;
}

}  // namespace flashinfer::cpu
