// SPDX-License-Identifier: Apache-2.0
// How the softmax kernel of cuda.cuh is launched: pure functions of the call.
#pragma once
#include <cstdint>

#include "flashinfer/core/cuda_launch.h"
#include "flashinfer/ops/sampling/params.h"

namespace flashinfer::cuda {

/// 1024 threads from 8192 elements on (a vocabulary is one row a block: a decode batch has fewer rows than the chip has SMs, so a
/// row must be many loads in flight); 128 below. Depends on v alone, and with it the order of sums.
inline SoftmaxCudaConfig softmax_config(const SamplingConfig& c, DType temperature, const SoftmaxCudaParams& p) {
  const int64_t size = c.dtype == DType::kF32 ? 4 : 2;
  uint64_t all = reinterpret_cast<uintptr_t>(p.logits) | reinterpret_cast<uintptr_t>(p.out);
  if (p.rows > 1) all |= static_cast<uint64_t>(p.logits_stride * size) | static_cast<uint64_t>(p.out_stride * 4);
  return {.dtype = c.dtype, .temperature = temperature, .aligned = all % 16 == 0, .threads = p.v >= 8192 ? 1024 : 128};
}
inline Launch softmax_launch(const SoftmaxCudaConfig& c, const SoftmaxCudaParams& p, bool pdl) {
  Launch l;
  l.grid[0] = static_cast<unsigned>(p.v > 0 ? p.rows : 0);
  l.block[0] = static_cast<unsigned>(c.threads);
  l.shared_bytes = static_cast<unsigned>(c.threads / 32 * 4);
  l.pdl = pdl;
  return l;
}

}  // namespace flashinfer::cuda
