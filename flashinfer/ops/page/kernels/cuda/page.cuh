// SPDX-License-Identifier: Apache-2.0
// Appending to a paged cache on a GPU: a block copies one token's K and V (MLA: its latent row and rope part), bitwise,
// whatever their type. And the index arrays of a step.
#pragma once
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/memory.h"
#include "flashinfer/kernels/cuda/page_table.h"
#include "flashinfer/ops/page/kernels/params.h"

namespace flashinfer::cu {

template <AppendCudaConfig C>
FI_GLOBAL_FN void append_paged(const AppendParams& p) {
  constexpr int kBytes = C.aligned ? 16 : C.item;
  depend_wait();
  const int64_t t = block_x();
  const PageEntry at = page_entry(p.pages, t);
  for (const AppendPlane& x : p.plane) {
    const char* from = static_cast<const char*>(x.from) + t * x.from_stride_n * C.item;
    char* to = static_cast<char*>(x.to) + (at.page * x.to_stride_page + at.entry * x.to_stride_n) * C.item;
    const uint32_t pieces = static_cast<uint32_t>(x.dim * C.item / kBytes),
                   all = static_cast<uint32_t>(x.heads) * pieces;
    for (uint32_t i = thread_x(); at.page >= 0 && i < all; i += C.threads) {
      const int64_t h = i / pieces, piece = static_cast<int64_t>(i % pieces) * kBytes;
      store(to + h * x.to_stride_h * C.item + piece,
            load<kBytes, Hint::kOnce>(from + h * x.from_stride_h * C.item + piece));
    }
  }
  depend_launch();
}

/// A thread a token.
template <IndexCudaConfig C>
FI_GLOBAL_FN void batch_positions(const PositionsParams& p) {
  depend_wait();
  const int64_t t = static_cast<int64_t>(block_x()) * C.threads + thread_x();
  if (t < p.tokens) {
    int64_t b = 0, high = p.batch + 1;  // the last request that starts at or before the token
    while (high - b > 1) {
      const int64_t middle = (b + high) / 2;
      (strided_index(p.indptr, middle) <= t ? b : high) = middle;
    }
    const bool real = b < p.batch;  // else padding behind the last request
    p.batch_indices[t * p.batch_stride] = real ? static_cast<int32_t>(b) : -1;
    p.positions[t * p.position_stride] =
        real ? static_cast<int32_t>(strided_index(p.seq_lens, b) - strided_index(p.indptr, b + 1) + t) : 0;
  }
  depend_launch();
}

/// A thread a request.
template <IndexCudaConfig C>
FI_GLOBAL_FN void seq_lens(const SeqLensParams& p) {
  depend_wait();
  const int64_t b = static_cast<int64_t>(block_x()) * C.threads + thread_x();
  if (b < p.batch) {
    const int64_t pages = strided_index(p.indptr, b + 1) - strided_index(p.indptr, b);
    p.out[b * p.out_stride] =
        static_cast<int32_t>((pages > 1 ? pages - 1 : 0) * p.page_size + strided_index(p.last_page_len, b));
  }
  depend_launch();
}

}  // namespace flashinfer::cu
