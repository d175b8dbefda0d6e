// SPDX-License-Identifier: Apache-2.0
// All-reduce on the CPU: a row is read from each rank's memory once, and residual, norm and quantisation follow while
// it is in L1. The order of every sum is that of the ranks and of kernels/cpu/lanes.h, so all ranks compute the same
// bits.
#pragma once
#include "flashinfer/kernels/cpu/block_quantize.h"
#include "flashinfer/kernels/cpu/lanes.h"
#include "flashinfer/kernels/cpu/narrow.h"
#include "flashinfer/ops/comm/kernels/params.h"

namespace flashinfer::cpu {

/// A sum in f32 as it is in T.
template <class T>
FI_VEC_INLINE Vec rounded_to(Vec v) {
  if constexpr (sizeof(T) == 4) return v;
  T word[Vec::kLanes];
  store(word, v);
  return load(word);
}

/// to[i] = source 0 + source 1 + ..., rounded to T after each (fp32_acc: once). The first is added to +0, so that zeros
/// have no sign that depends on who sums.
template <AllReduceConfig C, class T>
FI_VEC_INLINE void sum_ranks(const AllReduceParams& p, const T* const* row, T* to) {
  const auto sum = [&](auto at) {
    Vec v = zero() + at(0);
    for (int r = 1; r < p.ranks; ++r) v = (C.fp32_acc || r == 1 ? v : rounded_to<T>(v)) + at(r);
    return v;
  };
  int64_t i = 0;
  for (; i + Vec::kLanes <= p.d; i += Vec::kLanes) store(to + i, sum([&](int r) { return load(row[r] + i); }));
  if (i < p.d) store_n(to + i, sum([&](int r) { return load_n(row[r] + i, p.d - i); }), p.d - i);
}

/// y[i] = f(i) saturated to e4m3 for a row; load_n() past the end gives 0.
template <class T, class F>
FI_VEC_INLINE void store_e4m3_row(const T* x, e4m3_t* y, int64_t n, F f) {
  int64_t i = 0;
  for (; i + Vec::kLanes <= n; i += Vec::kLanes) store_saturated(y + i, f(load(x + i)));
  if (i < n) store_saturated_n(y + i, f(load_n(x + i, n - i)), n - i);
}
/// The largest magnitude of n elements; NaN when one is.
template <class T>
FI_VEC_INLINE float magnitude(const T* x, int64_t n) {
  const int64_t whole = n / 16 * 16;
  float most = to_f32(block_magnitude(x, whole));
  for (int64_t i = whole; i < n; ++i) {
    const float v = __builtin_fabsf(to_f32(x[i]));
    if (v > most || v != v) most = v;
  }
  return most;
}

/// Groups of `group` columns: the scale is the power of two that is not less than max(amax / 448, 1e-10), its exponent
/// byte that of group g in byte g % 4 of word [row][g / 4].
template <class T>
FI_VEC_INLINE void quantize_groups(const AllReduceParams& p, const T* x, e4m3_t* y, int64_t row) {
  auto* words = static_cast<uint32_t*>(p.scale_out) + row;
  const int64_t groups = p.d / p.group;
  for (int64_t g = 0; g < groups; g += 4) {
    uint32_t word = 0;
    for (int64_t k = g; k < g + 4 && k < groups; ++k) {
      const T* from = x + k * p.group;
      const float least = magnitude(from, p.group) / 448.0f;
      const uint8_t exponent = e8m0_round_up(least < 1e-10f ? 1e-10f : least);
      word |= static_cast<uint32_t>(exponent) << 8 * (k - g);
      const Vec factor = splat(1.0f / e8m0_to_f32(exponent));
      store_e4m3_row(from, y + k * p.group, p.group, [&](Vec v) { return v * factor; });
    }
    words[g / 4 * p.scale_stride] = word;
  }
}

template <AllReduceConfig C, class T>
FI_VEC_INLINE void quantize_row(const AllReduceParams& p, const T* x, int64_t row) {
  if constexpr (C.quant == AllReduceQuant::kNvfp4) {
    constexpr BlockFormat kFormat{16, 0, 0};
    BlockRule<kFormat, T> rule;
    make_block_rule(rule, p.scale * (1.0f / 6.0f), 1.0f / p.scale);
    auto* codes = static_cast<uint8_t*>(p.quant_out) + row * (p.d / 2);
    uint8_t* scales = static_cast<uint8_t*>(p.scale_out) + sf_row_offset(p.layout, row, p.d / 16);
    for (int64_t b = 0; b < p.d / 16; b += kBlockChunk) {
      const int64_t left = p.d / 16 - b, n = left < kBlockChunk ? left : kBlockChunk;
      uint8_t bytes[kBlockChunk + 16];
      quantize_blocks(rule, x + b * 16, codes + b * 8, bytes, n);
      store_scales(p.layout, scales, b, bytes, n);
    }
    return;
  }
  auto* y = static_cast<e4m3_t*>(p.quant_out) + row * p.d;
  if constexpr (C.quant == AllReduceQuant::kFp8)
    store_e4m3_row(x, y, p.d, [&, inverse = splat(1.0f / p.scale)](Vec v) { return v * inverse; });
  if constexpr (C.quant == AllReduceQuant::kGroupFp8) quantize_groups(p, x, y, row);
  if constexpr (C.quant == AllReduceQuant::kDynamicFp8) {
    constexpr float kLeast = 1.0f / (512.0f * 448.0f);
    const float s = magnitude(x, p.d) / 448.0f, scale = s < kLeast ? kLeast : s;
    static_cast<float*>(p.scale_out)[row] = scale;
    store_e4m3_row(x, y, p.d, [&, divisor = splat(scale)](Vec v) { return v / divisor; });
  }
}

/// h = sum + residual_in, rounded; n = h / sqrt(mean(h^2) + eps) * (weight_bias + gamma), rounded; then its codes.
template <AllReduceConfig C, class T>
FI_VEC_INLINE void finish_row(const AllReduceParams& p, const T* sum, int64_t row) {
  using W = scalar_of_t<C.weight>;
  const W* gamma = static_cast<const W*>(p.gamma);
  const T* residual = static_cast<const T*>(p.residual_in) + row * p.d;
  T* const h = p.residual_out ? static_cast<T*>(p.residual_out) + row * p.d : static_cast<T*>(p.scratch);
  T* const n = p.norm_out ? static_cast<T*>(p.norm_out) + row * p.d : static_cast<T*>(p.scratch) + p.d;
  const float squares = sum_row(
      p.d,
      [&](Vec a, int64_t i) {
        store(h + i, load(sum + i) + load(residual + i));
        const Vec v = load(h + i);
        return fma(v, v, a);
      },
      [&](Vec a, int64_t i, int64_t left) {
        store_n(h + i, load_n(sum + i, left) + load_n(residual + i, left), left);
        const Vec v = load_n(h + i, left);
        return fma(v, v, a);
      });
  const Vec scale = splat(1.0f / __builtin_sqrtf(squares / static_cast<float>(p.d) + p.eps)),
            bias = splat(p.weight_bias);
  int64_t i = 0;
  for (; i + Vec::kLanes <= p.d; i += Vec::kLanes) store(n + i, load(h + i) * scale * (bias + load(gamma + i)));
  if (i < p.d) store_n(n + i, load_n(h + i, p.d - i) * scale * (bias + load_n(gamma + i, p.d - i)), p.d - i);
  if constexpr (C.quant != AllReduceQuant::kNone) quantize_row<C>(p, n, row);
}

template <AllReduceConfig C>
void all_reduce(const AllReduceParams& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  const int64_t all = C.quant == AllReduceQuant::kNvfp4 ? p.padded_rows : p.rows;
  const int64_t begin = task * p.rows_per_task, end = begin + p.rows_per_task < all ? begin + p.rows_per_task : all;
  for (int64_t r = begin; r < end; ++r) {
    if (r >= p.rows) {
      clear_scales(p.layout, static_cast<uint8_t*>(p.scale_out) + sf_row_offset(p.layout, r, p.d / 16), 0,
                   sf_padded_columns(p.layout, p.d / 16));
      continue;
    }
    const T* row[kAllReduceRanks];
    const int64_t block = p.block_rows ? r / p.block_rows : 0, place = p.block_rows ? r % p.block_rows : r;
    for (int s = 0; s < p.ranks; ++s) row[s] = static_cast<const T*>(p.source[block + s]) + place * p.d;
    if constexpr (!C.norm) {
      sum_ranks<C>(p, row, static_cast<T*>(p.out) + r * p.d);
    } else {
      const T* sum = row[0];
      if (!p.block_rows) {
        T* to = p.out ? static_cast<T*>(p.out) + r * p.d : static_cast<T*>(p.scratch) + p.d;
        sum_ranks<C>(p, row, to);
        sum = to;
      }
      finish_row<C>(p, sum, r);
    }
  }
}

}  // namespace flashinfer::cpu
