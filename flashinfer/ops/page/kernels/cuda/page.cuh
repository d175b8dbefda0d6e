// SPDX-License-Identifier: Apache-2.0
// Appending to a paged cache on a GPU: a block copies one token's K and V, bitwise, whatever their type.
#pragma once
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/memory.h"
#include "flashinfer/ops/page/kernels/params.h"

namespace flashinfer::cu {

FI_GLOBAL_FN int64_t strided_index(const StridedIndices& a, int64_t i) {
  return a.wide ? static_cast<const int64_t*>(a.data)[i * a.stride] : static_cast<const int32_t*>(a.data)[i * a.stride];
}

template <AppendCudaConfig C>
FI_GLOBAL_FN void append_paged(const AppendParams& p) {
  constexpr int kBytes = C.aligned ? 16 : C.item;
  depend_wait();
  const int64_t t = block_x(), b = strided_index(p.batch_indices, t);
  if (b >= 0 && b < p.batch) {
    // 32-bit: a 64-bit division is a call of some hundred instructions.
    const uint32_t position = static_cast<uint32_t>(strided_index(p.positions, t)),
                   page_size = static_cast<uint32_t>(p.page_size);
    const int64_t at = strided_index(p.kv_indptr, b) + position / page_size, entry = position % page_size;
    // The host has not checked the indices: tokens of missing pages are skipped.
    const int64_t page = at < strided_index(p.kv_indptr, b + 1) ? strided_index(p.kv_indices, at) : -1;
    const bool in_range = page >= 0 && page < p.pages;
    for (const AppendPlane& x : p.plane) {
      const char* from = static_cast<const char*>(x.from) + t * x.from_stride_n * C.item;
      char* to = static_cast<char*>(x.to) + (page * x.to_stride_page + entry * x.to_stride_n) * C.item;
      const uint32_t pieces = static_cast<uint32_t>(x.dim * C.item / kBytes),
                     all = static_cast<uint32_t>(x.heads) * pieces;
      for (uint32_t i = thread_x(); in_range && i < all; i += C.threads) {
        const int64_t h = i / pieces, piece = static_cast<int64_t>(i % pieces) * kBytes;
        store(to + h * x.to_stride_h * C.item + piece,
              load<kBytes, Hint::kOnce>(from + h * x.from_stride_h * C.item + piece));
      }
    }
  }
  depend_launch();
}

}  // namespace flashinfer::cu
