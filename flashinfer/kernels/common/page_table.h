// SPDX-License-Identifier: Apache-2.0
// Where appended tokens go, as kernels for GPUs read it. Freestanding.
#pragma once
#include <stdint.h>

namespace flashinfer {

/// An array of int32 or int64 with a stride in elements.
struct StridedIndices {
  const void* data;
  int64_t stride, wide;  // wide: int64
};

/// Token t belongs to position positions[t] of request batch_indices[t] (negative: padding), that is to an entry of
/// page kv_indices[kv_indptr[b] + positions[t] / page_size]. Tokens whose request, position or page does not exist are
/// skipped: the host has not looked at the indices.
struct AppendPages {
  StridedIndices batch_indices, positions, kv_indices, kv_indptr;
  int64_t page_size, pages, batch;
};

}  // namespace flashinfer
