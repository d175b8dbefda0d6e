// SPDX-License-Identifier: Apache-2.0
// Hyper-connections on the CPU. A row's four streams are read once; the 24 mixes of a row are scalar work.
#pragma once
#include "flashinfer/kernels/cpu/exp.h"
#include "flashinfer/kernels/cpu/lanes.h"
#include "flashinfer/ops/mhc/kernels/params.h"

namespace flashinfer::cpu {

template <class T>
FI_VEC_INLINE Vec load_mhc(const T* p, int64_t n) {
  return n >= Vec::kLanes ? load(p) : load_n(p, n);
}

template <class T>
inline void mhc_post_row(const MhcParams& p, int64_t r) {
  constexpr int64_t L = Vec::kLanes;
  const int64_t h = p.hidden;
  const T *x = static_cast<const T*>(p.x) + r * h, *residual = static_cast<const T*>(p.residual) + r * kMhcStreams * h;
  T* out = static_cast<T*>(p.out) + r * kMhcStreams * h;
  const float *post = p.post_in + r * kMhcStreams, *comb = p.comb_in + r * kMhcStreams * kMhcStreams;
  for (int j = 0; j < kMhcStreams; ++j) {
    const auto at = [&](int64_t i, int64_t n) {
      Vec y = load_mhc(x + i, n) * splat(post[j]);
      for (int k = 0; k < kMhcStreams; ++k)
        y = fma(load_mhc(residual + k * h + i, n), splat(comb[k * kMhcStreams + j]), y);
      return y;
    };
    write_row(out + j * h, h, [&](int64_t i) { return at(i, L); }, [&](int64_t i, int64_t n) { return at(i, n); });
  }
}

/// sigmoid of four numbers.
inline void mhc_sigmoid(const float* x, float* y) {
  const Vec v = sigmoid(load_n(x, kMhcStreams));
  store_n(y, v, kMhcStreams);
}
/// Softmax of the rows of m, then Sinkhorn's iteration.
inline void mhc_sinkhorn(float* m, int64_t repeat, float eps) {
  constexpr int S = kMhcStreams;
  float shifted[S * S];
  for (int i = 0; i < S; ++i) {
    float top = m[i * S];
    for (int j = 1; j < S; ++j) top = m[i * S + j] > top ? m[i * S + j] : top;
    for (int j = 0; j < S; ++j) shifted[i * S + j] = m[i * S + j] - top;
  }
  for (int i = 0; i < S * S; i += S) store_n(m + i, exp(load_n(shifted + i, S)), S);
  for (int i = 0; i < S; ++i) {
    const float sum = m[i * S] + m[i * S + 1] + m[i * S + 2] + m[i * S + 3];
    for (int j = 0; j < S; ++j) m[i * S + j] = m[i * S + j] / sum + eps;
  }
  for (int64_t k = 0; k < repeat; ++k) {
    for (int i = 0; k > 0 && i < S; ++i) {
      const float sum = m[i * S] + m[i * S + 1] + m[i * S + 2] + m[i * S + 3] + eps;
      for (int j = 0; j < S; ++j) m[i * S + j] /= sum;
    }
    for (int j = 0; j < S; ++j) {
      const float sum = m[j] + m[S + j] + m[2 * S + j] + m[3 * S + j] + eps;
      for (int i = 0; i < S; ++i) m[i * S + j] /= sum;
    }
  }
}

template <class T>
inline void mhc_pre_row(const MhcParams& p, int64_t r) {
  constexpr int64_t L = Vec::kLanes;
  const int64_t h = p.hidden;
  const T* residual = static_cast<const T*>(p.residual) + r * kMhcStreams * h;
  float squares = 0, mix[kMhcMixes] = {};
  for (int64_t s = 0; s < p.splits; ++s) {
    if (p.sqrsum) squares += p.sqrsum[s * p.rows + r];
    for (int i = 0; i < kMhcMixes; ++i) mix[i] += p.dot_mix[(s * p.rows + r) * kMhcMixes + i];
  }
  if (!p.sqrsum)
    squares = sum_row(
        kMhcStreams * h,
        [&](Vec a, int64_t i) {
          const Vec v = load(residual + i);
          return fma(v, v, a);
        },
        [&](Vec a, int64_t i, int64_t n) {
          const Vec v = load_n(residual + i, n);
          return fma(v, v, a);
        });
  const float factor = 1.0f / __builtin_sqrtf(squares * p.inverse_k + p.rms_eps);
  for (int i = 0; i < kMhcMixes; ++i) mix[i] = mix[i] * factor * p.scale[i < 4 ? 0 : i < 8 ? 1 : 2] + p.base[i];
  float pre[kMhcStreams], post[kMhcStreams];
  mhc_sigmoid(mix, pre);
  mhc_sigmoid(mix + kMhcStreams, post);
  for (int i = 0; i < kMhcStreams; ++i) p.post_out[r * kMhcStreams + i] = post[i] * p.post_factor;
  float* comb = p.comb_out + r * kMhcStreams * kMhcStreams;
  for (int i = 0; i < kMhcStreams * kMhcStreams; ++i) comb[i] = mix[2 * kMhcStreams + i];
  mhc_sinkhorn(comb, p.repeat, p.sinkhorn_eps);
  const auto at = [&](int64_t i, int64_t n) {
    Vec y = zero();
    for (int k = 0; k < kMhcStreams; ++k) y = fma(load_mhc(residual + k * h + i, n), splat(pre[k] + p.pre_eps), y);
    return y;
  };
  write_row(
      static_cast<T*>(p.out) + r * h, h, [&](int64_t i) { return at(i, L); },
      [&](int64_t i, int64_t n) { return at(i, n); });
}

template <MhcConfig C>
void mhc(const MhcParams& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  const int64_t begin = task * p.rows_per_task,
                end = begin + p.rows_per_task < p.rows ? begin + p.rows_per_task : p.rows;
  for (int64_t r = begin; r < end; ++r) {
    if constexpr (C.post)
      mhc_post_row<T>(p, r);
    else
      mhc_pre_row<T>(p, r);
  }
}

}  // namespace flashinfer::cpu
