// SPDX-License-Identifier: Apache-2.0
// Norms with quantised results on the CPU: the sums of kernels/cpu/norm.h, then one more pass over the row in L1 that
// normalises and quantises each element.
#pragma once
#include "flashinfer/kernels/cpu/block_quantize.h"
#include "flashinfer/kernels/cpu/e4m3_rows.h"
#include "flashinfer/kernels/cpu/exp.h"
#include "flashinfer/ops/norm/kernels/cpu/norm.h"
#include "flashinfer/ops/norm/kernels/quant_params.h"

namespace flashinfer::cpu {

/// y[i] = full(i) saturated to 8 bits for a whole row; tail(i, left) computes the rest.
template <class T, class Full, class Tail>
FI_VEC_INLINE void write_saturated(T* y, int64_t n, Full full, Tail tail) {
  int64_t i = 0;
  for (; i + Vec::kLanes <= n; i += Vec::kLanes) store_saturated(y + i, full(i));
  if (i < n) store_saturated_n(y + i, tail(i, n - i), n - i);
}

#if defined(FI_NARROW_AVX512)
/// The bf16 or f16 words of 32 values in order, rounded as by store().
FI_VEC_INLINE __m512i words_of(Split v, const bf16_t*) {
  const auto rounded = [](Vec a) {  // finite: NaN is excluded by the caller
    const __m512i u = _mm512_castps_si512(a.r), last = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    return _mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), last);
  };
  return _mm512_mask_blend_epi16(0xaaaaaaaau, _mm512_srli_epi32(rounded(v.even), 16), rounded(v.odd));
}
FI_VEC_INLINE __m512i words_of(Split v, const f16_t*) {
  return detail::even_odd_words(_mm512_cvtepu16_epi32(detail::narrow_f16(v.even)),
                                _mm512_cvtepu16_epi32(detail::narrow_f16(v.odd)));
}
/// x * scale * w * inverse to e4m3, 64 at a time; returns the number converted. slow(i) converts 64 of which some are
/// NaN or saturate.
template <class T, bool kAdd, class W, class Slow>
FI_VEC_INLINE int64_t write_e4m3(e4m3_t* y, int64_t n, const NormRow<T, kAdd>& row, const int64_t (&ahead)[2],
                                 Vec scale, const W* w, Vec inverse, Slow slow) {
  const Vec unit = inverse * splat(kE4m3Unit);
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    __m512i kept[2];
    for (int j = 0; j < 64; j += 32) {  // prefetch the next row, whose first pass only sums
      __builtin_prefetch(row.x + i + j + ahead[0], 0, 2);
      if (kAdd) __builtin_prefetch(row.residual + i + j + ahead[1], 0, 2);
    }
    const auto half = [&](int h) {
      Split v = load_split(row.x + i + 32 * h);
      const Split g = load_split(w + i + 32 * h);
      if constexpr (kAdd) {
        const Split r = load_split(row.residual + i + 32 * h);
        v = {v.even + r.even, v.odd + r.odd};
        kept[h] = words_of(v, row.x);
      }
      return Split{v.even * scale * g.even * unit, v.odd * scale * g.odd * unit};
    };
    if (!store_e4m3_split(y + i, half)) [[unlikely]] {
      slow(i);
      continue;
    }
    if constexpr (kAdd) {
      _mm512_storeu_si512(row.residual + i, kept[0]);
      _mm512_storeu_si512(row.residual + i + 32, kept[1]);
    }
  }
  return i;
}
#endif

template <NormQuantConfig C>
void rmsnorm_quant(const NormQuantParams& q, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  using W = scalar_of_t<C.weight>;
  using Y = scalar_of_t<C.out>;
  const NormParams& p = q.norm;
  const W* w = static_cast<const W*>(p.weight);
  const Vec inverse = splat(1.0f / q.scale);
  const int axis = p.inner == 1 ? 0 : 1;
  for_rows(p, task, [&](int64_t input_at, int64_t residual_at, int64_t out_at) {
    const NormRow<T, C.fused_add> row{static_cast<const T*>(p.input) + input_at,
                                      C.fused_add ? static_cast<T*>(p.residual) + residual_at : nullptr};
    const Vec scale = rms_factor(row, p.d, p.eps);
    const auto finish = [&](Vec y) { return C.silu ? silu(y) : y * inverse; };
    const auto full = [&](int64_t i) {
      const Vec v = row.at(i);
      row.keep(i, v);
      return finish(v * scale * load(w + i));
    };
    const auto tail = [&](int64_t i, int64_t n) {
      const Vec v = row.at(i, n);
      row.keep(i, v, n);
      return finish(v * scale * load_n(w + i, n));
    };
    Y* y = static_cast<Y*>(p.out) + out_at;
    if constexpr (C.out == C.dtype) return write_row(y, p.d, full, tail);
    if constexpr (C.out != C.dtype) {
      const auto part = [&](int64_t at, int64_t n) {
        write_saturated(
            y + at, n, [&](int64_t i) { return full(at + i); },
            [&](int64_t i, int64_t left) { return tail(at + i, left); });
      };
      int64_t done = 0;
#if defined(FI_NARROW_AVX512)
      if constexpr (C.out == DType::kF8E4M3 && sizeof(T) == 2 && !C.silu)
        done = write_e4m3(y, p.d, row, {p.input_stride[axis], p.residual_stride[axis]}, scale, w, inverse,
                          [&](int64_t i) { part(i, 64); });
#endif
      part(done, p.d - done);
    }
  });
}

/// Element i of a layernorm is rounded to T, as layernorm's result would be, before the division.
template <NormQuantConfig C>
void layernorm_quant(const NormQuantParams& q, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  using Y = scalar_of_t<C.out>;
  constexpr int64_t kChunk = 1024;
  const NormParams& p = q.norm;
  const float *w = static_cast<const float*>(p.weight), *b = static_cast<const float*>(p.beta);
  const Vec divisor = splat(q.scale);
  for_rows(p, task, [&](int64_t input_at, int64_t, int64_t out_at) {
    const T* x = static_cast<const T*>(p.input) + input_at;
    const LayerNormRow<T> row = layernorm_row(x, p.d, p.eps);
    Y* y = static_cast<Y*>(p.out) + out_at;
    T rounded[kChunk];
    for (int64_t at = 0; at < p.d; at += kChunk) {
      const int64_t n = p.d - at < kChunk ? p.d - at : kChunk;
      write_row(
          rounded, n, [&](int64_t i) { return row.at(at + i, load(w + at + i), load(b + at + i)); },
          [&](int64_t i, int64_t left) {
            return row.at(at + i, left, load_n(w + at + i, left), load_n(b + at + i, left));
          });
      write_saturated(
          y + at, n, [&](int64_t i) { return load(rounded + i) / divisor; },
          [&](int64_t i, int64_t left) { return load_n(rounded + i, left) / divisor; });
    }
  });
}

/// 128 columns at a time: rounded to `normed`, from there to e4m3.
template <NormQuantConfig C>
void rmsnorm_fp8_blocks(const NormQuantParams& q, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  using W = scalar_of_t<C.weight>;
  const NormParams& p = q.norm;
  const W* w = static_cast<const W*>(p.weight);
  int64_t r = task * p.rows_per_task;
  for_rows(p, task, [&](int64_t input_at, int64_t residual_at, int64_t out_at) {
    const NormRow<T, true> row{static_cast<const T*>(p.input) + input_at, static_cast<T*>(p.residual) + residual_at};
    const Vec scale = rms_factor(row, p.d, p.eps);
    T* normed = static_cast<T*>(q.normed) + r * q.normed_stride[0];
    e4m3_t* out = static_cast<e4m3_t*>(p.out) + out_at;
    for (int64_t at = 0; at < p.d; at += 128) {
      write_row(
          normed + at, 128,
          [&](int64_t i) {
            const Vec v = row.at(at + i);
            row.keep(at + i, v);
            return v * scale * load(w + at + i);
          },
          [&](int64_t, int64_t) { return zero(); });
      const float most = to_f32(block_magnitude(normed + at, 128)), amax = most < 1e-4f ? 1e-4f : most;
      q.block_scale[at / 128 * q.block_scale_stride + r] = amax / 448.0f;
      const Vec factor = splat(448.0f / amax);
      for (int64_t i = 0; i < 128; i += Vec::kLanes) store_saturated(out + at + i, load(normed + at + i) * factor);
    }
    ++r;
  });
}

}  // namespace flashinfer::cpu
