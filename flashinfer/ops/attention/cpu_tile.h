// SPDX-License-Identifier: Apache-2.0
// The two inner loops of the CPU kernel: a register-tiled product of packed cells, and one row of online softmax.
#pragma once
#include <math.h>

#include "flashinfer/ops/attention/cpu_pack.h"
#include "flashinfer/ops/attention/cpu_rows.h"

namespace flashinfer::cpu::attention {

// 6 x 4 accumulators, 4 vectors of B and a broadcast fill the 32 registers of AVX-512; AVX2 has 16.
#if defined(__AVX512F__)
inline constexpr int kMaxRows = 6, kMaxCols = 4;
#else
inline constexpr int kMaxRows = 4, kMaxCols = 2;
#endif
static_assert(kMaxRows <= 8);  // rows of the logits buffer

/// c[MR][NV vectors] (+)= a[MR][n cells] * b[n cells][..]. One chain per element, ascending in cells.
template <bool Pairs, int MR, int NV>
inline void product(const uint32_t* a, int64_t lda, const uint32_t* b, int64_t ldb, float* c, int64_t ldc, int64_t n, bool add,
                    Ahead& ahead) {
  constexpr int kL = Vec::kLanes;
  Vec acc[MR][NV];
#pragma GCC unroll 8
  for (int i = 0; i < MR; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < NV; ++j) acc[i][j] = add ? load(c + i * ldc + j * kL) : zero();
#pragma GCC unroll 1
  for (int64_t k = 0; k < n; ++k, b += ldb) {
    ahead.two();
    if constexpr (Pairs) {
      cpu::Pairs y[NV];
#pragma GCC unroll 8
      for (int j = 0; j < NV; ++j) y[j] = load_pairs(reinterpret_cast<const bf16_t*>(b + j * kL));
#pragma GCC unroll 8
      for (int i = 0; i < MR; ++i) {
        const cpu::Pairs x = splat_pair(reinterpret_cast<const bf16_t*>(a + i * lda + k));
#pragma GCC unroll 8
        for (int j = 0; j < NV; ++j) acc[i][j] = dot_pairs(acc[i][j], x, y[j]);
      }
    } else {
      Vec y[NV];
#pragma GCC unroll 8
      for (int j = 0; j < NV; ++j) y[j] = load(reinterpret_cast<const float*>(b + j * kL));
#pragma GCC unroll 8
      for (int i = 0; i < MR; ++i) {
        const Vec x = splat(*reinterpret_cast<const float*>(a + i * lda + k));
#pragma GCC unroll 8
        for (int j = 0; j < NV; ++j) acc[i][j] = fma(x, y[j], acc[i][j]);
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < MR; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < NV; ++j) store(c + i * ldc + j * kL, acc[i][j]);
}

template <bool Pairs, int MR>
inline void product_columns(const uint32_t* a, int64_t lda, const uint32_t* b, int64_t ldb, float* c, int64_t ldc, int64_t n,
                            int64_t columns, bool add, Ahead& ahead) {
  int64_t j = 0;
  for (; j + kMaxCols * Vec::kLanes <= columns; j += kMaxCols * Vec::kLanes)
    product<Pairs, MR, kMaxCols>(a, lda, b + j, ldb, c + j, ldc, n, add, ahead);
  for (; j < columns; j += 2 * Vec::kLanes) product<Pairs, MR, 2>(a, lda, b + j, ldb, c + j, ldc, n, add, ahead);
}

/// rows <= kMaxRows; columns a multiple of 32.
template <bool Pairs>
inline void product_rows(int64_t rows, const uint32_t* a, int64_t lda, const uint32_t* b, int64_t ldb, float* c, int64_t ldc,
                         int64_t n, int64_t columns, bool add, Ahead& ahead) {
  switch (rows) {
#if defined(__AVX512F__)
    case 6: return product_columns<Pairs, 6>(a, lda, b, ldb, c, ldc, n, columns, add, ahead);
    case 5: return product_columns<Pairs, 5>(a, lda, b, ldb, c, ldc, n, columns, add, ahead);
#endif
    case 4: return product_columns<Pairs, 4>(a, lda, b, ldb, c, ldc, n, columns, add, ahead);
    case 3: return product_columns<Pairs, 3>(a, lda, b, ldb, c, ldc, n, columns, add, ahead);
    case 2: return product_columns<Pairs, 2>(a, lda, b, ldb, c, ldc, n, columns, add, ahead);
    default: return product_columns<Pairs, 1>(a, lda, b, ldb, c, ldc, n, columns, add, ahead);
  }
}

/// Bits of `word` from `first` as lanes.
FI_VEC_INLINE Mask lanes_of(uint64_t word, int first) {
#if defined(__AVX512F__)
  return {static_cast<__mmask16>(word >> first)};
#else
  float hidden[Vec::kLanes];
  for (int i = 0; i < Vec::kLanes; ++i) hidden[i] = (word >> (first + i)) & 1 ? 0.0f : 1.0f;
  return load(hidden) == zero();
#endif
}

/// How raw dot products become logits. Plain: the maximum is taken of the raw products and `factor` folded into the exponent,
/// so that logits near -2.5e5 lose nothing to rounding. Otherwise `x` is transformed to log2 units first and factor is 1.
struct Logits {
  float factor;     // of the exponent, > 0
  bool transformed;
  float scale, cap;  // x = scale * s; x += bias; x = cap * tanh(x / cap)
};
inline Logits logits_of(const AttentionParams& p) {
  constexpr float kLog2e = 1.44269504f;
  if (p.soft_cap > 0 || p.alibi_slopes || !(p.scale > 0)) return {1.0f, true, p.scale, p.soft_cap};
  return {p.scale * kLog2e, false, p.scale, 0.0f};
}
/// `slope * (key - query)` of lane i is bias + i * slope.
inline void transform(const Logits& t, float* s, float bias, float slope) {
  float ramp[Vec::kLanes];
  for (int i = 0; i < Vec::kLanes; ++i) ramp[i] = static_cast<float>(i);
  for (int j = 0; j < kBlockKeys; j += Vec::kLanes) {
    Vec x = load(s + j) * splat(t.scale);
    if (slope != 0) x += fma(load(ramp) + splat(static_cast<float>(j)), splat(slope), splat(bias));
    if (t.cap > 0) x = splat(t.cap) * cpu::tanh(x / splat(t.cap));
    store(s + j, x * splat(1.44269504f));
  }
}

/// State of a row: `m` the maximum that exponents are relative to (it lags behind the true one by at most 8 in log2, which
/// spares most rescaling), `l` the lanes of the denominator: of the probabilities as they enter the product (rounded with bf16
/// cells), then of the exact ones, which the LSE wants.
/// Turns logits s[64] into probabilities `cell` (bf16 or f32) and updates the state; `o` has `width` floats.
template <bool Pairs>
FI_VEC_INLINE void softmax_row(float* s, uint64_t visible, float factor, float& m, float* l, float* o, int64_t width, uint32_t* cell) {
  constexpr int kN = kBlockKeys / Vec::kLanes;
  const Vec none = splat(-INFINITY);
  Vec x[kN], top = none;
#pragma GCC unroll 16
  for (int j = 0; j < kN; ++j) {
    x[j] = load(s + j * Vec::kLanes);
    if (visible != ~0ull) x[j] = select(lanes_of(visible, j * Vec::kLanes), x[j], none);
    top = max(x[j], top);
  }
  const float block = reduce_max(top);
  if (block > m && !((block - m) * factor <= 8.0f)) {
    const float down = m == -INFINITY ? 0.0f : exp2((m - block) * factor);
    for (int64_t d = 0; d < width; d += Vec::kLanes) store(o + d, load(o + d) * splat(down));
    store(l, load(l) * splat(down));
    if constexpr (Pairs) store(l + 16, load(l + 16) * splat(down));
    m = block;
  }
  if (m == -INFINITY) {  // nothing seen yet, and -inf - -inf would be NaN
    Mask nan = is_nan(x[0]);
#pragma GCC unroll 16
    for (int j = 1; j < kN; ++j) nan = nan | is_nan(x[j]);
    if (any(nan)) store(l, splat(NAN)), m = 0;  // a NaN in q or K must not pass for an empty row
    memset(cell, 0, static_cast<size_t>(kBlockKeys) * (Pairs ? 2 : 4));
    return;
  }
  const Vec base = splat(m), f = splat(factor);
  Vec sum[kN], exact = zero();
#pragma GCC unroll 16
  for (int j = 0; j < kN; ++j) {
    const Vec e = cpu::exp2((x[j] - base) * f);
    if constexpr (Pairs) {
#if defined(__AVX512BF16__)
      const __m256bh h = _mm512_cvtneps_pbh(e.r);
      _mm256_store_si256(reinterpret_cast<__m256i*>(cell) + j, reinterpret_cast<__m256i>(h));
      sum[j] = cpu::detail::widen_bf16(reinterpret_cast<__m256i>(h));
      exact += e;
#endif
    } else {
      store(reinterpret_cast<float*>(cell) + j * Vec::kLanes, e);
      sum[j] = e;
    }
  }
#pragma GCC unroll 4
  for (int step = 1; step < kN; step *= 2)
#pragma GCC unroll 16
    for (int j = 0; j + step < kN; j += 2 * step) sum[j] += sum[j + step];
  store(l, load(l) + sum[0]);
  if constexpr (Pairs) store(l + 16, load(l + 16) + exact);
}

}  // namespace flashinfer::cpu::attention
