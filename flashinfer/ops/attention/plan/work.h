// SPDX-License-Identifier: Apache-2.0
// The scheduler: rows of a batch as a list of independent works. Pure; what it chooses changes speed, never results.
#pragma once
#include <cstdint>
#include <span>

#include "flashinfer/ops/attention/kernels/decode_params.h"
#include "flashinfer/ops/attention/plan/split_kv.h"

namespace flashinfer::attention {

struct Batch {
  std::span<const int32_t> qo_indptr, kv_len;  // [B+1], [B]
  int64_t num_qo_heads, num_kv_heads;
  int64_t kv_bytes;  // of one key's K and V of one head
  bool causal;
  int64_t window_left;
  bool heads_adjacent;  // the heads of a token are neighbours in memory (NHD)
  bool decode;          // the decode kernel supports the plan's features: requests of few rows are given to it
  int threads;          // how many tasks may run at once
};
/// Whether a request of `qo_len` tokens is given to the decode kernel. By its own length alone: results must not depend
/// on other requests of the batch.
bool to_decode(int64_t qo_len, int64_t group, bool supported);
WorkList make_work(const Batch& batch);

}  // namespace flashinfer::attention
