// SPDX-License-Identifier: Apache-2.0
// A small vector of f32 lanes for JIT-compiled kernels: AVX-512 (16 lanes), AVX2 + FMA + F16C (8), else the compiler's
// generic vectors (4). All narrow types convert to f32 on load and round to nearest even on store.
//
//   Vec acc = zero();
//   for (i = 0; i + Vec::kLanes <= d; i += Vec::kLanes) acc = fma(load(x + i), load(x + i), acc);
//   if (i < d) { Vec t = load_n(x + i, d - i); acc = fma(t, t, acc); }      // lanes past the end are 0
//   float sum = reduce_add(acc);
//
// Every ISA header defines (`Mask` is the result of a comparison; pointers need no alignment):
//   zero() splat(f)  load(p) load_n(p, n) for p = float, bf16_t, f16_t, e4m3_t, e5m2_t
//   store(p, v) store_n(p, v, n) for float, bf16_t, f16_t
//   + - * / unary-  fma(a,b,c) = a*b+c  fnma(a,b,c) = c-a*b  sqrt abs round (nearest even)
//   min max: as the instruction, `a < b ? a : b` and `a > b ? a : b`, so a NaN in either operand gives b
//   a < b, a <= b, a == b, is_nan(a), first_n(n) -> Mask;  & | !;  any(m)  select(m, a, b) = m ? a : b
//   ldexp(x, n): x * 2^n for integral n in [-252, 252], with subnormal results; rounded once for |x| in [2^-40, 2^40]
//   reduce_add reduce_max reduce_min: lane i is combined with lane i + kLanes/2, then + kLanes/4, ... (one fixed tree)
//   Pairs: 2*kLanes bf16. load_pairs(p)  load_pairs_n(p, n) (n elements)  splat_pair(p) (p[0], p[1] in all lanes)
//   dot_pairs(acc, a, b): acc[i] += a[2i]*b[2i] + a[2i+1]*b[2i+1]; vdpbf16ps where available (which flushes subnormal
//     bf16 to 0), else two FMAs, the odd element first.
// Stores to bf16 round with integer arithmetic: vcvtneps2bf16 flushes subnormals, which would make targets differ
// without need.
//
// The inline namespace keeps the code of different ISAs apart when it is linked into one program.
#pragma once
#include <stdint.h>
#include <string.h>

#include "flashinfer/core/scalar.h"

#define FI_VEC_INLINE inline __attribute__((always_inline))

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#include "flashinfer/kernels/cpu/vec_avx512.h"
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include "flashinfer/kernels/cpu/vec_avx2.h"
#else
#include "flashinfer/kernels/cpu/vec_portable.h"
#endif

namespace flashinfer::cpu {

FI_VEC_INLINE Vec& operator+=(Vec& a, Vec b) { return a = a + b; }
FI_VEC_INLINE Vec& operator-=(Vec& a, Vec b) { return a = a - b; }
FI_VEC_INLINE Vec& operator*=(Vec& a, Vec b) { return a = a * b; }
FI_VEC_INLINE Mask operator>(Vec a, Vec b) { return b < a; }
FI_VEC_INLINE Mask operator>=(Vec a, Vec b) { return b <= a; }
/// `a` with the sign of `s`; a >= 0.
FI_VEC_INLINE Vec with_sign_of(Vec a, Vec s) { return select(s < zero(), -a, a); }

/// One element in and out, by the same conversions.
FI_VEC_INLINE float to_f32(float x) { return x; }
FI_VEC_INLINE float to_f32(bf16_t x) { return static_cast<float>(x); }
FI_VEC_INLINE float to_f32(f16_t x) { return static_cast<float>(x); }
FI_VEC_INLINE float to_f32(e4m3_t x) { return static_cast<float>(x); }
FI_VEC_INLINE float to_f32(e5m2_t x) { return static_cast<float>(x); }

}  // namespace flashinfer::cpu
