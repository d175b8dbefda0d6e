// SPDX-License-Identifier: Apache-2.0
// The rows of one forward pass and where their keys and values lie.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace llm {

/// One step's rows, requests that decode (one row each) first, then those that prefill. All index arrays describe the
/// state after this step's keys and values are appended.
struct Batch {
  struct Part {
    std::vector<int32_t> row_indptr{0};   // rows of each request
    std::vector<int32_t> page_indptr{0};  // pages of each request, in `pages`
    std::vector<int32_t> pages;
    std::vector<int32_t> last_page_len;
    int64_t requests() const { return static_cast<int64_t>(last_page_len.size()); }
    int64_t rows() const { return row_indptr.back(); }
  };
  Part decode, prefill;
  std::vector<int32_t> tokens, positions;  // of every row
  std::vector<int32_t> request_of_row;     // counts through decode and prefill
  std::vector<int32_t> logit_rows;         // rows whose logits are needed
  Part all;                                // decode and prefill together, for the append

  void clear();
  /// `length` tokens are in the cache before; `pages` has room for them and the new ones.
  void add(std::span<const int32_t> new_tokens, int64_t length, std::span<const int32_t> pages, int64_t page_size,
           bool decoding, bool wants_logits);
};

}  // namespace llm
