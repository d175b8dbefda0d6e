// SPDX-License-Identifier: Apache-2.0
// Gated activations on the CPU, elementwise in one pass.
#pragma once
#include "flashinfer/kernels/cpu/exp.h"
#include "flashinfer/kernels/cpu/lanes.h"
#include "flashinfer/ops/activation/kernels/params.h"

namespace flashinfer::cpu {

// Where the result is rounded to 16 bits, short polynomials of our own suffice. Their total error stays below 0.3 of a
// unit in the last place: 1e-4 of the value for f16, 1.3e-3 for bf16, whose polynomials are shorter still.

/// 2^x to 3e-6 of its value (bf16: 7.5e-5). vreduceps gives x - floor(x) and vscalefps multiplies by 2^floor(x);
/// infinities need no special case.
template <DType T>
FI_VEC_INLINE Vec short_exp2(Vec x) {
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
  constexpr float kF16[] = {1.0000026226f, 0.69300377369f, 0.24144281447f, 0.0520115979f, 0.013534000143f};
  constexpr float kBF16[] = {0.99992495775f, 0.6958347559f, 0.22606731951f, 0.07802276313f};
  const Vec f{_mm512_reduce_ps(x.r, 0x09)};
  return {_mm512_scalef_ps((T == DType::kBF16 ? detail::horner(f, kBF16) : detail::horner(f, kF16)).r, x.r)};
#else
  return exp2(x);
#endif
}

/// log2 of Phi(x) / (1 - Phi(x)), Phi the normal distribution function: x times a polynomial in x^2, linear from
/// x| = 6 (bf16: 5) on. To 1.2e-4 for |x| < 4.6 and 1.2e-3 up to 6; bf16: 5e-4, 1.8e-3 up to 5.
template <DType T>
FI_VEC_INLINE Vec normal_logit2(Vec x) {
  constexpr float kF16[] = {2.301856041f,     0.10536163300f,     -3.158338077e-4f, -1.2051256656e-4f,
                            8.270138097e-06f, -2.7573349826e-07f, 4.736788739e-09f, -3.32555268e-11f};
  constexpr float kBF16[] = {2.300785542f,      0.1067146435f,    -8.04402924e-4f,
                             -4.405049085e-05f, 2.273007340e-06f, -3.26682077e-08f};
  if constexpr (T == DType::kBF16) return x * detail::horner(min(splat(25.0f), x * x), kBF16);
  return x * detail::horner(min(splat(36.0f), x * x), kF16);
}

/// x / (1 + 2^t), t the argument of the sigmoid times -1/ln 2.
template <ActConfig C>
FI_VEC_INLINE Vec short_activate(Vec x) {
  constexpr float kLog2e = 1.44269504f, kTanh = 2.0f * 0.7978845608f * kLog2e;
  Vec t;
  if constexpr (C.kind == Activation::kSilu)
    t = x * splat(-kLog2e);
  else if constexpr (C.kind == Activation::kGelu)
    t = -normal_logit2<C.dtype>(x);
  else
    t = x * fma(x * x, splat(-kTanh * 0.044715f), splat(-kTanh));
  return x / (splat(1.0f) + short_exp2<C.dtype>(t));
}

template <Activation K>
FI_VEC_INLINE Vec full_activate(Vec x) {
  if constexpr (K == Activation::kSilu)
    return silu(x);
  else if constexpr (K == Activation::kGelu)
    return gelu_erf(x);
  else
    return gelu_tanh(x);
}

template <ActConfig C>
FI_VEC_INLINE Vec activate(Vec x) {
  if constexpr (C.dtype == DType::kF32)
    return full_activate<C.kind>(x);
  else
    return short_activate<C>(x);
}

template <ActConfig C>
void act_and_mul(const ActParams& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  const int64_t begin = task * p.rows_per_task;
  const int64_t end = begin + p.rows_per_task < p.rows ? begin + p.rows_per_task : p.rows;
  for (int64_t r = begin; r < end; ++r) {
    int64_t rest = r, in_at = 0, out_at = 0;
    for (int32_t k = p.outer - 1; k > 0; --k) {
      const int64_t q = rest / p.size[k], i = rest - q * p.size[k];
      in_at += i * p.input_stride[k];
      out_at += i * p.out_stride[k];
      rest = q;
    }
    const T* gate = static_cast<const T*>(p.input) + in_at + rest * p.input_stride[0];
    const T* up = gate + p.d;
    // Prefetch the next row at the same place in both halves: two streams and the exponentials are too much for the
    // hardware prefetcher (0.75 of a memcpy without, 0.85 with).
    const int64_t ahead = r + 1 < end ? p.input_stride[p.outer - 1] : 0;
    write_row(
        static_cast<T*>(p.out) + out_at + rest * p.out_stride[0], p.d,
        [&](int64_t i) {
          __builtin_prefetch(gate + i + ahead, 0, 2);
          __builtin_prefetch(up + i + ahead, 0, 2);
          return activate<C>(load(gate + i)) * load(up + i);
        },
        [&](int64_t i, int64_t n) { return activate<C>(load_n(gate + i, n)) * load_n(up + i, n); });
  }
}

}  // namespace flashinfer::cpu
