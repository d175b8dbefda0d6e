// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/attention/plan/work.h"

#include "flashinfer/core/int_math.h"

#include <algorithm>

namespace flashinfer::attention {
namespace {

/// Keys that any row of tokens [t0, t1) may see: the chunks that hold them.
struct Chunks {
  int64_t begin, end, keys;
};
Chunks chunks_of(const Batch& a, int64_t t0, int64_t t1, int64_t qo_len, int64_t kv_len, int64_t chunk_keys) {
  const int64_t off = kv_len - qo_len;
  const int64_t hi = std::clamp<int64_t>(a.causal ? t1 + off : kv_len, 0, kv_len);
  const int64_t lo = a.window_left >= 0 ? std::clamp<int64_t>(t0 + off - a.window_left, 0, hi) : 0;
  if (hi == lo) return {0, 1, 0};
  return {lo / chunk_keys, ceil_div(hi, chunk_keys), hi - lo};
}

/// Costs are in dot products of one row with one key and head: packing a block costs as much as 6 rows, reading a key
/// in bf16 as 7 (docs/attention-cpu.md); 16 keys stand for the start of a task.
constexpr int64_t kPackRows = 6, kReadRows = 7, kStartKeys = 16;

/// KV heads of one work: `most`, but no fewer works than 4 a thread where there are so many heads.
int64_t heads_of(const Batch& a, int64_t most, int64_t works_per_head) {
  int64_t heads = std::clamp<int64_t>(most, 1, a.num_kv_heads);
  while (heads > 1 && ceil_div(a.num_kv_heads, heads) * works_per_head < 4 * a.threads) heads = (heads + 1) / 2;
  return heads;
}

void add_rows(const Batch& a, int64_t b, int64_t row, int64_t end, bool decode, std::vector<WorkCost>& items) {
  const int64_t group = a.num_qo_heads / a.num_kv_heads, batch = static_cast<int64_t>(a.kv_len.size());
  const int64_t qo_len = a.qo_indptr[b + 1] - a.qo_indptr[b], rows = end - row;
  const Chunks c =
      chunks_of(a, row / group, (end - 1) / group + 1, qo_len, a.kv_len[b], decode ? kDecodeChunkKeys : kChunkKeys);
  int64_t most = a.heads_adjacent ? kTileRows / rows : 1;
  if (decode)
    most = std::min(kDecodeRows / (qo_len * pass_rows(group)),
                    std::max<int64_t>(1, kDecodeBlockBytes / (kDecodeKeys * a.kv_bytes)));
  const int64_t heads = heads_of(a, most, batch * (c.end - c.begin));
  for (int64_t h = 0; h < a.num_kv_heads; h += heads) {
    const int64_t h_end = std::min(h + heads, a.num_kv_heads);
    items.push_back(
        {{static_cast<int32_t>(b), static_cast<int32_t>(h), static_cast<int32_t>(h_end), static_cast<int32_t>(row),
          static_cast<int32_t>(end), static_cast<int32_t>(c.begin), static_cast<int32_t>(c.end), decode, -1},
         (rows + (decode ? kReadRows : kPackRows)) * (c.keys + kStartKeys) * (h_end - h)});
  }
}

/// Rows of the largest tiles: all that fit, but no fewer works than 8 a thread while packing stays cheap (96 rows: 8
/// %).
int64_t most_rows(const Batch& a) {
  const int64_t group = a.num_qo_heads / a.num_kv_heads, batch = static_cast<int64_t>(a.kv_len.size());
  int64_t most = kTileRows;
  for (; most > kTileRows / 4; most /= 2) {
    int64_t works = 0;
    for (int64_t b = 0; b < batch; ++b)
      works += ceil_div((a.qo_indptr[b + 1] - a.qo_indptr[b]) * group, most) * a.num_kv_heads;
    if (works >= 8 * a.threads) break;
  }
  return most;
}
/// Near equal parts of `rows`: one of 384 and one of 128 pack as often as two of 256, but less evenly. Whole register
/// tiles.
int64_t tile_rows(int64_t rows, int64_t most) {
  const int64_t parts = std::max<int64_t>(ceil_div(rows, most), 1);
  return ceil_div(rows, 6 * parts) * 6;
}

}  // namespace

bool to_decode(int64_t qo_len, int64_t group, bool supported) {
  return supported && qo_len <= kMaxDecodeQueryTokens && qo_len * pass_rows(group) <= kDecodeRows;
}

WorkList make_work(const Batch& a) {
  const int64_t group = a.num_qo_heads / a.num_kv_heads, batch = static_cast<int64_t>(a.kv_len.size());
  const int64_t most = most_rows(a);
  WorkList out;
  std::vector<WorkCost> items;
  items.reserve(static_cast<size_t>(batch));
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t rows = (a.qo_indptr[b + 1] - a.qo_indptr[b]) * group;
    const bool decode = to_decode(rows / group, group, a.decode);
    if (rows > 0) (decode ? out.decode : out.tile) = true;
    const int64_t step = decode ? rows : tile_rows(rows, most);
    for (int64_t row = 0; row < rows; row += step)
      add_rows(a, b, row, std::min<int64_t>(row + step, rows), decode, items);
  }
  int64_t total = 0;
  for (const WorkCost& item : items) total += item.cost;
  // What exceeds a twelfth of a thread's share is cut: the last task to end then costs a few per cent of the whole, and
  // the states that are left a hundredth of the reads.
  split_kv(items, {.limit = a.threads > 1 ? std::max<int64_t>(total / (12 * a.threads), 1) : kUncut}, out);
  return out;
}

}  // namespace flashinfer::attention
