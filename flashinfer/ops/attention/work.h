// SPDX-License-Identifier: Apache-2.0
// The scheduler: rows of a batch as a list of independent works. Pure; what it chooses changes speed, never results.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "flashinfer/ops/attention/params.h"

namespace flashinfer::attention {

struct WorkList {
  std::vector<AttentionWork> works;   // longest first
  std::vector<AttentionMerge> merges;
  int64_t partial_rows = 0;  // of padded(Dvo) + 3 floats
};

/// `qo_indptr` empty: one row per request. `heads_adjacent`: the heads of a token are neighbours
/// in memory (NHD). `threads`: how many tasks may run at once.
WorkList make_work(std::span<const int32_t> qo_indptr, std::span<const int32_t> kv_len, int64_t num_qo_heads,
                   int64_t num_kv_heads, bool causal, int64_t window_left, bool heads_adjacent, int threads);

}  // namespace flashinfer::attention
