// SPDX-License-Identifier: Apache-2.0
// The attention kernels of GPUs, built as JIT artifacts are.
#include "flashinfer/ops/attention/kernels/cuda/attention.cuh"
#include "flashinfer/ops/attention/kernels/cuda/attention_simt.cuh"

using namespace flashinfer;
#define ENTRY(name, ...)                                      \
  inline constexpr AttentionCudaConfig k_##name{__VA_ARGS__}; \
  FI_CUDA_ENTRY_NAMED(name, AttentionCudaParams, cu::attention<k_##name>)
ENTRY(bf16_64_few, .q = DType::kBF16, .kv = DType::kBF16, .o = DType::kBF16, .warps_k = 4, .dqk = 64, .dvo = 64,
      .threads = 128, .copy = 16)
ENTRY(bf16_64_many, .q = DType::kBF16, .kv = DType::kBF16, .o = DType::kBF16, .warps_k = 1, .dqk = 64, .dvo = 64,
      .threads = 128, .copy = 16)
ENTRY(f16_128_few, .q = DType::kF16, .kv = DType::kF16, .o = DType::kF16, .warps_k = 4, .dqk = 128, .dvo = 128,
      .threads = 128, .copy = 16)
ENTRY(f16_128_many, .q = DType::kF16, .kv = DType::kF16, .o = DType::kF16, .warps_k = 1, .dqk = 128, .dvo = 128,
      .threads = 256, .copy = 16)
ENTRY(f16_192_many, .q = DType::kF16, .kv = DType::kF16, .o = DType::kF32, .warps_k = 1, .dqk = 192, .dvo = 128,
      .threads = 128, .copy = 16)
ENTRY(f16_e4m3_128_few, .q = DType::kF16, .kv = DType::kF8E4M3, .o = DType::kF16, .warps_k = 4, .dqk = 128, .dvo = 128,
      .threads = 128, .copy = 16)
ENTRY(f16_e4m3_128_many, .q = DType::kF16, .kv = DType::kF8E4M3, .o = DType::kF16, .warps_k = 1, .dqk = 128, .dvo = 128,
      .threads = 256, .copy = 16)
ENTRY(bf16_e5m2_64_few, .q = DType::kBF16, .kv = DType::kF8E5M2, .o = DType::kBF16, .warps_k = 4, .dqk = 64, .dvo = 64,
      .threads = 128, .copy = 16)
ENTRY(bf16_e5m2_64_many, .q = DType::kBF16, .kv = DType::kF8E5M2, .o = DType::kBF16, .warps_k = 1, .dqk = 64, .dvo = 64,
      .threads = 128, .copy = 16)
ENTRY(bf16_64_wide, .q = DType::kBF16, .kv = DType::kBF16, .o = DType::kBF16, .warps_k = 1, .wide = 1, .held = 4,
      .dqk = 64, .dvo = 64, .threads = 128, .copy = 16)
ENTRY(f16_128_wide, .q = DType::kF16, .kv = DType::kF16, .o = DType::kF16, .warps_k = 1, .wide = 1, .dqk = 128,
      .dvo = 128, .threads = 128, .copy = 16)
ENTRY(f16_e4m3_128_wide, .q = DType::kF16, .kv = DType::kF8E4M3, .o = DType::kF16, .warps_k = 1, .wide = 1, .dqk = 128,
      .dvo = 128, .threads = 128, .copy = 16)
ENTRY(bf16_e5m2_64_wide, .q = DType::kBF16, .kv = DType::kF8E5M2, .o = DType::kBF16, .warps_k = 1, .wide = 1, .held = 4,
      .dqk = 64, .dvo = 64, .threads = 128, .copy = 16)
#define E4M3(name, k, two, products, count)                                                            \
  ENTRY(name, .q = DType::kF8E4M3, .kv = DType::kF8E4M3, .o = DType::kBF16, .warps_k = k, .wide = two, \
        .e4m3 = products, .dqk = 128, .dvo = 128, .threads = count, .copy = 16)
E4M3(e4m3_128_few, 4, 0, 1, 128)
E4M3(e4m3_128_many, 1, 0, 1, 256)
E4M3(e4m3_128_wide, 1, 1, 1, 128)
E4M3(e4m3_128_few_all, 4, 0, 2, 128)
E4M3(e4m3_128_many_all, 1, 0, 2, 256)
E4M3(e4m3_128_wide_all, 1, 1, 2, 128)
#define CORES(name, ...)                                       \
  inline constexpr AttentionCoresConfig k_##name{__VA_ARGS__}; \
  FI_CUDA_ENTRY_NAMED(name, AttentionCudaParams, cu::attention_cores<k_##name>)
CORES(cores_f32_64, .q = DType::kF32, .kv = DType::kF32, .o = DType::kF32, .rows = 4, .dqk = 64, .dvo = 64, .rope = 0,
      .threads = 128)
CORES(cores_e4m3_128, .q = DType::kF32, .kv = DType::kF8E4M3, .o = DType::kF32, .rows = 4, .dqk = 128, .dvo = 128,
      .rope = 0, .threads = 128)
CORES(cores_f32_256, .q = DType::kF32, .kv = DType::kF32, .o = DType::kF32, .rows = 4, .dqk = 256, .dvo = 256,
      .rope = 0, .threads = 128)
