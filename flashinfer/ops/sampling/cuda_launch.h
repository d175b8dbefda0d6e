// SPDX-License-Identifier: Apache-2.0
// How the kernels of kernels/cuda/sampling.cuh, kernels/cuda/sample.cuh and kernels/cuda/gumbel.cuh are launched: pure
// functions of the call.
#pragma once
#include <algorithm>
#include <cstdint>

#include "flashinfer/core/cuda_launch.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/jit/targets.h"
#include "flashinfer/ops/sampling/kernels/params.h"

namespace flashinfer::cuda {

/// Blocks of a row of softmax: parts of at least 8192 elements, where blocks can form a cluster. Depends on v and the
/// GPU alone, and with it the order of sums.
inline unsigned softmax_blocks(int64_t v, const jit::Arch& arch) {
  unsigned n = 1;
  while (arch.clusters && n < kSampleBlocks && v >= int64_t{16384} * n) n *= 2;
  return n;
}
/// 1024 threads from 8192 elements on (a decode batch has fewer rows than the chip has SMs, so a row must be many loads
/// in flight), 512 in a cluster; 128 below.
inline SoftmaxCudaConfig softmax_config(const SamplingConfig& c, DType temperature, const SoftmaxCudaParams& p,
                                        const jit::Arch& arch) {
  const int64_t size = c.dtype == DType::kF32 ? 4 : 2;
  uint64_t all = reinterpret_cast<uintptr_t>(p.logits) | reinterpret_cast<uintptr_t>(p.out);
  if (p.rows > 1) all |= static_cast<uint64_t>(p.logits_stride * size) | static_cast<uint64_t>(p.out_stride * 4);
  return {.dtype = c.dtype,
          .temperature = temperature,
          .aligned = all % 16 == 0,
          .threads = softmax_blocks(p.v, arch) > 1 ? 512
                     : p.v >= 8192                 ? 1024
                                                   : 128};
}
/// Sets p.part and p.kept.
inline Launch softmax_launch(const SoftmaxCudaConfig& c, SoftmaxCudaParams& p, bool pdl, const jit::Arch& arch) {
  const int64_t blocks = softmax_blocks(p.v, arch), size = c.dtype == DType::kF32 ? 4 : 2;
  p.part = round_up(ceil_div(p.v, blocks), int64_t{4});
  p.kept = std::min(p.part, (arch.shared_bytes - kSoftmaxSlots) / (4 * size) * 4);
  Launch l;
  l.grid[0] = grid_size(p.v > 0 ? p.rows * blocks : 0);
  l.block[0] = static_cast<unsigned>(c.threads);
  l.cluster[0] = static_cast<unsigned>(blocks);
  l.shared_bytes = static_cast<unsigned>(kSoftmaxSlots + p.kept * size);
  l.pdl = pdl;
  return l;
}

/// 256 threads from 16384 tokens on (with 512 the 64 registers that some compilers then choose spill); shorter rows
/// have too few statistics blocks for them.
inline SampleCudaConfig sample_config(DType dtype, int64_t v) {
  return {.dtype = dtype, .threads = static_cast<short>(v >= cpu::kStatsChunk ? 256 : 128)};
}
/// Blocks of a row of samplers and filters, whose results do not depend on them: as many as clusters can have while a
/// batch leaves SMs idle, each of 8192 tokens or more.
inline unsigned sample_blocks(int64_t rows, int64_t v, const jit::Arch& arch) {
  unsigned n = 1;
  while (arch.clusters && n < kSampleBlocks && rows * n <= 64 && v >= int64_t{16384} * n) n *= 2;
  return n;
}
/// A cluster takes rows one after another. More blocks than 256 would only add scratch memory (2 to 3 words a token and
/// cluster): the largest chip has 148 SMs.
inline Launch sample_launch(const SampleCudaConfig& c, int64_t rows, int64_t v, Device device) {
  Launch l;
  l.cluster[0] = sample_blocks(rows, v, jit::arch_of_number(jit::arch_number(device)));
  l.grid[0] = grid_size(rows < 256 ? rows * l.cluster[0] : 256);
  l.block[0] = static_cast<unsigned>(c.threads);
  l.shared_bytes = static_cast<unsigned>(sample_cuda_shared(v));
  l.pdl = true;
  return l;
}
/// sampling_from_logits: a block for each chunk of 16384 tokens; `last`: a thread for each row.
inline Launch gumbel_launch(const SampleCudaConfig& c, int64_t rows, int64_t v, bool last) {
  Launch l;
  l.grid[0] = grid_size(last ? ceil_div(rows, c.threads) : rows * cpu::stats_chunks(v));
  l.block[0] = static_cast<unsigned>(c.threads);
  l.shared_bytes = static_cast<unsigned>(kSharedBins + kSharedSlots);
  l.pdl = true;
  return l;
}

}  // namespace flashinfer::cuda
