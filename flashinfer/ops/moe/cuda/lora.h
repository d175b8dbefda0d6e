// SPDX-License-Identifier: Apache-2.0
// Steps of LoRA in a mixture of experts on a GPU, without the host.
#pragma once
#include <vector>

#include "flashinfer/ops/common/cuda_steps.h"
#include "flashinfer/ops/moe/kernels/lora_cuda_params.h"

namespace flashinfer::moe {

/// Of index arrays on the device; `w`: any of the matrices [adapters, experts, n, k].
MoeLoraPairs lora_pairs(const TensorView& sorted_token_ids, const TensorView& expert_ids,
                        const TensorView& lora_indices, const TensorView& w);

/// The pairs of each token, in their order: offsets [tokens + 1], entry_of [pairs].
struct LoraTokens {
  TensorView offsets, entry_of;
};
LoraTokens add_lora_tokens(ops::CudaSteps& steps, const MoeLoraPairs& pairs);

/// y[r] += or = w x (MoeLoraCudaParams), of slices of the same types.
struct LoraStep {
  DType x, w, y;
  MoeLoraCudaParams params{};  // without its slices
  std::vector<MoeLoraCudaSlice> slices{};
  int64_t rows = 0;
};
MoeLoraCudaSlice lora_slice(const TensorView& w, const void* x, void* y);
/// Unsupported: 2^31 or more of anything.
void add_lora_step(ops::CudaSteps& steps, const LoraStep& step);

}  // namespace flashinfer::moe
