// SPDX-License-Identifier: Apache-2.0
// Merging attention states on the CPU: a row (token, head) is summed over its states in ascending order, in f32.
#pragma once
#include <math.h>

#include "flashinfer/kernels/cpu/exp.h"
#include "flashinfer/ops/cascade/kernels/params.h"

namespace flashinfer::cpu {
namespace merge {

inline const float* lse_of(const MergeParams& p, int64_t i, int64_t n, int64_t h) {
  const int64_t x = p.pair ? i : 0;
  return p.s[x] + n * p.s_stride_n[x] + h * p.s_stride_h[x] + (p.pair ? 0 : i * p.s_stride_state);
}
template <class T>
inline const T* value_of(const MergeParams& p, int64_t i, int64_t n, int64_t h) {
  const int64_t x = p.pair ? i : 0;
  return static_cast<const T*>(p.v[x]) + n * p.v_stride_n[x] + h * p.v_stride_h[x] +
         (p.pair ? 0 : i * p.v_stride_state);
}
inline float exp2(float x) {
  float lanes[Vec::kLanes];
  store(lanes, cpu::exp2(splat(x)));
  return lanes[0];
}

template <class T, class U>
inline void row(const MergeParams& p, int64_t n, int64_t h) {
  float m = -INFINITY, sum = 0;
  for (int64_t i = 0; i < p.states; ++i) {
    const float s = *lse_of(p, i, n, h);
    if (!(s <= m)) m = s;  // keeps a NaN
  }
  for (int64_t i = 0; i < p.states && m != -INFINITY; ++i) sum += exp2(*lse_of(p, i, n, h) - m);
  const Vec inv = splat(m == -INFINITY ? 0.0f : 1.0f / sum);
  U* out = static_cast<U*>(p.v_out) + n * p.v_out_stride_n + h * p.v_out_stride_h;
  for (int64_t d = 0; d < p.dim; d += Vec::kLanes) {
    const int64_t rest = p.dim - d;
    Vec acc = zero();
    for (int64_t i = 0; i < p.states; ++i) {
      const float s = *lse_of(p, i, n, h);
      if (s == -INFINITY) continue;  // the value of an empty state is ignored, even if it is NaN
      const T* v = value_of<T>(p, i, n, h) + d;
      acc = fma(rest >= Vec::kLanes ? load(v) : load_n(v, rest), splat(exp2(s - m)), acc);
    }
    if (rest >= Vec::kLanes)
      store(out + d, acc * inv);
    else
      store_n(out + d, acc * inv, rest);
  }
  p.s_out[n * p.s_out_stride_n + h * p.s_out_stride_h] = m == -INFINITY ? m : m + log2f(sum);
}
}  // namespace merge

/// Task: tokens [task * tokens_per_task, ...). The outputs may alias state 0.
template <MergeConfig C>
void merge_states(const MergeParams& p, int64_t task) {
  const int64_t begin = task * p.tokens_per_task, end = begin + p.tokens_per_task;
  for (int64_t n = begin; n < end && n < p.tokens; ++n) {
    if (p.mask && !p.mask[n * p.mask_stride]) continue;
    for (int64_t h = 0; h < p.heads; ++h) merge::row<scalar_of_t<C.dtype>, scalar_of_t<C.out>>(p, n, h);
  }
}

}  // namespace flashinfer::cpu
