// SPDX-License-Identifier: Apache-2.0
// Attention over one rank's share of a context: of `world` ranks, rank r has the tokens r, r + world, ... in its cache.
// Internal to the family.
#pragma once
#include <algorithm>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/attention/api/draft_mask.h"

namespace flashinfer::attention {

struct ContextShare {
  const TensorView& before;  // [requests] tokens of all ranks before the first query row
  int64_t world, rank;
  /// Keys of this rank that row `row` of request `b` sees: tokens up to its own.
  int64_t keys(int64_t b, int64_t row) const {
    const int64_t last = op::index_at(before, b) + row - rank;
    return last < 0 ? 0 : last / world + 1;
  }
};

/// ValueError for a rank outside the world and another number of requests.
inline void check_context_share(const Plan& p, const ContextShare& share) {
  FI_CHECK(share.world >= 1 && share.rank >= 0 && share.rank < share.world, ValueError, "cp_rank is ", share.rank,
           ", but must be in 0..", share.world - 1, " (cp_world is ", share.world, ")");
  FI_CHECK(share.before.rank() == 1 && share.before.size(0) == p.batch_size, ValueError, "causal_seqlens_kv_global is ",
           to_string(share.before), ", but must be [", p.batch_size, "] (requests)");
}
/// Lets every row see the first keys of its request that are not behind it in the whole context. The plan has the rows
/// and lengths. ValueError as above, and for rows that would see more keys than the cache has.
inline void set_context_share(Plan& p, const ContextShare& share) {
  check_context_share(p, share);
  const int32_t *qo = p.qo_indptr.data_as<int32_t>(), *kv = p.kv_len.data_as<int32_t>();
  p.causal = false;
  set_mask_indptr(p);
  const int64_t* at = p.mask_indptr.data_as<int64_t>();
  p.mask = Tensor::zeros({at[p.batch_size]}, DType::kU8);
  for (int64_t b = 0; b < p.batch_size; ++b)
    for (int64_t i = 0, n = qo[b + 1] - qo[b]; i < n; ++i) {
      const int64_t seen = share.keys(b, i);
      FI_CHECK(seen <= kv[b], ValueError, "seq_lens[", b, "] is ", kv[b], ", but row ", i, " of the request sees ",
               seen, " keys of this rank (causal_seqlens_kv_global is ", op::index_at(share.before, b), ")");
      set_ones(p.mask.data_as<uint8_t>() + at[b], i * kv[b], i * kv[b] + seen);
    }
}

}  // namespace flashinfer::attention
