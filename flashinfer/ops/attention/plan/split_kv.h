// SPDX-License-Identifier: Apache-2.0
// Split-KV scheduling, of attention and MLA: tasks that are too long for a balanced load are cut at their chunks, whose
// softmax states reductions combine. Pure; what it chooses changes speed, never results.
#pragma once
#include <cstdint>
#include <vector>

#include "flashinfer/ops/attention/kernels/params.h"

namespace flashinfer::attention {

struct WorkList {
  std::vector<AttentionWorkItem> works;  // longest first
  std::vector<SplitKvReduction> merges;
  int64_t partial_rows = 0;           // rows of an output and of 3 floats of state
  bool tile = false, decode = false;  // attention: which kernels they are for
};

/// A work item before it is cut, and its cost in any unit.
struct WorkCost {
  AttentionWorkItem work;
  int64_t cost;
};
struct Cutting {
  int64_t limit;                       // what costs more is cut into near equal parts that cost no more
  bool single_chunks = false;          // cut into single chunks instead
  int32_t reduction_rows = INT32_MAX;  // most rows of a reduction; work items of one head only
};
/// A limit that cuts nothing.
inline constexpr int64_t kUncut = INT64_MAX / 2;

/// `items` cut, in descending order of cost: equal costs keep their order, because neighbours in the batch are
/// neighbours in memory more often than not.
void split_kv(const std::vector<WorkCost>& items, const Cutting& cutting, WorkList& out);

}  // namespace flashinfer::attention
