// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/attention/work.h"

#include <algorithm>
#include <tuple>

namespace flashinfer::attention {
namespace {

/// Keys that any row of tokens [t0, t1) may see: the chunks they lie in.
struct Chunks {
  int64_t begin, end, keys;
};
Chunks chunks_of(int64_t t0, int64_t t1, int64_t qo_len, int64_t kv_len, bool causal, int64_t window) {
  const int64_t off = kv_len - qo_len;
  const int64_t hi = std::clamp<int64_t>(causal ? t1 + off : kv_len, 0, kv_len);
  const int64_t lo = window >= 0 ? std::clamp<int64_t>(t0 + off - window, 0, hi) : 0;
  if (hi == lo) return {0, 1, 0};
  return {lo / kChunkKeys, (hi + kChunkKeys - 1) / kChunkKeys, hi - lo};
}

struct Item {
  AttentionWork work;
  int64_t cost;
};

/// Cuts what exceeds a quarter of a thread's share at its chunks (the partial states cost a thousandth of its reads) and
/// sorts by cost.
WorkList cut(const std::vector<Item>& items, int64_t total, int threads) {
  WorkList out;
  std::vector<Item> parts;
  parts.reserve(items.size());
  const int64_t limit = std::max<int64_t>(total / (4 * std::max(threads, 1)), 1);
  for (const Item& item : items) {
    const AttentionWork& w = item.work;
    const int64_t chunks = w.chunk_end - w.chunk_begin;
    if (threads <= 1 || item.cost <= limit || chunks == 1) {
      parts.push_back(item);
      continue;
    }
    out.merges.push_back({w.request, w.head_begin, w.head_end, w.row_begin, w.row_end, static_cast<int32_t>(chunks), out.partial_rows});
    for (int32_t c = w.chunk_begin; c < w.chunk_end; ++c) {
      AttentionWork part = w;
      part.chunk_begin = c, part.chunk_end = c + 1, part.partial = out.partial_rows;
      out.partial_rows += static_cast<int64_t>(w.row_end - w.row_begin) * (w.head_end - w.head_begin);
      parts.push_back({part, item.cost / chunks});
    }
  }
  std::sort(parts.begin(), parts.end(), [](const Item& a, const Item& b) {
    if (a.cost != b.cost) return a.cost > b.cost;
    return std::tie(a.work.request, a.work.head_begin, a.work.row_begin, a.work.chunk_begin) <
           std::tie(b.work.request, b.work.head_begin, b.work.row_begin, b.work.chunk_begin);
  });
  out.works.reserve(parts.size());
  for (const Item& part : parts) out.works.push_back(part.work);
  return out;
}

/// KV heads of one work: all whose rows fit a tile if they are neighbours in memory, but no fewer works than 4 a thread.
int64_t heads_of(int64_t rows, int64_t num_kv_heads, int64_t works_per_head, bool adjacent, int threads) {
  int64_t heads = adjacent ? std::clamp<int64_t>(kTileRows / std::max<int64_t>(rows, 1), 1, num_kv_heads) : 1;
  while (heads > 1 && (num_kv_heads + heads - 1) / heads * works_per_head < 4 * threads) heads = (heads + 1) / 2;
  return heads;
}

}  // namespace

WorkList make_work(std::span<const int32_t> qo_indptr, std::span<const int32_t> kv_len, int64_t num_qo_heads,
                   int64_t num_kv_heads, bool causal, int64_t window_left, bool heads_adjacent, int threads) {
  const int64_t group = num_qo_heads / num_kv_heads, batch = static_cast<int64_t>(kv_len.size());
  std::vector<Item> items;
  int64_t total = 0;
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t qo_len = qo_indptr.empty() ? 1 : qo_indptr[b + 1] - qo_indptr[b], kv = kv_len[b];
    for (int64_t row = 0; row < qo_len * group; row += kTileRows) {
      const int64_t end = std::min<int64_t>(row + kTileRows, qo_len * group);
      const Chunks c = chunks_of(row / group, (end - 1) / group + 1, qo_len, kv, causal, window_left);
      const int64_t heads = heads_of(end - row, num_kv_heads, batch * (c.end - c.begin), heads_adjacent, threads);
      for (int64_t h = 0; h < num_kv_heads; h += heads) {
        const int64_t h_end = std::min(h + heads, num_kv_heads);
        // Packing a block costs as much as 6 rows; 16 keys stand for the start of a task.
        const int64_t cost = (end - row + 6) * (c.keys + 16) * (h_end - h);
        items.push_back({{static_cast<int32_t>(b), static_cast<int32_t>(h), static_cast<int32_t>(h_end), static_cast<int32_t>(row),
                          static_cast<int32_t>(end), static_cast<int32_t>(c.begin), static_cast<int32_t>(c.end), 0, -1},
                         cost});
        total += cost;
      }
    }
  }
  return cut(items, total, threads);
}

}  // namespace flashinfer::attention
