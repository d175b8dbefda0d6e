// SPDX-License-Identifier: Apache-2.0
// Parameters of the kernel that plans a decode (plan.cuh). Freestanding.
#pragma once
#include "flashinfer/ops/attention/kernels/cuda/params.h"

namespace flashinfer {

struct AttentionPlanConfig {
  int threads;  // of the one block

  static constexpr const char* kName = "flashinfer::AttentionPlanConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("threads", threads);
  }
  friend constexpr bool operator==(const AttentionPlanConfig&, const AttentionPlanConfig&) = default;
  /// Of shared memory: each request's places, then the sums of each warp.
  constexpr int shared_bytes() const { return (threads + threads / 32) * 16; }
};
struct AttentionPlanParams {
  const int32_t* seq_lens;      // [requests]
  int32_t *kv_indptr, *kv_len;  // [requests + 1], [requests]: written
  AttentionTile* tiles;         // [most_tiles]: written; those that are over have no rows
  AttentionCudaMerge* cuts;     // [most_cuts]
  int32_t requests, page_size;
  int32_t width;            // pages of a request in the table
  int32_t rows, tile_rows;  // packed rows of each request, and of a tile at most
  int32_t most_tiles, most_cuts;
};

}  // namespace flashinfer
