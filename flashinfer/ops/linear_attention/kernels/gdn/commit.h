// SPDX-License-Identifier: Apache-2.0
// Applies the accepted tokens of a replay cache to states [V, 128] of f32, each read once and written once.
#pragma once
#include "flashinfer/ops/linear_attention/kernels/common/delta_rows.h"
#include "flashinfer/ops/linear_attention/kernels/common/gates.h"
#include "flashinfer/ops/linear_attention/kernels/gdn/commit_params.h"

namespace flashinfer::cpu {

/// A task is a value head of a batch row in a layer.
template <GdnCommitConfig C>
void gdn_commit(const GdnCommitParams& p, int64_t task) {
  using namespace linear;
  const int64_t h = task % p.value_heads, i = task / p.value_heads % p.batch, layer = task / p.value_heads / p.batch;
  const int64_t slot = p.slots[i * p.slots_stride], tokens = p.accepted[i * p.accepted_stride];
  if (slot <= p.null_slot || tokens == 0) return;
  const int64_t track = p.track_slots ? p.track_slots[i * p.track_slots_stride] : p.null_slot;
  const int64_t track_step = p.track_steps ? p.track_steps[i * p.track_steps_stride] : -1;
  const int64_t n = kGdnCommitWidth, query = h * p.heads / p.value_heads;
  float* const row = p.scratch;
  float *zeros = row + n, *unread = zeros + n;  // no output is computed: q is 0
  for (int64_t j = 0; j < n; ++j) zeros[j] = 0;
  auto* tokens_of = reinterpret_cast<DeltaToken<float>*>(unread + n);
  float* at = unread + n + tokens * 32;
  float* const states = p.states + layer * p.layer + h * p.head;
  for (int64_t t = 0; t < tokens; ++t, at += 3 * n) {
    float *k = at, *kd = k + n, *v = kd + n;
    widen_row(DType::kBF16, p.raw_k, layer * p.k_layer + slot * p.k_slot + query * p.k_head + t * p.k_token, n, k);
    widen_row(DType::kBF16, p.raw_v, layer * p.v_layer + slot * p.v_slot + h * p.v_head + t * p.v_token, n, v);
    if (p.l2norm) scale_row(k, inverse_norm(k, n), n);
    const float alpha = ::expf(p.log_decay[layer * p.g_layer + slot * p.g_slot + h * p.g_head + t]);
    const float beta = p.beta[layer * p.beta_layer + slot * p.beta_slot + h * p.beta_head + t];
    for (int64_t j = 0; j < n; j += Vec::kLanes) store(kd + j, load(k + j) * splat(alpha));
    float* const after = t == track_step && track > p.null_slot ? states + track * p.slot : nullptr;
    tokens_of[t] = {k, kd, zeros, nullptr, alpha, beta, 0.0f, v, unread, after, p.row};
  }
  float* const state = states + slot * p.slot;
  delta_rows<kGdnCommitWidth, false>(DeltaState<float>{state, state, p.row, p.row, n, n}, tokens_of, tokens, row);
}

}  // namespace flashinfer::cpu
