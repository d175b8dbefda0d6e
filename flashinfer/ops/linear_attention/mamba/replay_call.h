// SPDX-License-Identifier: Apache-2.0
// The sequences of the replaying ops. Internal to the family.
#pragma once
#include <vector>

#include "flashinfer/op/index_checks.h"
#include "flashinfer/ops/linear_attention/kernels/mamba/replay_params.h"
#include "flashinfer/ops/linear_attention/mamba/replay.h"

namespace flashinfer::ops::linear_attention {

/// New tokens of a sequence at most.
inline int64_t replay_tokens(const CheckpointingSsu& a) {
  return a.cu_seqlens ? a.max_seqlen.value_or(0) : a.x.size(1);
}
inline int64_t replay_count(const CheckpointingSsu& a) {
  return a.cu_seqlens ? a.cu_seqlens->size(0) - 1 : a.x.size(0);
}
inline int64_t replay_slot(const CheckpointingSsu& a, int64_t i) {
  return a.state_batch_indices ? op::index_at(*a.state_batch_indices, i) : i;
}

inline std::vector<ReplayRow> replay_rows(const CheckpointingSsu& a) {
  const int64_t t = replay_tokens(a), window = a.x_cache.size(2) - t;
  std::vector<ReplayRow> rows;
  for (int64_t i = 0; i < replay_count(a); ++i) {
    ReplayRow r{a.cu_seqlens ? 0 : i, 0, t, replay_slot(a, i), -1, 0, 0};
    if (a.cu_seqlens) r.first = op::index_at(*a.cu_seqlens, i), r.tokens = op::index_at(*a.cu_seqlens, i + 1) - r.first;
    if (r.read == a.pad_slot_id) {
      r.read = -1;
    } else {
      r.start = op::index_at(a.ring_start, r.read), r.replay = op::index_at(a.prev_num_accepted_tokens, r.read);
      if (r.tokens && r.replay + t > window) r.write = r.read;
      if (!r.tokens) r.replay = 0;
    }
    rows.push_back(r);
  }
  return rows;
}
inline std::vector<ReplayRow> replay_rows(const ReplaySsmMaterializeLayer& a) {
  std::vector<ReplayRow> rows;
  for (int64_t i = 0; i < a.src_slots.size(0); ++i) {
    const int64_t from = op::index_at(a.src_slots, i), to = op::index_at(a.dst_slots, i);
    if (from == a.pad_slot_id || to == a.pad_slot_id) continue;
    rows.push_back({0, 0, 0, from, to, op::index_at(a.ring_start, i), op::index_at(a.replay_prefix_len, i)});
  }
  return rows;
}

}  // namespace flashinfer::ops::linear_attention
