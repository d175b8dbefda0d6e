// SPDX-License-Identifier: Apache-2.0
// How the activation kernel of kernels/cuda/activation.cuh is launched: pure functions of the call.
#pragma once
#include <cstdint>

#include "flashinfer/core/cuda_launch.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/activation/kernels/params.h"

namespace flashinfer::cuda {

/// 256 threads: four 16-byte loads in flight of each of 2048 threads of an SM are 128 KB, more than latency times
/// bandwidth needs (about 40 KB an SM at 4.8 TB/s and 1 us).
inline ActCudaConfig act_config(const ActConfig& c, const ActParams& p) {
  const int64_t size = c.dtype == DType::kF32 ? 4 : 2;
  uint64_t all =
      reinterpret_cast<uintptr_t>(p.input) | reinterpret_cast<uintptr_t>(p.out) | static_cast<uint64_t>(p.d * size);
  for (int32_t k = 0; k < p.outer; ++k)
    if (p.size[k] > 1)
      all |= static_cast<uint64_t>(p.input_stride[k] * size) | static_cast<uint64_t>(p.out_stride[k] * size);
  return {.dtype = c.dtype, .kind = c.kind, .aligned = all % 16 == 0, .threads = 256};
}
inline Launch act_launch(const ActCudaConfig& c, const ActParams& p, bool pdl) {
  Launch l;
  const int64_t n = c.dtype == DType::kF32 ? 4 : 8, pieces = ceil_div(p.d, n);
  l.block[0] = static_cast<unsigned>(c.threads);
  l.pdl = pdl;
  l.grid[0] = 0;
  if (pieces == 0) return l;
  const int64_t sections = ceil_div(pieces, c.threads), across = pieces < c.threads ? pieces : c.threads;
  const int64_t together = c.threads / across;
  l.grid[0] = grid_size(ceil_div(p.rows, together) * sections);
  return l;
}

}  // namespace flashinfer::cuda
