// SPDX-License-Identifier: Apache-2.0
// One step of the delta rule on a state S[V][K], of which row v needs nothing but itself:
//   S[v] <- decay S[v];  d = beta (v - S[v] . k);  S[v] <- S[v] + d k;  o = S[v] . q
// The two products are taken of the row as it was read, with the decay in their other operand (kd, qd), so a row is
// read once and written once, whatever the number of tokens:
//   d = beta (v - S[v] . kd);  o = S[v] . qd + d (k . q);  S[v] <- decay S[v] + d k
#pragma once
#include "flashinfer/ops/linear_attention/kernels/common/rows.h"

namespace flashinfer::cpu::linear {

inline constexpr int64_t kStateBytesAhead = 8192;  // prefetch distance

/// What a token does to every row; rows of padded(K) floats.
template <class S>
struct DeltaToken {
  const float *k, *kd, *qd;  // kd = decay * k, qd = decay * q, element by element
  const float* decay;        // of each key channel; null: alpha
  float alpha, beta, kq;     // kq = k . q
  const float* v;            // [V]
  float* o;                  // [V]
  S* after;                  // where the state after this token is stored; null: nowhere
  int64_t after_row;         // stride of its rows
  float* d = nullptr;        // [V], takes d with Corrections
  // With alpha alone, null or bf16 rows of which kd and qd are multiples, for products in bf16.
  const bf16_t *k16 = nullptr, *q16 = nullptr;
  float k16_scale = 0, q16_scale = 0;
};
template <class S>
struct DeltaState {
  const S* in;
  S* out;  // null: not written; may be `in`
  int64_t in_row, out_row;
  int64_t rows, width;  // V, K
};

}  // namespace flashinfer::cpu::linear
