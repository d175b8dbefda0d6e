// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <limits>
#include <tuple>

#include "flashinfer/ops/mla/plan.h"

#include "flashinfer/core/int_math.h"

namespace flashinfer::mla {
namespace {

/// A key's cost in cycles: 34 a row (2176 vector dot products a block of 64 keys) beside packing or, with few heads,
/// reading it.
constexpr int64_t kRowCycles = 34, kKeyCycles = 130;

struct Item {
  MlaWork work;
  int64_t cost;
};

/// Row tiles of at most `most` rows, near equal in size, of all requests.
std::vector<Item> tiles(std::span<const int32_t> qo_indptr, std::span<const int32_t> kv_len, int64_t num_heads,
                        bool causal, int64_t most) {
  std::vector<Item> items;
  for (size_t b = 0; b < kv_len.size(); ++b) {
    const int64_t qo_len = qo_indptr[b + 1] - qo_indptr[b], rows = qo_len * num_heads;
    if (rows == 0) continue;
    const int64_t parts = ceil_div(rows, most), size = ceil_div(rows, parts);
    for (int64_t row = 0; row < rows; row += size) {
      const int64_t end = std::min(row + size, rows);
      const int64_t keys =
          causal ? std::clamp<int64_t>((end - 1) / num_heads + 1 + kv_len[b] - qo_len, 0, kv_len[b]) : kv_len[b];
      const int64_t chunks = std::max<int64_t>(ceil_div(keys, kChunkKeys), 1);
      items.push_back({{static_cast<int32_t>(b), static_cast<int32_t>(row), static_cast<int32_t>(end), 0,
                        static_cast<int32_t>(chunks), 0, -1},
                       keys * ((end - row) * kRowCycles + kKeyCycles)});
    }
  }
  return items;
}

int64_t chunks_of(const std::vector<Item>& items) {
  int64_t n = 0;
  for (const Item& item : items) n += item.work.chunk_end;
  return n;
}

/// Tiles that cost more are cut at their chunks. Partial states cost (with 128 heads 2 % of the products), so nothing
/// is cut where whole tiles, the longest first to the least loaded thread, end within 5 % of each other.
int64_t largest_uncut(const std::vector<Item>& items, int threads) {
  if (threads <= 1) return std::numeric_limits<int64_t>::max();
  std::vector<int64_t> costs, load(static_cast<size_t>(threads), 0);
  int64_t total = 0;
  for (const Item& item : items) costs.push_back(item.cost), total += item.cost;
  std::sort(costs.rbegin(), costs.rend());
  for (int64_t cost : costs) {
    std::pop_heap(load.begin(), load.end(), std::greater<>());
    load.back() += cost;
    std::push_heap(load.begin(), load.end(), std::greater<>());
  }
  const int64_t share = total / threads;
  if (*std::max_element(load.begin(), load.end()) <= share + share / 20) return std::numeric_limits<int64_t>::max();
  return std::max<int64_t>(share / 4, 1);
}

/// The merge of a tile's chunks, cut small: it reads chunks * 2 KB a row.
void add_merges(WorkList& out, const MlaWork& w, int64_t partial) {
  constexpr int32_t kRows = 16;
  for (int32_t row = w.row_begin; row < w.row_end; row += kRows)
    out.merges.push_back({w.request, row, std::min(row + kRows, w.row_end), w.chunk_end, partial + (row - w.row_begin),
                          w.row_end - w.row_begin});
}

}  // namespace

WorkList make_work(std::span<const int32_t> qo_indptr, std::span<const int32_t> kv_len, int64_t num_heads, bool causal,
                   int threads) {
  // Smaller tiles pack the same keys again, so rows are only cut further when there is not enough to do for all
  // threads.
  int64_t most = num_heads <= kFewHeads ? kTileRows / 2 : kTileRows;
  std::vector<Item> items = tiles(qo_indptr, kv_len, num_heads, causal, most);
  while (most > 16 && chunks_of(items) < 2 * threads) items = tiles(qo_indptr, kv_len, num_heads, causal, most /= 2);
  const int64_t limit = largest_uncut(items, threads);
  WorkList out;
  std::vector<Item> parts;
  parts.reserve(items.size());
  for (const Item& item : items) {
    const MlaWork& w = item.work;
    if (item.cost <= limit || w.chunk_end == 1) {
      parts.push_back(item);
      continue;
    }
    add_merges(out, w, out.partial_rows);
    for (int32_t c = 0; c < w.chunk_end; ++c) {
      MlaWork part = w;
      part.chunk_begin = c, part.chunk_end = c + 1, part.partial = out.partial_rows;
      out.partial_rows += w.row_end - w.row_begin;
      parts.push_back({part, item.cost / w.chunk_end});
    }
  }
  std::sort(parts.begin(), parts.end(), [](const Item& a, const Item& b) {
    if (a.cost != b.cost) return a.cost > b.cost;
    return std::tie(a.work.request, a.work.row_begin, a.work.chunk_begin) <
           std::tie(b.work.request, b.work.row_begin, b.work.chunk_begin);
  });
  out.works.reserve(parts.size());
  for (const Item& part : parts) out.works.push_back(part.work);
  return out;
}

}  // namespace flashinfer::mla
