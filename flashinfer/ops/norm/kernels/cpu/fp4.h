// SPDX-License-Identifier: Apache-2.0
// Norms with FP4 results on the CPU: the row is not rounded between f32 and its codes. For 2048 elements at a time:
// normalise, find the blocks' largest magnitudes, then scales and codes, all in L1.
#pragma once
#include "flashinfer/ops/norm/kernels/cpu/quant.h"

namespace flashinfer::cpu {

#if defined(FI_NARROW_AVX512)
// Rows of 16-bit elements with finite sum and finite weights: no product is NaN, so magnitudes need no NaN handling.
// Elements of even and odd index stay in separate vectors from the row to the codes, which saves the permutations
// between.

/// The largest magnitudes of 16 runs of 16 elements, f(j) returns the even and odd ones of runs 2 j and 2 j + 1.
template <class F>
FI_VEC_INLINE __m512 split_magnitudes(F f) {
  const auto run = [&](int j) {
    const Split v = f(j);
    return _mm512_range_ps(v.even.r, v.odd.r, 0x0b);  // the larger magnitude
  };
  const auto fold4 =
      [&](int j) {  // in each 128 bits one maximum of four f(j): chunks 0 and 1 of the even run, 2 and 3 of the odd one
        const auto fold = [](__m512 a, __m512 b) {
          return _mm512_max_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
        };
        const __m512d a = _mm512_castps_pd(fold(run(j), run(j + 1))),
                      b = _mm512_castps_pd(fold(run(j + 2), run(j + 3)));
        return _mm512_max_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)), _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
      };
  const __m512 a = fold4(0), b = fold4(4);
  const __m512 all = _mm512_max_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
  return _mm512_permutexvar_ps(_mm512_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15), all);
}

/// Elements [at, at + n) of the row times scale and weight, n a multiple of 256: y gets those of even index of each 32,
/// then the odd ones, amax the blocks' magnitudes. `ahead`: distance to the next row, for prefetching.
template <int kBlock, class T, bool kAdd, class W>
FI_VEC_INLINE void split_row(const NormRow<T, kAdd>& row, Vec scale, const W* w, int64_t at, int64_t n,
                             const int64_t (&ahead)[2], float* y, float* amax) {
  for (int64_t i = 0; i < n; i += 256) {
    const __m512 most = split_magnitudes([&](int j) {
      const int64_t from = at + i + 32 * j;
      const Split v = row.split(from), g = load_split(w + from);
      __builtin_prefetch(row.x + from + ahead[0], 0, 2);
      if constexpr (kAdd) {
        __builtin_prefetch(row.residual + from + ahead[1], 0, 2);
        _mm512_storeu_si512(row.residual + from, words_of(v, row.x));
      }
      const Split r{v.even * scale * g.even, v.odd * scale * g.odd};
      store(y + i + 32 * j, r.even);
      store(y + i + 32 * j + 16, r.odd);
      return r;
    });
    if constexpr (kBlock == 16) {
      _mm512_storeu_ps(amax + i / 16, most);
    } else {  // of neighbours
      const __m512i bits = _mm512_castps_si512(most);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(amax + i / 32),
                          _mm512_cvtepi64_epi32(_mm512_max_epu32(bits, _mm512_srli_epi64(bits, 32))));
    }
  }
}

/// Whether no element of the n blocks, a multiple of 8, can exceed 8 once divided by its scale, so that codes need no
/// upper clamp: an e4m3 scale that is normal and not saturated is at most 1/17 below its block's largest magnitude over
/// 6.
template <BlockFormat F>
FI_VEC_INLINE bool ordinary_scales(const uint8_t* scale, int64_t n) {
  uint32_t odd = 0;
  for (int64_t i = 0; i < n; i += 8) {
    const __m128i b = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(scale + i));
    odd |= 0xff &
           (F.ue8m0 ? _mm_cmpeq_epi8_mask(b, _mm_set1_epi8(-1))
                    : _mm_cmp_epu8_mask(_mm_sub_epi8(b, _mm_set1_epi8(8)), _mm_set1_epi8(0x7d - 8), _MM_CMPINT_NLE));
  }
  return odd == 0;
}

template <BlockFormat F>
FI_VEC_INLINE void store_split_codes(const float* y, uint8_t* codes, const float* factor, int64_t n) {
  const __m512i halves = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
  for (int64_t i = 0; i < n; i += 32) {
    const float* const f = factor + i / F.block;
    const Vec by = F.block == 32
                       ? splat(*f)
                       : Vec{_mm512_permutexvar_ps(halves, _mm512_castps256_ps512(_mm256_castpd_ps(_mm256_broadcast_sd(
                                                               reinterpret_cast<const double*>(f)))))};
    store_e2m1_32<false>(codes + i / 2, load(y + i) * by, load(y + i + 16) * by);
  }
}

/// Restores memory order.
FI_VEC_INLINE void join_split(float* y, int64_t n) {
  const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  for (int64_t i = 0; i < n; i += 32) {
    const __m512 even = load(y + i).r, odd = load(y + i + 16).r;
    _mm512_storeu_ps(y + i, _mm512_permutex2var_ps(even, low, odd));
    _mm512_storeu_ps(y + i + 16, _mm512_permutex2var_ps(even, _mm512_add_epi32(low, _mm512_set1_epi32(8)), odd));
  }
}

/// n elements (a multiple of 256) of the row from `at` to codes and scale bytes, through y.
template <BlockFormat F, class T, bool kAdd, class W>
FI_VEC_INLINE void quantize_split(const BlockRule<F, float>& rule, const NormRow<T, kAdd>& row, Vec scale, const W* w,
                                  int64_t at, int64_t n, const int64_t (&ahead)[2], float* y, uint8_t* codes,
                                  uint8_t* scale_bytes) {
  alignas(64) float amax[kBlockChunk + 16], factor[kBlockChunk + 16];
  const int64_t blocks = n / F.block;
  split_row<F.block>(row, scale, w, at, n, ahead, y, amax);
  for (int64_t i = blocks; i % Vec::kLanes; ++i) amax[i] = 0;
  block_scales<F>(amax, blocks, rule.a, scale_bytes);
  if (!ordinary_scales<F>(scale_bytes, blocks)) [[unlikely]] {
    join_split(y, n);
    return quantize_blocks(rule, y, codes, scale_bytes, blocks);
  }
  block_factors<F>(scale_bytes, blocks, rule.a, rule.b, factor);
  store_split_codes<F>(y, codes, factor, n);
}

template <class W>
inline bool all_finite(const W* w, int64_t n) {
  Vec sum = zero();  // 0, unless a weight is infinite or NaN
  int64_t i = 0;
  for (; i + Vec::kLanes <= n; i += Vec::kLanes) sum = fma(load(w + i), zero(), sum);
  if (i < n) sum = fma(load_n(w + i, n - i), zero(), sum);
  return !any(is_nan(sum));
}
#endif

template <NormFp4Config C>
void rmsnorm_fp4(const NormQuantParams& q, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  using W = scalar_of_t<C.weight>;
  constexpr BlockFormat kFormat{C.block, C.ue8m0, 0};
  const NormParams& p = q.norm;
  const W* w = static_cast<const W*>(p.weight);
  const int64_t columns = p.d / C.block, chunk = kBlockChunk * C.block;
  BlockRule<kFormat, float> rule;
  make_block_rule(rule, C.ue8m0 ? q.scale : q.scale * (1.0f / 6.0f), C.ue8m0 ? 1.0f : 1.0f / q.scale);
  alignas(64) float y[kBlockChunk * C.block];
  uint8_t scale_bytes[kBlockChunk + 16];
#if defined(FI_NARROW_AVX512)
  constexpr bool kSplit = sizeof(T) == 2 && !C.silu;
  [[maybe_unused]] const bool split = kSplit && !q.normed && all_finite(w, p.d);
  const int axis = p.inner == 1 ? 0 : 1;
  [[maybe_unused]] const int64_t ahead[2] = {p.input_stride[axis], p.residual_stride[axis]};
#endif
  const auto one_row = [&](int64_t r) {
    const int64_t i0 = p.inner == 1 ? r : r / p.inner, i1 = r - i0 * p.inner;
    const NormRow<T, C.fused_add> row{
        static_cast<const T*>(p.input) + i0 * p.input_stride[0] + i1 * p.input_stride[1],
        C.fused_add ? static_cast<T*>(p.residual) + i0 * p.residual_stride[0] + i1 * p.residual_stride[1] : nullptr};
    uint8_t* codes = static_cast<uint8_t*>(p.out) + i0 * p.out_stride[0] + i1 * p.out_stride[1];
    T* normed = q.normed ? static_cast<T*>(q.normed) + i0 * q.normed_stride[0] + i1 * q.normed_stride[1] : nullptr;
    uint8_t* scales = q.scales + sf_row_offset(q.layout, r, columns);
    const Vec scale = rms_factor(row, p.d, p.eps);
    for (int64_t at = 0; at < p.d; at += chunk) {
      const int64_t n = p.d - at < chunk ? p.d - at : chunk, blocks = n / C.block;
      int64_t i = 0;  // elements done by the fast path
#if defined(FI_NARROW_AVX512)
      if constexpr (kSplit) {
        if (split && any((zero() < scale) & (scale < splat(__builtin_inff())))) {  // a finite sum
          i = n / 256 * 256;
          quantize_split<kFormat>(rule, row, scale, w, at, i, ahead, y, codes + at / 2, scale_bytes);
        }
      }
#endif
      const int64_t done = i / C.block;
      for (; i < n; i += Vec::kLanes) {
        const Vec v = row.at(at + i), normal = v * scale * load(w + at + i);
        row.keep(at + i, v);
        store(y + i, C.silu ? silu(normal) : normal);
      }
      if (normed)
        write_row(
            normed + at, n, [&](int64_t j) { return load(y + j); },
            [&](int64_t j, int64_t left) { return load_n(y + j, left); });
      if (done < blocks)
        quantize_blocks(rule, y + done * C.block, codes + (at + done * C.block) / 2, scale_bytes + done, blocks - done);
      store_scales(q.layout, scales, at / C.block, scale_bytes, blocks);
      if (q.linear_scales)
        memcpy(q.linear_scales + r * columns + at / C.block, scale_bytes, static_cast<size_t>(blocks));
    }
  };
  const int64_t begin = task * p.rows_per_task,
                end = begin + p.rows_per_task < q.padded_rows ? begin + p.rows_per_task : q.padded_rows;
  for (int64_t r = begin; r < end; ++r) {
    if (r < p.rows)
      one_row(r);
    else
      clear_scales(q.layout, q.scales + sf_row_offset(q.layout, r, columns), 0, sf_padded_columns(q.layout, columns));
  }
}

}  // namespace flashinfer::cpu
