// SPDX-License-Identifier: Apache-2.0
// Inputs whose type is a run-time value (states are far larger than they are, and kernels are compiled for the state's
// type alone), gates, and sums over a group of lanes.
#pragma once
#include "flashinfer/kernels/cuda/math.h"
#include "flashinfer/kernels/cuda/rows.h"
#include "flashinfer/kernels/cuda/warp.h"

namespace flashinfer::cu::linear {

FI_GLOBAL_FN float element(DType type, const void* from, int64_t at) {
  if (type == DType::kBF16) return to_f32(static_cast<const bf16_t*>(from)[at]);
  if (type == DType::kF16) return to_f32(static_cast<const f16_t*>(from)[at]);
  return static_cast<const float*>(from)[at];
}
FI_GLOBAL_FN void put_element(DType type, void* to, int64_t at, float x) {
  if (type == DType::kBF16)
    static_cast<bf16_t*>(to)[at] = from_f32<bf16_t>(x);
  else if (type == DType::kF16)
    static_cast<f16_t*>(to)[at] = from_f32<f16_t>(x);
  else
    static_cast<float*>(to)[at] = x;
}
/// N elements from index `column` of a row of n elements that begins at `from` + at; zeros from n on. `wide`: the row
/// is 16-byte aligned.
template <int N>
FI_GLOBAL_FN void load_columns(DType type, const void* from, int64_t at, int32_t column, int32_t n, bool wide,
                               float (&to)[N]) {
  if (wide && column + N <= n) {
    if (type == DType::kBF16)
      load_piece<true, N>(static_cast<const bf16_t*>(from) + at, column, n, to);
    else if (type == DType::kF16)
      load_piece<true, N>(static_cast<const f16_t*>(from) + at, column, n, to);
    else
      load_piece<true, N>(static_cast<const float*>(from) + at, column, n, to);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) to[i] = column + i < n ? element(type, from, at + column + i) : 0.0f;
  }
}

/// The other way.
template <int N>
FI_GLOBAL_FN void store_columns(DType type, void* to, int64_t at, int32_t column, int32_t n, bool wide,
                                const float (&from)[N]) {
  if (wide && column + N <= n) {
    if (type == DType::kBF16)
      store_piece<true, N>(static_cast<bf16_t*>(to) + at, column, n, from);
    else if (type == DType::kF16)
      store_piece<true, N>(static_cast<f16_t*>(to) + at, column, n, from);
    else
      store_piece<true, N>(static_cast<float*>(to) + at, column, n, from);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i)
      if (column + i < n) put_element(type, to, at + column + i, from[i]);
  }
}

/// ln(1 + e^x); x itself above 20, where the two are equal in f32.
FI_GLOBAL_FN float softplus(float x) { return x > 20.0f ? x : ::log1pf(::expf(x)); }
FI_GLOBAL_FN float logistic(float x) { return rcp_fast(1.0f + ::expf(-x)); }
/// e^a_log, at most the largest float, because infinity * 0 is NaN.
FI_GLOBAL_FN float decay_rate(float a_log) {
  const float rate = ::expf(a_log);
  return rate < kInf ? rate : 0x1.fffffep127f;
}

/// x rounded to an input type and back.
FI_GLOBAL_FN float rounded(DType type, float x) {
  if (type == DType::kBF16) return to_f32(from_f32<bf16_t>(x));
  if (type == DType::kF16) return to_f32(from_f32<f16_t>(x));
  return x;
}

}  // namespace flashinfer::cu::linear
