// SPDX-License-Identifier: Apache-2.0
// Between two steps of a decode loop on a GPU.
#pragma once
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/memory.h"
#include "flashinfer/kernels/cuda/page_table.h"
#include "flashinfer/ops/page/kernels/step_params.h"

namespace flashinfer::cu {

/// A block a row.
template <GatherRowsConfig C>
FI_GLOBAL_FN void gather_rows(const GatherRowsParams& p) {
  depend_wait();
  const int64_t row = block_x(), from = strided_index(p.indices, row);
  const bool real = from >= 0 && from < p.rows;
  const char* x = static_cast<const char*>(p.input) + (real ? from * p.input_stride : 0);
  char* y = static_cast<char*>(p.out) + row * p.out_stride;
  for (int64_t i = static_cast<int64_t>(thread_x()) * C.piece; i < p.bytes; i += C.threads * C.piece) {
    Pack<char, C.piece> piece{};
    if (real) piece = load<C.piece>(x + i);
    store(y + i, piece);
  }
  depend_launch();
}

/// A thread a slot.
template <AdvanceStepConfig C>
FI_GLOBAL_FN void advance_step(const AdvanceStepParams& p) {
  depend_wait();
  const int64_t b = static_cast<int64_t>(block_x()) * C.threads + thread_x();
  if (b < p.slots) advance_slot(p, static_cast<int32_t>(b));
  depend_launch();
}

}  // namespace flashinfer::cu
