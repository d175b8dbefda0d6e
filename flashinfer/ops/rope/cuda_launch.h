// SPDX-License-Identifier: Apache-2.0
// How the RoPE kernel of kernels/cuda/rope.cuh is launched: pure functions of the call.
#pragma once
#include <cstdint>

#include "flashinfer/core/cuda_launch.h"
#include "flashinfer/ops/rope/kernels/params.h"

namespace flashinfer::cuda {

/// 128 threads are 16 heads of 128 at once: a token of 32 + 8 heads takes three rounds with one computation of its
/// angles.
inline RopeCudaConfig rope_config(const RopeConfig& c, const RopeParams& p) {
  const int64_t size = c.dtype == DType::kF32 ? 4 : 2;
  uint64_t all = static_cast<uint64_t>((c.interleave ? p.rotary : p.rotary / 2) * size) |
                 static_cast<uint64_t>((p.d - p.rotary) * size);
  for (const RopeTensor& t : p.tensor)
    if (t.heads > 0)
      all |= reinterpret_cast<uintptr_t>(t.in) | reinterpret_cast<uintptr_t>(t.out) |
             static_cast<uint64_t>(t.in_stride[0] * size) | static_cast<uint64_t>(t.in_stride[1] * size) |
             static_cast<uint64_t>(t.out_stride[0] * size) | static_cast<uint64_t>(t.out_stride[1] * size);
  return {.dtype = c.dtype, .interleave = c.interleave, .aligned = all % 16 == 0, .threads = 128};
}
inline Launch rope_launch(const RopeCudaConfig& c, const RopeParams& p, bool pdl) {
  Launch l;
  l.grid[0] = grid_size(p.d > 0 ? p.tokens : 0);
  l.block[0] = static_cast<unsigned>(c.threads);
  l.pdl = pdl;
  return l;
}

}  // namespace flashinfer::cuda
