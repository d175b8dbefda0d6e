// SPDX-License-Identifier: Apache-2.0
// Elements from one layout to another on a GPU. Neighbouring threads have neighbours of the fastest axis; the host
// chooses the widest element that both sides allow.
#pragma once
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/memory.h"
#include "flashinfer/ops/common/kernels/strided_copy_params.h"

namespace flashinfer::cu {

template <StridedCopyConfig C>
FI_GLOBAL_FN void strided_copy(const StridedCopyParams& p) {
  depend_wait();
  const uint32_t i = block_x() * C.threads + thread_x();
  if (i < p.count) {
    uint32_t rest = i;
    int64_t from = 0, to = 0;
#pragma unroll
    for (uint32_t k = 0; k < kStridedCopyAxes; ++k) {
      if (k >= p.axes) break;
      const uint32_t q = k + 1 < p.axes ? rest / p.size[k] : 0, at = rest - q * p.size[k];
      from += at * p.from_stride[k], to += at * p.to_stride[k];
      rest = q;
    }
    store(p.to + to, load<C.bytes, Hint::kOnce>(p.from + from));
  }
  depend_launch();
}

}  // namespace flashinfer::cu
