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

#if defined(FI_NARROW_AVX512)
FI_VEC_INLINE Split operator+(Split a, Split b) { return {a.even + b.even, a.odd + b.odd}; }
/// The bits of v after it was rounded to bf16, in the upper halves of the lanes; the lower ones are unspecified. For
/// sums of numbers of bf16: a NaN among them has no bit in its lower half, so no carry changes it.
FI_VEC_INLINE __m512i bf16_bits(Vec v) {
  const __m512i u = _mm512_castps_si512(v.r), up = _mm512_add_epi32(u, _mm512_set1_epi32(0x7fff));
  const __mmask16 odd = _mm512_test_epi32_mask(u, _mm512_set1_epi32(0x10000));
  return _mm512_mask_sub_epi32(up, odd, up, _mm512_set1_epi32(-1));
}
FI_VEC_INLINE Vec upper_halves(__m512i u) {
  return {_mm512_castsi512_ps(_mm512_and_si512(u, _mm512_set1_epi32(static_cast<int>(0xffff0000u))))};
}
FI_VEC_INLINE Split rounded_split(Split v) { return {upper_halves(bf16_bits(v.even)), upper_halves(bf16_bits(v.odd))}; }
/// 64 bytes of a result; kPast: around the caches, to the begin of a line.
template <bool kPast>
FI_VEC_INLINE void store_line(void* p, __m512i v) {
  if constexpr (kPast)
    _mm512_stream_si512(static_cast<__m512i*>(p), v);
  else
    _mm512_storeu_si512(p, v);
}
/// Stores 32 sums of bf16 numbers as bf16: 5 operations for 16 elements, where store() takes 9.
template <bool kPast = false>
FI_VEC_INLINE void store_split(bf16_t* p, __m512i even, __m512i odd) {
  store_line<kPast>(p, _mm512_mask_blend_epi16(0xaaaaaaaau, _mm512_srli_epi32(even, 16), odd));
}
#endif

/// A sum in f32 as it is in T.
template <class T>
FI_VEC_INLINE Vec rounded_to(Vec v) {
  if constexpr (sizeof(T) == 4) return v;
#if defined(FI_NARROW_AVX512) || (defined(__AVX2__) && defined(__FMA__) && defined(__F16C__))
  if constexpr (__is_same(T, bf16_t)) return detail::widen_bf16(detail::narrow_bf16(v));
  if constexpr (__is_same(T, f16_t)) return detail::widen_f16(detail::narrow_f16(v));
#endif
  T word[Vec::kLanes];
  store(word, v);
  return load(word);
}

/// Elements of the sum of the ranks' rows, in f32: source 0 + source 1 + ..., rounded to T after each but the last
/// (fp32_acc: after none). The first is added to +0, so that zeros have no sign that depends on who sums. kRanks: how
/// many, 0 when only the call says it.
template <AllReduceConfig C, int kRanks, class T>
struct RankSum {
  const T* const* row;
  int ranks;

  template <class V, class At, class Round>
  FI_VEC_INLINE V sum(V start, At at, Round round) const {
    V v = start + at(0);
#pragma GCC unroll 2
    for (int r = 1; r < (kRanks ? kRanks : ranks); ++r) v = (C.fp32_acc || r == 1 ? v : round(v)) + at(r);
    return v;
  }
  FI_VEC_INLINE Vec at(int64_t i) const {
    return sum(zero(), [&](int r) { return load(row[r] + i); }, [](Vec v) { return rounded_to<T>(v); });
  }
  FI_VEC_INLINE Vec at(int64_t i, int64_t n) const {
    return sum(zero(), [&](int r) { return load_n(row[r] + i, n); }, [](Vec v) { return rounded_to<T>(v); });
  }
#if defined(FI_NARROW_AVX512)
  FI_VEC_INLINE Split split(int64_t i) const {
    return sum(
        Split{zero(), zero()}, [&](int r) { return load_split(row[r] + i); }, [](Split v) { return rounded_split(v); });
  }
#endif
};

/// The sum of the ranks' rows, n elements, to `to`.
template <bool kPast, class Sum, class T>
FI_VEC_INLINE void store_sum(const Sum& sum, T* to, int64_t n) {
  int64_t i = 0;
#if defined(FI_NARROW_AVX512)
  if constexpr (__is_same(T, bf16_t))
    for (; i + 32 <= n; i += 32) {
      const Split v = sum.split(i);
      store_split<kPast>(to + i, bf16_bits(v.even), bf16_bits(v.odd));
    }
  if constexpr (__is_same(T, float) && kPast)
    for (; i + 16 <= n; i += 16) store_line<kPast>(to + i, _mm512_castps_si512(sum.at(i).r));
#endif
  for (; i + Vec::kLanes <= n; i += Vec::kLanes) store(to + i, sum.at(i));
  if (i < n) store_n(to + i, sum.at(i, n - i), n - i);
}

/// Fetches what lies 2 KB behind an element of the residual, when it comes from memory.
template <bool kPast, class T>
FI_VEC_INLINE void fetch_ahead(const T* residual) {
  if constexpr (kPast) __builtin_prefetch(residual + 2048 / sizeof(T), 1);
}

/// h = round(sum) + residual, rounded; returns the sum of its squares, in the order of kernels/cpu/lanes.h.
template <bool kPast, class Sum, class T>
FI_VEC_INLINE float add_residual(const Sum& sum, const T* residual, T* h, int64_t n) {
  return sum_row(
      n,
      [&](Vec a, int64_t i) {
        fetch_ahead<kPast>(residual + i);
        const Vec v = rounded_to<T>(rounded_to<T>(sum.at(i)) + load(residual + i));
        store(h + i, v);
        return fma(v, v, a);
      },
      [&](Vec a, int64_t i, int64_t left) {
        const Vec v = rounded_to<T>(rounded_to<T>(sum.at(i, left)) + load_n(residual + i, left));
        store_n(h + i, v, left);
        return fma(v, v, a);
      });
}
#if defined(FI_NARROW_AVX512)
/// The same for bf16, with even and odd elements in separate vectors: half the operations. The squares are added in the
/// same order: each half of a block of 64 has its accumulators, and lanes j, j + 2, ... of them are combined last.
template <bool kPast, class Sum>
FI_VEC_INLINE float add_residual_split(const Sum& sum, const bf16_t* residual, bf16_t* h, int64_t n) {
  Split a{zero(), zero()}, b = a;
  const auto add = [&](Split acc, int64_t i) {
    fetch_ahead<kPast>(residual + i);
    const Split s = rounded_split(sum.split(i)) + load_split(residual + i);
    const __m512i even = bf16_bits(s.even), odd = bf16_bits(s.odd);
    store_split(h + i, even, odd);
    const Vec e = upper_halves(even), o = upper_halves(odd);
    return Split{fma(e, e, acc.even), fma(o, o, acc.odd)};
  };
  for (int64_t i = 0; i + 64 <= n; i += 64) a = add(a, i), b = add(b, i + 32);
  return reduce_add(a.even + b.even) + reduce_add(a.odd + b.odd);
}
#endif

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

#if defined(__AVX512BF16__) && defined(FI_NARROW_AVX512)
/// What write_pair() of kernels/cpu/lanes.h stores, of even and odd elements.
template <bool kPast>
FI_VEC_INLINE void write_split(bf16_t* p, Split v) {
  alignas(64) static constexpr uint16_t kMerge[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const __m512i parts = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(v.odd.r, v.even.r));
  store_line<kPast>(p, _mm512_permutexvar_epi16(_mm512_load_si512(kMerge), parts));
}
#endif

/// n = h * factor * (weight_bias + gamma), rounded.
template <class W, bool kPast, class T>
FI_VEC_INLINE void normalise(const T* h, const W* gamma, T* n, int64_t d, float factor, float weight_bias) {
  const Vec scale = splat(factor), bias = splat(weight_bias);
#if defined(__AVX512BF16__) && defined(FI_NARROW_AVX512)
  if constexpr (__is_same(T, bf16_t) && __is_same(W, bf16_t)) {
    const int64_t whole = d / 32 * 32;
    for (int64_t i = 0; i < whole; i += 32) {
      const Split x = load_split(h + i), g = load_split(gamma + i);
      write_split<kPast>(n + i, {x.even * scale * (bias + g.even), x.odd * scale * (bias + g.odd)});
    }
    h += whole, gamma += whole, n += whole, d -= whole;
  }
#endif
#if defined(FI_NARROW_AVX512)
  if constexpr (__is_same(T, float) && kPast) {
    const int64_t whole = d / 16 * 16;
    for (int64_t i = 0; i < whole; i += 16)
      store_line<kPast>(n + i, _mm512_castps_si512((load(h + i) * scale * (bias + load(gamma + i))).r));
    h += whole, gamma += whole, n += whole, d -= whole;
  }
#endif
  write_row(
      n, d, [&](int64_t i) { return load(h + i) * scale * (bias + load(gamma + i)); },
      [&](int64_t i, int64_t left) { return load_n(h + i, left) * scale * (bias + load_n(gamma + i, left)); });
}

/// h = sum + residual_in, rounded; n = h / sqrt(mean(h^2) + eps) * (weight_bias + gamma), rounded; then its codes.
template <AllReduceConfig C, bool kPast, class Sum, class T>
FI_VEC_INLINE void finish_row(const AllReduceParams& p, const Sum& sum, T* scratch, int64_t row) {
  using W = scalar_of_t<C.weight>;
  const W* gamma = static_cast<const W*>(p.gamma);
  const T* residual = static_cast<const T*>(p.residual_in) + row * p.d;
  T* const h = p.residual_out ? static_cast<T*>(p.residual_out) + row * p.d : scratch;
  T* const n = p.norm_out ? static_cast<T*>(p.norm_out) + row * p.d : scratch + p.d;
  float squares;
#if defined(FI_NARROW_AVX512)
  if constexpr (__is_same(T, bf16_t))
    squares = p.d % 64 ? add_residual<kPast>(sum, residual, h, p.d) : add_residual_split<kPast>(sum, residual, h, p.d);
  else
#endif
    squares = add_residual<kPast>(sum, residual, h, p.d);
  normalise<W, kPast>(h, gamma, n, p.d, 1.0f / __builtin_sqrtf(squares / static_cast<float>(p.d) + p.eps),
                      p.weight_bias);
  if constexpr (C.quant != AllReduceQuant::kNone) quantize_row<C>(p, n, row);
}

/// Scales of a row behind the last one.
template <AllReduceConfig C>
FI_VEC_INLINE void clear_scale_row(const AllReduceParams& p, int64_t row) {
  if constexpr (C.quant == AllReduceQuant::kNvfp4)
    clear_scales(p.layout, static_cast<uint8_t*>(p.scale_out) + sf_row_offset(p.layout, row, p.d / 16), 0,
                 sf_padded_columns(p.layout, p.d / 16));
  if constexpr (C.quant == AllReduceQuant::kGroupFp8)
    for (int64_t g = 4; g < p.d / p.group; g += 4)
      static_cast<uint32_t*>(p.scale_out)[(g / 4 - 1) * p.scale_stride + row] = 0;
}

/// Rows [begin, end) of the ranks' sums, and what follows them.
template <AllReduceConfig C, int kRanks, bool kPast = false>
FI_VEC_INLINE void reduce_rows(const AllReduceParams& p, int64_t begin, int64_t end) {
  using T = scalar_of_t<C.dtype>;
  const T* row[kRanks ? kRanks : kAllReduceRanks];
  const RankSum<C, kRanks, T> sum{row, p.ranks};
  const auto read_from = [&](int64_t block, int64_t place) {
    for (int s = 0; s < (kRanks ? kRanks : p.ranks); ++s)
      row[s] = static_cast<const T*>(p.source[block + s]) + place * p.d;
  };
  if constexpr (!C.norm)
    if (!p.block_rows) {  // rows lie one behind another
      read_from(0, begin - p.first);
      return store_sum<kPast>(sum, static_cast<T*>(p.out) + begin * p.d, (end - begin) * p.d);
    }
  for (int64_t r = begin; r < end; ++r) {
    const int64_t i = r - p.first;
    if (p.block_rows)
      read_from(i / p.block_rows, i % p.block_rows);
    else
      read_from(0, i);
    if constexpr (C.norm)
      finish_row<C, kPast>(p, sum, static_cast<T*>(p.scratch), r);
    else
      store_sum<kPast>(sum, static_cast<T*>(p.out) + r * p.d, p.d);
  }
}

/// Whether the results of rows from `begin` on are written around the caches: those that nothing here reads again,
/// whose rows begin at lines.
template <AllReduceConfig C>
FI_VEC_INLINE bool goes_past_caches(const AllReduceParams& p, int64_t begin) {
#if defined(FI_NARROW_AVX512)
  using T = scalar_of_t<C.dtype>;
  if constexpr (C.quant != AllReduceQuant::kNone || __is_same(T, f16_t)) return false;
  const T* const to = static_cast<const T*>(C.norm ? p.norm_out : p.out);
  const bool lines = p.d * static_cast<int64_t>(sizeof(T)) % 64 == 0 || (!C.norm && !p.block_rows);
  return p.past_caches && to && lines && reinterpret_cast<uintptr_t>(to + begin * p.d) % 64 == 0;
#else
  return false;
#endif
}

template <AllReduceConfig C>
void all_reduce(const AllReduceParams& p, int64_t task) {
  constexpr bool kPads = C.quant == AllReduceQuant::kNvfp4 || C.quant == AllReduceQuant::kGroupFp8;
  const int64_t all = kPads ? p.padded_rows : p.last;
  const int64_t begin = p.first + task * p.rows_per_task,
                end = begin + p.rows_per_task < all ? begin + p.rows_per_task : all;
  const int64_t rows_end = end < p.last ? end : p.last;
  if (begin < rows_end) {
    if (goes_past_caches<C>(p, begin)) {
      p.ranks == 2 ? reduce_rows<C, 2, true>(p, begin, rows_end) : reduce_rows<C, 0, true>(p, begin, rows_end);
      end_past_caches();
    } else {
      p.ranks == 2 ? reduce_rows<C, 2>(p, begin, rows_end) : reduce_rows<C, 0>(p, begin, rows_end);
    }
  }
  if constexpr (kPads)
    for (int64_t r = begin < p.last ? p.last : begin; r < end; ++r) clear_scale_row<C>(p, r);
}

}  // namespace flashinfer::cpu
