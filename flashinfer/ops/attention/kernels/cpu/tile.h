// SPDX-License-Identifier: Apache-2.0
// The two inner loops of the tile kernel: a register-tiled product of packed cells, and one row of online softmax.
#pragma once
#include "flashinfer/kernels/cpu/amx.h"
#include "flashinfer/kernels/cpu/tile.h"
#include "flashinfer/ops/attention/kernels/cpu/pack.h"
#include "flashinfer/ops/attention/kernels/cpu/rows.h"

namespace flashinfer::cpu::attention {

// 6 x 4 accumulators, 4 vectors of B and a broadcast fill the 32 registers of AVX-512; AVX2 has 16.
#if defined(__AVX512F__)
inline constexpr int kMaxRows = 6, kMaxCols = 4;
#else
inline constexpr int kMaxRows = 4, kMaxCols = 2;
#endif
static_assert(kMaxRows <= 8);  // rows of the logits buffer
/// Rows that are multiplied at a time: with AMX as many as there are logits for (6 rows: 10 % slower).
#if defined(FI_CPU_AMX)
template <bool Pairs>
inline constexpr int kGroupRows = Pairs ? 8 : kMaxRows;
#else
template <bool Pairs>
inline constexpr int kGroupRows = kMaxRows;
#endif

/// Callback once a cell of a product, used for prefetching.
struct Nothing {
  void operator()() const {}
};
/// c[MR][NV vectors] = c * keep + a[MR][n cells] * b[n cells][..], n >= 1; keep = 0 ignores the old c. One chain per
/// element, ascending in cells.
template <bool Pairs, int MR, int NV, class Each = Nothing>
inline void product(const uint32_t* a, int64_t lda, const uint32_t* b, int64_t ldb, float* c, int64_t ldc, int64_t n,
                    float keep, Each each = {}) {
#if defined(FI_CPU_TILE_ASM)
  if constexpr (MR == 6 && NV == 4 && __is_same(Each, Nothing))
    return tile_6x4<Pairs>(a, lda, b, ldb, c, ldc, n, keep != 0);  // 0 or 1
#endif
  constexpr int kL = Vec::kLanes;
  Vec acc[MR][NV];
#pragma GCC unroll 8
  for (int i = 0; i < MR; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < NV; ++j) acc[i][j] = keep == 0 ? zero() : load(c + i * ldc + j * kL);
  if (keep != 0 && keep != 1) {
#pragma GCC unroll 8
    for (int i = 0; i < MR; ++i)
#pragma GCC unroll 8
      for (int j = 0; j < NV; ++j) acc[i][j] *= splat(keep);
  }
#pragma GCC unroll 1
  for (int64_t k = 0; k < n; ++k, b += ldb) {
    each();
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
inline void product_columns(const uint32_t* a, int64_t lda, const uint32_t* b, int64_t ldb, float* c, int64_t ldc,
                            int64_t n, int64_t columns, bool add) {
  int64_t j = 0;
  for (; j + kMaxCols * Vec::kLanes <= columns; j += kMaxCols * Vec::kLanes)
    product<Pairs, MR, kMaxCols>(a, lda, b + j, ldb, c + j, ldc, n, add ? 1.0f : 0.0f);
  for (; j < columns; j += 2 * Vec::kLanes) product<Pairs, MR, 2>(a, lda, b + j, ldb, c + j, ldc, n, add ? 1.0f : 0.0f);
}

/// rows <= kGroupRows<Pairs>; columns a multiple of 32.
template <bool Pairs>
inline void product_rows(int64_t rows, const uint32_t* a, int64_t lda, const uint32_t* b, int64_t ldb, float* c,
                         int64_t ldc, int64_t n, int64_t columns, bool add) {
#if defined(FI_CPU_AMX)
  if constexpr (Pairs) return tile_product(rows, a, lda, b, ldb, c, ldc, n, columns, add);
#endif
  switch (rows) {
#if defined(__AVX512F__)
    case 6: return product_columns<Pairs, 6>(a, lda, b, ldb, c, ldc, n, columns, add);
    case 5: return product_columns<Pairs, 5>(a, lda, b, ldb, c, ldc, n, columns, add);
#endif
    case 4: return product_columns<Pairs, 4>(a, lda, b, ldb, c, ldc, n, columns, add);
    case 3: return product_columns<Pairs, 3>(a, lda, b, ldb, c, ldc, n, columns, add);
    case 2: return product_columns<Pairs, 2>(a, lda, b, ldb, c, ldc, n, columns, add);
    default: return product_columns<Pairs, 1>(a, lda, b, ldb, c, ldc, n, columns, add);
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

/// How dot products become logits. Plain: the maximum is taken of the dot products and `factor` is applied in the
/// exponent, so that logits near -2.5e5 lose nothing to rounding. Otherwise `x` is transformed to log2 units first and
/// factor is 1.
struct Logits {
  float factor;  // of the exponent, > 0
  bool transformed;
  float scale, cap;  // x = scale * s; x += bias; x = cap * tanh(x / cap)
};
inline Logits logits_of(const AttentionParams& p) {
  constexpr float kLog2e = 1.44269504f;
  if (p.soft_cap > 0 || p.alibi_slopes || !(p.scale > 0)) return {1.0f, true, p.scale, p.soft_cap};
  return {p.scale * kLog2e, false, p.scale, 0.0f};
}
/// `slope * (key - query)` of lane i is bias + i * slope.
inline void transform(const Logits& t, float* s, int64_t keys, float bias, float slope) {
  float ramp[Vec::kLanes];
  for (int i = 0; i < Vec::kLanes; ++i) ramp[i] = static_cast<float>(i);
  for (int64_t j = 0; j < keys; j += Vec::kLanes) {
    Vec x = load(s + j) * splat(t.scale);
    if (slope != 0) x += fma(load(ramp) + splat(static_cast<float>(j)), splat(slope), splat(bias));
    if (t.cap > 0) x = splat(t.cap) * cpu::tanh(x / splat(t.cap));
    store(s + j, x * splat(1.44269504f));
  }
}

/// Combines neighbours first. Not a loop over steps: g++ 12 keeps its array in memory, which took a third of the
/// softmax.
template <int N>
FI_VEC_INLINE Vec add_all(const Vec* x) {
  if constexpr (N == 1)
    return x[0];
  else
    return add_all<N / 2>(x) + add_all<N / 2>(x + N / 2);
}

/// One row of online softmax: turns logits s[N] into probabilities `cell` (bf16 or f32) and updates the state. `m`: the
/// maximum that exponents are relative to. It lags behind the true maximum as long as no lane of a block's
/// probabilities sums to more than 2^8, which avoids most rescaling and maximum searches. `l`: lanes of the
/// denominator, of probabilities as rounded for the product (bf16 cells), then of exact ones, for the LSE. `o` has
/// `width` floats. Bit j of visible: key j.
template <bool Pairs, int N = kBlockKeys>
__attribute__((noinline)) void softmax_row(const float* s, const uint64_t* visible, float factor, float& m, float* l,
                                           float* o, int64_t width, uint32_t* cell) {
  constexpr int kN = N / Vec::kLanes, kWord = 64 / Vec::kLanes;
  Vec x[kN], t[kN];
#pragma GCC unroll 32
  for (int j = 0; j < kN; ++j) {
    x[j] = load(s + j * Vec::kLanes);
    if (visible) x[j] = select(lanes_of(visible[j / kWord], j % kWord * Vec::kLanes), x[j], splat(-INFINITY));
  }
  const Vec f = splat(factor);
  Vec sum;
  auto exponentiate = [&](Vec base) {
#pragma GCC unroll 32
    for (int j = 0; j < kN; ++j) t[j] = probability<Pairs>(exponent(x[j], f, base));
    sum = add_all<kN>(t);
  };
  const bool fresh = m == -INFINITY;
  if (!fresh) exponentiate(splat(-m * factor));
  if (fresh || any(sum > splat(256.0f))) {
    Vec high = x[0];
    Mask nan = is_nan(x[0]);
#pragma GCC unroll 32
    for (int j = 1; j < kN; ++j) high = max(x[j], high), nan = nan | is_nan(x[j]);
    const float top = reduce_max(high);
    if (!fresh) {  // otherwise all of them are 0
      const float down = exp2((m - top) * factor);
      for (int64_t d = 0; d < width; d += Vec::kLanes) store(o + d, load(o + d) * splat(down));
      store(l, load(l) * splat(down));
      if constexpr (Pairs) store(l + 16, load(l + 16) * splat(down));
    }
    m = top == -INFINITY && any(nan) ? 0.0f : top;  // a NaN in q or K must not look like an empty row
    exponentiate(splat(m == -INFINITY ? 0.0f : -m * factor));
  }
  if constexpr (Pairs) {
#if defined(__AVX512BF16__)
    const cpu::Pairs ones{_mm512_set1_epi16(0x3f80)};
    Vec rounded = load(l);
#pragma GCC unroll 16
    for (int j = 0; j < kN; j += 2) {
      const cpu::Pairs pair{reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(t[j + 1].r, t[j].r))};
      _mm512_store_si512(cell + j * 8, pair.r);
      rounded = dot_pairs(rounded, pair, ones);
    }
    store(l, rounded);
    store(l + 16, load(l + 16) + sum);
#endif
  } else {
#pragma GCC unroll 32
    for (int j = 0; j < kN; ++j) store(reinterpret_cast<float*>(cell) + j * Vec::kLanes, t[j]);
    store(l, load(l) + sum);
  }
}

}  // namespace flashinfer::cpu::attention
