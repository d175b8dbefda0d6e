// SPDX-License-Identifier: Apache-2.0
// How several processes share one model.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "shape.h"

namespace llm {

/// The columns of a matrix that each rank computes, and where this rank's begin. One rank has all.
struct Columns {
  std::vector<int64_t> of;  // by rank
  int64_t first = 0, own = 0;
};
/// A rank of several processes that compute one model (ranks.h).
struct Parallel {
  int rank = 0, size = 1;
  std::string group;  // of all ranks
};

/// How the ranks split a model: heads of attention, columns of everything else. No sum is split, so every element is
/// computed as by one rank: logits and tokens are the same to the bit, whatever the number of ranks.
struct Split {
  /// UserError: fewer key-value heads, or blocks of columns, than ranks.
  Split(const ModelShape& shape, int rank, int size);
  int64_t first_kv_head, kv_heads, heads;         // of this rank
  Columns query, key, width, hidden, vocabulary;  // query: columns of all heads; key: of keys, and of values
};

}  // namespace llm
