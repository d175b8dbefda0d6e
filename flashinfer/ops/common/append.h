// SPDX-License-Identifier: Apache-2.0
// Where appended tokens go, checked with the same messages by every operator that appends.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "flashinfer/kernels/common/page_table.h"
#include "flashinfer/op/call.h"

namespace flashinfer::ops {

/// Token t belongs to position positions[t] of request batch_indices[t], that is to entry positions[t] % page_size of
/// page kv_indices[kv_indptr[b] + positions[t] / page_size].
struct AppendTable {
  const TensorView &batch_indices, &positions, &kv_indices, &kv_indptr;
};

inline StridedIndices strided_indices(const TensorView& t) { return {t.data(), t.stride(0), t.dtype() == DType::kI64}; }
/// The table of `batch` requests for a kernel.
inline AppendPages append_pages(const AppendTable& a, int64_t pages, int64_t page_size, int64_t batch) {
  return {strided_indices(a.batch_indices),
          strided_indices(a.positions),
          strided_indices(a.kv_indices),
          strided_indices(a.kv_indptr),
          page_size,
          pages,
          batch};
}

/// kv_indptr against kv_indices; ValueError also when a request's last page holds no token or more than page_size.
/// There are as many requests as kv_last_page_len has entries. Returns the entries of kv_indptr that are theirs.
inline TensorView check_page_table(const TensorView& kv_indices, const TensorView& all_kv_indptr,
                                   const TensorView* kv_last_page_len, int64_t page_size) {
  TensorView kv_indptr = all_kv_indptr;
  if (kv_last_page_len) {
    op::check_indptr_room("kv_indptr", kv_indptr, kv_last_page_len->size(0), "kv_last_page_len");
    kv_indptr = kv_indptr.slice(0, 0, kv_last_page_len->size(0) + 1);
  }
  const int64_t used = op::check_indptr("kv_indptr", kv_indptr), batch = kv_indptr.size(0) - 1;
  FI_CHECK(used <= kv_indices.size(0), ValueError, "kv_indptr[", batch, "] is ", used, ", but kv_indices has only ",
           kv_indices.size(0), " entries");
  for (int64_t b = 0; kv_last_page_len && b < batch; ++b) {
    const int64_t last = op::index_at(*kv_last_page_len, b);
    const bool empty = op::index_at(kv_indptr, b) == op::index_at(kv_indptr, b + 1);
    FI_CHECK(empty || (last >= 1 && last <= page_size), ValueError, "kv_last_page_len[", b, "] is ", last,
             ", but must be in 1..", page_size, " (page_size)");
  }
  return kv_indptr;
}

/// Page of token t, or -1 for padding (a negative batch index). ValueError: a request that is not there, a position
/// outside its pages, a page id outside the pool.
inline int64_t page_of_token(const AppendTable& a, int64_t t, int64_t pages, int64_t page_size) {
  const int64_t b = op::index_at(a.batch_indices, t), position = op::index_at(a.positions, t),
                batch = a.kv_indptr.size(0) - 1;
  if (b < 0) return -1;
  FI_CHECK(b < batch, ValueError, "batch_indices[", t, "] is ", b, ", but there are ", batch, " requests");
  const int64_t first = op::index_at(a.kv_indptr, b), held = op::index_at(a.kv_indptr, b + 1) - first;
  FI_CHECK(position >= 0 && position / page_size < held, ValueError, "positions[", t, "] is ", position,
           ", but request ", b, " has ", held, " pages of ", page_size, " tokens");
  const int64_t at = first + position / page_size, page = op::index_at(a.kv_indices, at);
  FI_CHECK(page >= 0 && page < pages, ValueError, "kv_indices[", at, "] is ", page, ", but the pool has ", pages,
           " pages");
  return page;
}
inline void check_append(const AppendTable& a, int64_t pages, int64_t page_size) {
  for (int64_t t = 0; t < a.batch_indices.size(0); ++t) page_of_token(a, t, pages, page_size);
}

/// Flat slot (page * page_size + entry) of every token, -1 for padding.
inline std::vector<int64_t> append_slots(const AppendTable& a, int64_t pages, int64_t page_size) {
  std::vector<int64_t> slots(static_cast<size_t>(a.batch_indices.size(0)));
  for (size_t t = 0; t < slots.size(); ++t) {
    const int64_t page = page_of_token(a, static_cast<int64_t>(t), pages, page_size);
    slots[t] = page < 0 ? -1 : page * page_size + op::index_at(a.positions, static_cast<int64_t>(t)) % page_size;
  }
  return slots;
}

}  // namespace flashinfer::ops
