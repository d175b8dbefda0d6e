// SPDX-License-Identifier: Apache-2.0
// Gates of the recurrences, on one number: a gate is computed once for a row, head and token, never for an element.
#pragma once
#include <math.h>

namespace flashinfer::cpu::linear {

/// ln(1 + e^x); x itself above 20, where the two are equal in f32.
inline float softplus(float x) { return x > 20.0f ? x : ::log1pf(::expf(x)); }
inline float logistic(float x) { return 1.0f / (1.0f + ::expf(-x)); }
/// -e^a_log * softplus(x): ln of the decay. e^a_log is at most the largest float, because infinity * 0 is NaN.
inline float log_decay(float a_log, float x) {
  const float rate = ::expf(a_log);
  return -((rate > __FLT_MAX__ ? __FLT_MAX__ : rate) * softplus(x));
}

}  // namespace flashinfer::cpu::linear
