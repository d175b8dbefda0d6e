// SPDX-License-Identifier: Apache-2.0
// SiLU of results that are rounded to 16 bits: no division, and no more terms than the rounding shows.
#pragma once
#include "flashinfer/core/scalar.h"
#include "flashinfer/kernels/cpu/exp.h"

namespace flashinfer::cpu {

/// x / (1 + e^-x) for a result that is rounded to T. f32: silu(). f16: to 2^-20 of its value, by the reciprocal
/// estimate and one Newton step; below -69 it is x * 2^-100, which rounds to 0. bf16: to 2^-12.8, a thirteenth of what
/// the rounding takes away, by the estimate alone (2^-14) and a polynomial of two terms less (2^-13.7): 9 operations
/// instead of 14. -inf gives NaN, as silu() does.
template <class T>
FI_VEC_INLINE Vec silu_to(Vec x) {
#if defined(__AVX512F__) && defined(__AVX512DQ__)
  if constexpr (__is_same(T, bf16_t)) {
    constexpr float kC[] = {0.9999251961708069f, 0.6958335041999817f, 0.2260671705007553f, 0.07802452147006989f};
    const Vec y = x * splat(-1.44269504f);  // as exp2_falling(), which needs no bound from above here: 1 / inf is 0
    const Vec e{_mm512_scalef_ps(detail::horner(Vec{_mm512_reduce_ps(y.r, 0x09)}, kC).r, y.r)};
    return x * Vec{_mm512_rcp14_ps((splat(1.0f) + e).r)};
  } else if constexpr (sizeof(T) == 2) {
    const Vec d = splat(1.0f) + exp2_falling(min(splat(100.0f), x * splat(-1.44269504f)));  // 2^100: r stays normal
    const Vec r{_mm512_rcp14_ps(d.r)};
    return x * fma(r, fnma(d, r, splat(1.0f)), r);
  }
#endif
  return silu(x);
}

}  // namespace flashinfer::cpu
