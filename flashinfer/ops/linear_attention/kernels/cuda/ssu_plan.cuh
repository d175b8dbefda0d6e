// SPDX-License-Identifier: Apache-2.0
// What the kernels of state-space models read of a call: which tokens and slots a sequence has, step sizes.
#pragma once
#include "flashinfer/ops/linear_attention/kernels/cuda/inputs.cuh"
#include "flashinfer/ops/linear_attention/kernels/mamba/ssu_cuda_params.h"

namespace flashinfer::cu::linear {

/// What a sequence does; -1: none.
struct SsuPlan {
  int64_t row, tokens, read, write, cache;
  int64_t checkpoint, checkpoint_slot;  // after this many tokens the state goes to this slot

  FI_GLOBAL_FN SsuPlan(const SsuCudaParams& a, int64_t i)
      : row(i), tokens(a.steps), read(i), write(-1), cache(-1), checkpoint(-1), checkpoint_slot(-1) {
    if (a.lengths.rows.data) row = a.lengths.at(i, 0), tokens = a.lengths.at(i + 1, 0) - row;
    if (a.whole) {
      read = a.call.source.data ? i : -1, write = a.call.pool.data ? i : -1;
      if (!a.checkpoint_token.rows.data) return;
      const int64_t token = a.checkpoint_token.at(i, 0), to = a.checkpoint_slot.at(i, 0);
      if (token < 0 || to < 0 || to >= a.checkpoint_slots) return;
      checkpoint = a.lengths.rows.data ? token - row : token, checkpoint_slot = to;
      return;
    }
    if (a.read.rows.data) {
      const int64_t column = a.accepted.rows.data ? a.accepted.at(i, 0) - 1 : 0;
      read = column < a.columns ? slot(a, a.read.at(i, column > 0 ? column : 0)) : -1;
    }
    if (read < 0) return;
    if (a.updates && !a.dst_each_token) write = a.dst.rows.data ? slot(a, a.dst.at(i, 0)) : read;
    if (a.call.cache.data) cache = a.cache_row.rows.data ? a.cache_row.at(i, 0) : read;
    if (cache >= a.cache_rows) cache = -1;
  }
  FI_GLOBAL_FN static int64_t slot(const SsuCudaParams& a, int64_t x) {
    return x == a.pad || x < 0 || x >= a.slots ? -1 : x;
  }
};
FI_GLOBAL_FN int64_t ssu_at(const SsuOperand& o, int64_t row, int64_t t, int64_t head) {
  return o.row * row + o.step * t + o.head * head;
}
/// dt, as it is in memory, with its bias, softplus and bounds.
FI_GLOBAL_FN float ssu_step_size(const SsuParams& p, float dt, int64_t head, int64_t dim) {
  if (p.dt_bias.data) dt += element(p.dt_bias.dtype, p.dt_bias.data, p.dt_bias.head * head + p.dt_bias.dim * dim);
  dt = p.softplus ? softplus(dt) : dt;
  return dt < p.dt_min ? p.dt_min : dt > p.dt_max ? p.dt_max : dt;
}

}  // namespace flashinfer::cu::linear
