// SPDX-License-Identifier: Apache-2.0
// Short rows (a head of q, k, v) between memory of any float type and f32. The type is a run-time value: states are far
// larger than the rows, and kernels are compiled for the state's type alone.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cpu/lanes.h"

namespace flashinfer::cpu::linear {

inline constexpr int64_t kPad = 32;  // rows of f32 in scratch memory are multiples of this, the rest zeros
FI_VEC_INLINE int64_t padded(int64_t n) { return round_up(n, kPad); }

template <class T>
inline void widen_as(const void* from, int64_t at, int64_t n, float* to) {
  constexpr int64_t L = Vec::kLanes;
  const T* x = static_cast<const T*>(from) + at;
  int64_t i = 0;
  for (; i + L <= n; i += L) store(to + i, load(x + i));
  if (i < n) {
    store(to + i, load_n(x + i, n - i));
    i += L;
  }
  for (; i < padded(n); i += L) store(to + i, zero());
}
/// to[0..n) = elements at .. at + n of `from`, then zeros up to padded(n).
inline void widen_row(DType type, const void* from, int64_t at, int64_t n, float* to) {
  if (type == DType::kBF16) return widen_as<bf16_t>(from, at, n, to);
  if (type == DType::kF16) return widen_as<f16_t>(from, at, n, to);
  if (type == DType::kF8E4M3) return widen_as<e4m3_t>(from, at, n, to);
  if (type == DType::kF8E5M2) return widen_as<e5m2_t>(from, at, n, to);
  widen_as<float>(from, at, n, to);
}
inline float element(DType type, const void* from, int64_t at) {
  if (type == DType::kBF16) return to_f32(static_cast<const bf16_t*>(from)[at]);
  if (type == DType::kF16) return to_f32(static_cast<const f16_t*>(from)[at]);
  return static_cast<const float*>(from)[at];
}

template <class T>
inline void narrow_as(const float* from, int64_t n, void* to, int64_t at) {
  constexpr int64_t L = Vec::kLanes;
  T* y = static_cast<T*>(to) + at;
  int64_t i = 0;
  if constexpr (sizeof(T) == 1) {
    for (; i < n; ++i) y[i] = T(from[i]);
    return;
  } else {
    for (; i + 2 * L <= n; i += 2 * L) write_pair(y + i, load(from + i), load(from + i + L));
    for (; i < n; i += L) {
      const int64_t left = n - i < L ? n - i : L;
      write_tail(y + i, load_n(from + i, left), left);
    }
  }
}
/// Elements at .. at + n of `to`, rounded once.
inline void narrow_row(DType type, const float* from, int64_t n, void* to, int64_t at) {
  if (type == DType::kBF16) return narrow_as<bf16_t>(from, n, to, at);
  if (type == DType::kF16) return narrow_as<f16_t>(from, n, to, at);
  if (type == DType::kF8E4M3) return narrow_as<e4m3_t>(from, n, to, at);
  if (type == DType::kF8E5M2) return narrow_as<e5m2_t>(from, n, to, at);
  narrow_as<float>(from, n, to, at);
}

/// x . y of rows of padded(n).
inline float dot_row(const float* x, const float* y, int64_t n) {
  return sum_row(
      padded(n), [&](Vec acc, int64_t i) { return fma(load(x + i), load(y + i), acc); },
      [](Vec acc, int64_t, int64_t) { return acc; });
}
inline void scale_row(float* x, float by, int64_t n) {
  for (int64_t i = 0; i < padded(n); i += Vec::kLanes) store(x + i, load(x + i) * splat(by));
}
/// 1 / sqrt(sum of squares + 1e-6).
inline float inverse_norm(const float* x, int64_t n) { return 1.0f / __builtin_sqrtf(dot_row(x, x, n) + 1e-6f); }

}  // namespace flashinfer::cpu::linear
