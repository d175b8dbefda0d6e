// SPDX-License-Identifier: Apache-2.0
// How the merge kernel of kernels/cuda/merge.cuh is launched: pure functions of the call.
#pragma once
#include <cstdint>

#include "flashinfer/core/cuda_launch.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/cascade/kernels/params.h"

namespace flashinfer::cuda {

inline MergeCudaConfig merge_config(const MergeConfig& c, const MergeParams& p) {
  const int64_t in = c.dtype == DType::kF32 ? 4 : 2, out = c.out == DType::kF32 ? 4 : 2;
  uint64_t all = reinterpret_cast<uintptr_t>(p.v_out) | static_cast<uint64_t>(p.v_out_stride_n * out) |
                 static_cast<uint64_t>(p.v_out_stride_h * out);
  for (int i = 0; i < (p.pair ? 2 : 1); ++i)
    all |= reinterpret_cast<uintptr_t>(p.v[i]) | static_cast<uint64_t>(p.v_stride_n[i] * in) |
           static_cast<uint64_t>(p.v_stride_h[i] * in);
  if (!p.pair) all |= static_cast<uint64_t>(p.v_stride_state * in);
  return {.dtype = c.dtype, .out = c.out, .aligned = all % 16 == 0 && p.dim % 8 == 0, .threads = 128};
}
/// A row is 1 to 32 threads, a power of two: 8 elements each (the kernel's threads_of).
inline Launch merge_launch(const MergeCudaConfig& c, const MergeParams& p, bool pdl) {
  const int64_t pieces = ceil_div(p.dim, 8);
  int64_t width = 1;
  while (width < 32 && width < pieces) width *= 2;
  Launch l;
  l.grid[0] = grid_size(ceil_div(p.tokens * p.heads * width, c.threads));
  l.block[0] = static_cast<unsigned>(c.threads);
  l.pdl = pdl;
  return l;
}

}  // namespace flashinfer::cuda
