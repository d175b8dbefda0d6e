// SPDX-License-Identifier: Apache-2.0
// How the kernels of kernels/cuda/sampling.cuh, kernels/cuda/sample.cuh and kernels/cuda/gumbel.cuh are launched: pure
// functions of the call.
#pragma once
#include <cstdint>

#include "flashinfer/core/cuda_launch.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/sampling/kernels/params.h"

namespace flashinfer::cuda {

/// 1024 threads from 8192 elements on (a vocabulary is one row a block: a decode batch has fewer rows than the chip has
/// SMs, so a row must be many loads in flight); 128 below. Depends on v alone, and with it the order of sums.
inline SoftmaxCudaConfig softmax_config(const SamplingConfig& c, DType temperature, const SoftmaxCudaParams& p) {
  const int64_t size = c.dtype == DType::kF32 ? 4 : 2;
  uint64_t all = reinterpret_cast<uintptr_t>(p.logits) | reinterpret_cast<uintptr_t>(p.out);
  if (p.rows > 1) all |= static_cast<uint64_t>(p.logits_stride * size) | static_cast<uint64_t>(p.out_stride * 4);
  return {.dtype = c.dtype, .temperature = temperature, .aligned = all % 16 == 0, .threads = p.v >= 8192 ? 1024 : 128};
}
inline Launch softmax_launch(const SoftmaxCudaConfig& c, const SoftmaxCudaParams& p, bool pdl) {
  Launch l;
  l.grid[0] = grid_size(p.v > 0 ? p.rows : 0);
  l.block[0] = static_cast<unsigned>(c.threads);
  l.shared_bytes = static_cast<unsigned>(c.threads / 32 * 4);
  l.pdl = pdl;
  return l;
}

/// 256 threads from 16384 tokens on (with 512 the 64 registers that some compilers then choose spill); shorter rows
/// have too few statistics blocks for them.
inline SampleCudaConfig sample_config(DType dtype, int64_t v) {
  return {.dtype = dtype, .threads = static_cast<short>(v >= cpu::kStatsChunk ? 256 : 128)};
}
/// Samplers and filters: a block takes rows one after another. More blocks than 256 would only add scratch memory (2 to
/// 3 words a token and block): the largest chip has 148 SMs.
inline Launch sample_launch(const SampleCudaConfig& c, int64_t rows, int64_t v) {
  Launch l;
  l.grid[0] = grid_size(rows < 256 ? rows : 256);
  l.block[0] = static_cast<unsigned>(c.threads);
  l.shared_bytes = static_cast<unsigned>(sample_cuda_shared(v));
  l.pdl = true;
  return l;
}
/// sampling_from_logits: a block for each chunk of 16384 tokens; `last`: a thread for each row.
inline Launch gumbel_launch(const SampleCudaConfig& c, int64_t rows, int64_t v, bool last) {
  Launch l = sample_launch(c, rows, v);
  l.grid[0] = grid_size(last ? ceil_div(rows, c.threads) : rows * cpu::stats_chunks(v));
  return l;
}

}  // namespace flashinfer::cuda
