// SPDX-License-Identifier: Apache-2.0
// What the kernels of Kimi delta attention read alike.
#pragma once
#include "flashinfer/ops/linear_attention/kernels/cuda/inputs.cuh"
#include "flashinfer/ops/linear_attention/kernels/kda/params.h"

namespace flashinfer::cu::linear {

FI_GLOBAL_FN int64_t kda_at(const KdaRows& r, int64_t token, int64_t head) { return token * r.token + head * r.head; }
/// -1 where the pool has no such slot.
FI_GLOBAL_FN int64_t kda_slot(int64_t slot, int64_t slots) { return slot < slots ? slot : -1; }
/// ln of a channel's decay from g as it is in memory. `bias`: of dt_bias; rate: e^A_log.
FI_GLOBAL_FN float kda_log_decay(const KdaParams& p, float g, float bias, float rate) {
  if (p.gate == KdaGate::kNone) return g;
  const float x = g + bias;
  return p.gate == KdaGate::kSoftplus ? -(rate * softplus(x)) : p.lower_bound * logistic(rate * x);
}

}  // namespace flashinfer::cu::linear
