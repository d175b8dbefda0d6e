// SPDX-License-Identifier: Apache-2.0
// How the append kernel of kernels/cuda/page.cuh is launched: pure functions of the call.
#pragma once
#include <cstdint>

#include "flashinfer/core/cuda_launch.h"
#include "flashinfer/ops/page/kernels/params.h"

namespace flashinfer::cuda {

/// 128 threads move K or V of 8 heads of 128 in bf16 (2 KB) at once.
inline AppendCudaConfig append_config(int item, const AppendParams& p) {
  uint64_t all = 0;
  for (const AppendPlane& x : p.plane)
    all |= reinterpret_cast<uintptr_t>(x.from) | reinterpret_cast<uintptr_t>(x.to) |
           static_cast<uint64_t>(
               (x.from_stride_n | x.from_stride_h | x.to_stride_page | x.to_stride_n | x.to_stride_h | x.dim) * item);
  return {.item = item, .aligned = all % 16 == 0, .threads = 128};
}
inline Launch append_launch(const AppendCudaConfig& c, const AppendParams& p, bool pdl) {
  Launch l;
  l.grid[0] = grid_size(p.tokens);
  l.block[0] = static_cast<unsigned>(c.threads);
  l.pdl = pdl;
  return l;
}

}  // namespace flashinfer::cuda
