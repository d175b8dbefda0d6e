// SPDX-License-Identifier: Apache-2.0
#include "batch.h"

#include <flashinfer/core/int_math.h>

namespace llm {

void Batch::clear() {
  for (Part* p : {&decode, &prefill, &all}) {
    p->row_indptr.assign(1, 0);
    p->page_indptr.assign(1, 0);
    p->pages.clear();
    p->last_page_len.clear();
  }
  for (auto* v : {&tokens, &positions, &request_of_row, &logit_rows}) v->clear();
}

void Batch::add(std::span<const int32_t> new_tokens, int64_t length, std::span<const int32_t> pages, int64_t page_size,
                bool decoding, bool wants_logits) {
  const int64_t total = length + static_cast<int64_t>(new_tokens.size()), used = flashinfer::ceil_div(total, page_size);
  const auto request = static_cast<int32_t>(all.requests());
  for (Part* p : {decoding ? &decode : &prefill, &all}) {
    p->row_indptr.push_back(p->row_indptr.back() + static_cast<int32_t>(new_tokens.size()));
    p->page_indptr.push_back(p->page_indptr.back() + static_cast<int32_t>(used));
    p->pages.insert(p->pages.end(), pages.begin(), pages.begin() + used);
    p->last_page_len.push_back(static_cast<int32_t>(total - (used - 1) * page_size));
  }
  for (size_t i = 0; i < new_tokens.size(); ++i) {
    tokens.push_back(new_tokens[i]);
    positions.push_back(static_cast<int32_t>(length) + static_cast<int32_t>(i));
    request_of_row.push_back(request);
  }
  if (wants_logits) logit_rows.push_back(static_cast<int32_t>(tokens.size()) - 1);
}

}  // namespace llm
