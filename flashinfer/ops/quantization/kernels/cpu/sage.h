// SPDX-License-Identifier: Apache-2.0
// A block of tokens of one head, or a head with a scale for each channel: the largest magnitudes, then the codes. And
// the mean of a head's tokens.
#pragma once
#include "flashinfer/kernels/cpu/narrow.h"
#include "flashinfer/ops/quantization/kernels/sage_params.h"

namespace flashinfer::cpu {

template <DType T>
struct SageCode : scalar_of<T> {};
template <>
struct SageCode<DType::kI8> {
  using type = int8_t;
};

template <class T>
FI_VEC_INLINE Vec load_some(const T* p, int64_t n) {
  return n >= Vec::kLanes ? load(p) : load_n(p, n);
}
template <class T>
FI_VEC_INLINE void store_some(T* p, Vec v, int64_t n) {
  if (n >= Vec::kLanes) return store_saturated(p, v);
  store_saturated_n(p, v, n);
}

template <SageConfig C>
FI_VEC_INLINE float sage_scale(float largest) {
  return largest > 0 ? largest / (C.out == DType::kI8 ? 127.0f : 448.0f) : 1.0f;
}

template <SageConfig C>
FI_VEC_INLINE void sage_block(const SageParams& p, int64_t h, const SageBlock& b) {
  const auto* x = static_cast<const scalar_of_t<C.dtype>*>(p.x) + h * p.dim;
  auto* q = static_cast<typename SageCode<C.out>::type*>(p.q) + h * p.dim;
  const int64_t step = p.heads * p.dim;
  const auto at = [&](int64_t t, int64_t i) {
    const Vec v = load_some(x + t * step + i, p.dim - i);
    return p.mean ? v - load_some(p.mean + h * p.dim + i, p.dim - i) : v;
  };
  Vec most = zero();
  for (int64_t t = b.first; t < b.end; ++t)
    for (int64_t i = 0; i < p.dim; i += Vec::kLanes) most = max(abs(at(t, i)), most);
  const float scale = sage_scale<C>(reduce_max(most));
  p.scales[h * p.columns + b.column] = scale;
  for (int64_t t = b.first; t < b.end; ++t)
    for (int64_t i = 0; i < p.dim; i += Vec::kLanes) store_some(q + t * step + i, at(t, i) / splat(scale), p.dim - i);
}

template <SageConfig C>
FI_VEC_INLINE void sage_channels(const SageParams& p, int64_t h) {
  const auto* x = static_cast<const scalar_of_t<C.dtype>*>(p.x) + h * p.dim;
  auto* q = static_cast<typename SageCode<C.out>::type*>(p.q) + h * p.dim;
  const int64_t step = p.heads * p.dim;
  float* scales = p.scales + h * p.dim;
  for (int64_t i = 0; i < p.dim; i += Vec::kLanes) {
    const int64_t n = p.dim - i < Vec::kLanes ? p.dim - i : Vec::kLanes;
    Vec most = zero();
    for (int64_t t = 0; t < p.tokens; ++t) most = max(abs(load_some(x + t * step + i, n)), most);
    float lanes[Vec::kLanes];
    store(lanes, most);
    for (int64_t d = 0; d < n; ++d) scales[i + d] = sage_scale<C>(lanes[d]);
    const Vec scale = load_some(scales + i, n);
    for (int64_t t = 0; t < p.tokens; ++t)
      store_some(q + t * step + i, load_some(x + t * step + i, n) / scale, n);  // lanes beyond n are not stored
  }
}

template <SageConfig C>
void sage_quantize(const SageParams& p, int64_t task) {
  const int64_t items = p.heads * (p.blocks ? p.block_count : 1);
  for (int64_t i = task * p.items_per_task; i < items && i < (task + 1) * p.items_per_task; ++i) {
    if (p.blocks)
      sage_block<C>(p, i / p.block_count, p.blocks[i % p.block_count]);
    else
      sage_channels<C>(p, i);
  }
}

/// scales[h, i]: the mean of x over all tokens. Sums of 256 tokens are added, so that the error of a long sum is small.
template <SageConfig C>
void sage_mean(const SageParams& p, int64_t task) {
  for (int64_t h = task * p.items_per_task; h < p.heads && h < (task + 1) * p.items_per_task; ++h) {
    const auto* x = static_cast<const scalar_of_t<C.dtype>*>(p.x) + h * p.dim;
    for (int64_t i = 0; i < p.dim; i += Vec::kLanes) {
      const int64_t n = p.dim - i < Vec::kLanes ? p.dim - i : Vec::kLanes;
      Vec all = zero();
      for (int64_t first = 0; first < p.tokens; first += 256) {
        Vec sum = zero();
        for (int64_t t = first; t < p.tokens && t < first + 256; ++t) sum += load_some(x + t * p.heads * p.dim + i, n);
        all += sum;
      }
      float lanes[Vec::kLanes];
      store(lanes, all / splat(p.tokens ? static_cast<float>(p.tokens) : 1.0f));
      for (int64_t d = 0; d < n; ++d) p.scales[h * p.dim + i + d] = lanes[d];
    }
  }
}

}  // namespace flashinfer::cpu
