// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/attention/plan/split_kv.h"

#include <algorithm>

#include "flashinfer/core/int_math.h"

namespace flashinfer::attention {
namespace {

/// The states of chunk c of `w` are stored at rows partial + c * rows.
void add_reductions(const AttentionWorkItem& w, int64_t rows, int32_t most, WorkList& out) {
  const int32_t chunks = w.chunk_end - w.chunk_begin;
  for (int64_t row = w.row_begin; row < w.row_end; row += most)
    out.merges.push_back({w.request, w.head_begin, w.head_end, static_cast<int32_t>(row),
                          static_cast<int32_t>(std::min<int64_t>(row + most, w.row_end)), chunks, w.decode, 0,
                          out.partial_rows + (row - w.row_begin), rows});
}

void cut(const WorkCost& item, const Cutting& cutting, std::vector<WorkCost>& parts, WorkList& out) {
  const AttentionWorkItem& w = item.work;
  const int64_t chunks = w.chunk_end - w.chunk_begin;
  int64_t pieces = std::min(chunks, ceil_div(item.cost, cutting.limit));
  if (pieces <= 1) return parts.push_back(item);
  if (cutting.single_chunks) pieces = chunks;
  const int64_t rows = static_cast<int64_t>(w.row_end - w.row_begin) * (w.head_end - w.head_begin);
  const int64_t each = ceil_div(chunks, pieces);
  add_reductions(w, rows, cutting.reduction_rows, out);
  for (int64_t c = w.chunk_begin; c < w.chunk_end; c += each) {
    WorkCost part = item;
    part.work.chunk_begin = static_cast<int32_t>(c),
    part.work.chunk_end = static_cast<int32_t>(std::min<int64_t>(c + each, w.chunk_end));
    part.work.partial = out.partial_rows;
    part.cost = item.cost * (part.work.chunk_end - part.work.chunk_begin) / chunks;
    out.partial_rows += rows * (part.work.chunk_end - part.work.chunk_begin);
    parts.push_back(part);
  }
}

}  // namespace

void split_kv(const std::vector<WorkCost>& items, const Cutting& cutting, WorkList& out) {
  std::vector<WorkCost> parts;
  parts.reserve(items.size());
  for (const WorkCost& item : items) cut(item, cutting, parts, out);
  std::stable_sort(parts.begin(), parts.end(), [](const WorkCost& x, const WorkCost& y) { return x.cost > y.cost; });
  out.works.reserve(parts.size());
  for (const WorkCost& part : parts) out.works.push_back(part.work);
}

}  // namespace flashinfer::attention
