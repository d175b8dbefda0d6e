// SPDX-License-Identifier: Apache-2.0
#include "split.h"

#include <algorithm>
#include <string>

#include <flashinfer/core/int_math.h>

namespace llm {

namespace {
/// The share of `n` units of each rank, in order; they differ by one at most.
Columns share_of(int64_t n, int64_t unit, int rank, int size) {
  Columns c;
  const int64_t units = flashinfer::ceil_div(n, unit);
  for (int r = 0; r < size; ++r) {
    const int64_t begin = std::min(n, units * r / size * unit), end = std::min(n, units * (r + 1) / size * unit);
    c.of.push_back(end - begin);
    if (r == rank) c.first = begin, c.own = end - begin;
  }
  return c;
}
}  // namespace

Split::Split(const ModelShape& s, int rank, int size) {
  constexpr int64_t kBlock = 16;  // outputs of a block of packed weights
  const auto require = [size](int64_t parts, const char* what) {
    if (parts < size)
      throw UserError("--tensor-parallel " + std::to_string(size) + ": the model has " + std::to_string(parts) + " " +
                      what + ", so at most " + std::to_string(parts) + " ranks can share it");
  };
  require(s.kv_heads, "key-value heads");
  require(flashinfer::ceil_div(s.width, kBlock), "blocks of 16 columns in its width");
  require(flashinfer::ceil_div(s.hidden, kBlock), "blocks of 16 columns in its hidden layer");
  require(flashinfer::ceil_div(s.vocabulary, kBlock), "blocks of 16 tokens in its vocabulary");
  const int64_t group = s.heads / s.kv_heads;
  const Columns kv = share_of(s.kv_heads, 1, rank, size);
  first_kv_head = kv.first, kv_heads = kv.own, heads = kv.own * group;
  key = share_of(s.kv_heads * s.head_dim, s.head_dim, rank, size);
  query = share_of(s.heads * s.head_dim, group * s.head_dim, rank, size);
  width = share_of(s.width, kBlock, rank, size);
  hidden = share_of(s.hidden, kBlock, rank, size);
  vocabulary = share_of(s.vocabulary, kBlock, rank, size);
}

}  // namespace llm
