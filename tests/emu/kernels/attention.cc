// SPDX-License-Identifier: Apache-2.0
// The attention kernels of GPUs, built as JIT artifacts are.
#include "flashinfer/ops/attention/cuda.cuh"

using namespace flashinfer;
#define ENTRY(name, ...)                                                     \
  inline constexpr AttentionCudaConfig k_##name{__VA_ARGS__};                \
  FI_CUDA_ENTRY_NAMED(name, AttentionCudaParams, cu::attention<k_##name>)
ENTRY(bf16_64_few, .q = DType::kBF16, .o = DType::kBF16, .warps_k = 4, .dqk = 64, .dvo = 64, .threads = 128)
ENTRY(bf16_64_many, .q = DType::kBF16, .o = DType::kBF16, .warps_k = 1, .dqk = 64, .dvo = 64, .threads = 128)
ENTRY(f16_128_few, .q = DType::kF16, .o = DType::kF16, .warps_k = 4, .dqk = 128, .dvo = 128, .threads = 128)
ENTRY(f16_128_many, .q = DType::kF16, .o = DType::kF16, .warps_k = 1, .dqk = 128, .dvo = 128, .threads = 256)
ENTRY(f16_192_many, .q = DType::kF16, .o = DType::kF32, .warps_k = 1, .dqk = 192, .dvo = 128, .threads = 128)
inline constexpr AttentionMergeCudaConfig kMergeBF16{.o = DType::kBF16, .columns = 4, .dvo = 64, .threads = 128}, kMergeF16{.o = DType::kF16, .columns = 4, .dvo = 128, .threads = 128};
FI_CUDA_ENTRY_NAMED(merge_bf16, AttentionCudaParams, cu::attention_merge<kMergeBF16>)
FI_CUDA_ENTRY_NAMED(merge_f16, AttentionCudaParams, cu::attention_merge<kMergeF16>)
