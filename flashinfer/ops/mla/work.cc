// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>

#include "flashinfer/ops/mla/plan.h"

#include "flashinfer/core/int_math.h"

namespace flashinfer::mla {
namespace {
using attention::WorkCost;

/// A key's cost in cycles: 34 a row (2176 vector dot products a block of 64 keys) beside packing or, with few heads,
/// reading it.
constexpr int64_t kRowCycles = 34, kKeyCycles = 130;

/// Row tiles of at most `most` rows, near equal in size, of all requests.
std::vector<WorkCost> tiles(std::span<const int32_t> qo_indptr, std::span<const int32_t> kv_len, int64_t num_heads,
                            bool causal, int64_t most) {
  std::vector<WorkCost> items;
  for (size_t b = 0; b < kv_len.size(); ++b) {
    const int64_t qo_len = qo_indptr[b + 1] - qo_indptr[b], rows = qo_len * num_heads;
    if (rows == 0) continue;
    const int64_t parts = ceil_div(rows, most), size = ceil_div(rows, parts);
    for (int64_t row = 0; row < rows; row += size) {
      const int64_t end = std::min(row + size, rows);
      const int64_t keys =
          causal ? std::clamp<int64_t>((end - 1) / num_heads + 1 + kv_len[b] - qo_len, 0, kv_len[b]) : kv_len[b];
      const int64_t chunks = std::max<int64_t>(ceil_div(keys, kChunkKeys), 1);
      items.push_back({{static_cast<int32_t>(b), 0, 1, static_cast<int32_t>(row), static_cast<int32_t>(end), 0,
                        static_cast<int32_t>(chunks), 0, -1},
                       keys * ((end - row) * kRowCycles + kKeyCycles)});
    }
  }
  return items;
}

int64_t chunks_of(const std::vector<WorkCost>& items) {
  int64_t n = 0;
  for (const WorkCost& item : items) n += item.work.chunk_end;
  return n;
}

/// Tiles that cost more are cut at their chunks. Partial states cost (with 128 heads 2 % of the products), so nothing
/// is cut where whole tiles, the longest first to the least loaded thread, end within 5 % of each other.
int64_t largest_uncut(const std::vector<WorkCost>& items, int threads) {
  if (threads <= 1) return attention::kUncut;
  std::vector<int64_t> costs, load(static_cast<size_t>(threads), 0);
  int64_t total = 0;
  for (const WorkCost& item : items) costs.push_back(item.cost), total += item.cost;
  std::sort(costs.rbegin(), costs.rend());
  for (int64_t cost : costs) {
    std::pop_heap(load.begin(), load.end(), std::greater<>());
    load.back() += cost;
    std::push_heap(load.begin(), load.end(), std::greater<>());
  }
  const int64_t share = total / threads;
  if (*std::max_element(load.begin(), load.end()) <= share + share / 20) return attention::kUncut;
  return std::max<int64_t>(share / 4, 1);
}

}  // namespace

WorkList make_work(std::span<const int32_t> qo_indptr, std::span<const int32_t> kv_len, int64_t num_heads, bool causal,
                   int threads) {
  // Smaller tiles pack the same keys again, so rows are only cut further when there is not enough to do for all
  // threads.
  int64_t most = num_heads <= kFewHeads ? kTileRows / 2 : kTileRows;
  std::vector<WorkCost> items = tiles(qo_indptr, kv_len, num_heads, causal, most);
  while (most > 16 && chunks_of(items) < 2 * threads) items = tiles(qo_indptr, kv_len, num_heads, causal, most /= 2);
  WorkList out;
  // A reduction reads chunks * 2 KB a row, so it is cut small.
  split_kv(items, {.limit = largest_uncut(items, threads), .single_chunks = true, .reduction_rows = 16}, out);
  return out;
}

}  // namespace flashinfer::mla
