// SPDX-License-Identifier: Apache-2.0
// Rows addressed by token and head, in a ragged tensor or in a paged pool of either layout. Freestanding.
#pragma once
#include <stdint.h>

namespace flashinfer {

/// Element i of token `slot` and head h lies at data + (slot / page_size) * stride_page + (slot % page_size) * stride_n
/// + h * stride_h + i, in elements. A ragged tensor is one page of kOnePage tokens.
struct TokenRows {
  static constexpr int64_t kOnePage = INT64_MAX;
  void* data;
  int64_t page_size, stride_page, stride_n, stride_h;
};

template <class T>
inline T* token_row(const TokenRows& r, int64_t slot) {
  const int64_t page = slot / r.page_size;
  return static_cast<T*>(r.data) + page * r.stride_page + (slot - page * r.page_size) * r.stride_n;
}

}  // namespace flashinfer
