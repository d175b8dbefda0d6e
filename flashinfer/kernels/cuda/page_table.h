// SPDX-License-Identifier: Apache-2.0
// Page and entry of an appended token.
#pragma once
#include "flashinfer/kernels/common/page_table.h"
#include "flashinfer/kernels/cuda/cu.h"

namespace flashinfer::cu {

FI_GLOBAL_FN int64_t strided_index(const StridedIndices& a, int64_t i) {
  return a.wide ? static_cast<const int64_t*>(a.data)[i * a.stride] : static_cast<const int32_t*>(a.data)[i * a.stride];
}

struct PageEntry {
  int64_t page, entry;  // page -1: the token is skipped
};
FI_GLOBAL_FN PageEntry page_entry(const AppendPages& p, int64_t token) {
  const int64_t b = strided_index(p.batch_indices, token);
  if (b < 0 || b >= p.batch) return {-1, 0};
  // 32-bit: a 64-bit division is a call of some hundred instructions.
  const uint32_t position = static_cast<uint32_t>(strided_index(p.positions, token)),
                 page_size = static_cast<uint32_t>(p.page_size);
  const int64_t at = strided_index(p.kv_indptr, b) + position / page_size;
  const int64_t page = at < strided_index(p.kv_indptr, b + 1) ? strided_index(p.kv_indices, at) : -1;
  return {page >= 0 && page < p.pages ? page : -1, position % page_size};
}

}  // namespace flashinfer::cu
