// SPDX-License-Identifier: Apache-2.0
// What the CUDA candidates of the ops that use the kernel of selective_state_update share.
#pragma once
#include <optional>

#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/linear_attention/cuda_launch.h"
#include "flashinfer/ops/linear_attention/kernels/mamba/ssu_cuda_params.h"

namespace flashinfer::ops::linear_attention {

inline constexpr jit::Kernel kSsuCuda{"flashinfer/ops/linear_attention/kernels/cuda/ssu.cuh",
                                      "flashinfer::cu::selective_state_update", "flashinfer::SsuCudaParams"};

inline SsuIndices ssu_indices(const std::optional<TensorView>& t) {
  if (!t) return {};
  return {{t->data(), t->stride(0), t->dtype() == DType::kI64}, t->rank() == 2 ? t->stride(1) : 0};
}
/// `aligned`: the rows of all states.
inline op::Prepared prepare_ssu_cuda(const SsuCudaParams& p, DType state, bool aligned, bool one_decay, Device device) {
  const int64_t items = p.call.sequences * p.call.heads;
  if (p.call.dstate > kDeltaCudaMaxWidth)
    return op::Unsupported{str("dstate is ", p.call.dstate, ", but on a GPU it may be at most ", kDeltaCudaMaxWidth)};
  const DeltaCudaConfig config = delta_config(state, p.call.dstate, aligned, !one_decay);
  if (std::string why = grid_unsupported(items, p.call.dim, config.block_rows()); !why.empty())
    return op::Unsupported{std::move(why)};
  return prepare_cuda<kSsuCuda>(config, p, device,
                                delta_launch(items, p.call.dim, config.block_rows(), config.threads));
}

}  // namespace flashinfer::ops::linear_attention
