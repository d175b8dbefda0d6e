// SPDX-License-Identifier: Apache-2.0
// A block of tokens of one head, or a head with a scale for each channel: the largest magnitudes, then the codes.
#pragma once
#include "flashinfer/core/int_math.h"
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
FI_VEC_INLINE void sage_block(const SageParams& p, int64_t h, int64_t b, int64_t blocks) {
  const auto* x = static_cast<const scalar_of_t<C.dtype>*>(p.x) + h * p.dim;
  auto* q = static_cast<typename SageCode<C.out>::type*>(p.q) + h * p.dim;
  const int64_t step = p.heads * p.dim, first = b * p.block;
  const int64_t end = first + p.block < p.tokens ? first + p.block : p.tokens;
  Vec most = zero();
  for (int64_t t = first; t < end; ++t)
    for (int64_t i = 0; i < p.dim; i += Vec::kLanes) most = max(abs(load_some(x + t * step + i, p.dim - i)), most);
  const float scale = sage_scale<C>(reduce_max(most));
  p.scales[h * blocks + b] = scale;
  for (int64_t t = first; t < end; ++t)
    for (int64_t i = 0; i < p.dim; i += Vec::kLanes)
      store_some(q + t * step + i, load_some(x + t * step + i, p.dim - i) / splat(scale), p.dim - i);
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
  const int64_t blocks = p.block ? ceil_div(p.tokens, p.block) : 1, items = p.heads * blocks;
  for (int64_t i = task * p.items_per_task; i < items && i < (task + 1) * p.items_per_task; ++i) {
    if (p.block)
      sage_block<C>(p, i / blocks, i % blocks, blocks);
    else
      sage_channels<C>(p, i);
  }
}

}  // namespace flashinfer::cpu
