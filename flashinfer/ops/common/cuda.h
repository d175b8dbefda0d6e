// SPDX-License-Identifier: Apache-2.0
// What the CUDA candidates of all families do alike.
#pragma once
#include <optional>

#include "flashinfer/jit/cuda.h"
#include "flashinfer/op/call.h"

namespace flashinfer::ops {

/// The launch of a call with nothing to do.
inline constexpr cuda::Launch kNoBlocks{.grid = {0, 0, 0}};

/// A launch of the kernel K for `config`; a grid without blocks is nothing to do.
template <const jit::Kernel& K, class Config, class Params>
op::Prepared prepare_cuda(const Config& config, const Params& params, Device device, const cuda::Launch& launch) {
  const jit::CudaLoaded& kernel = jit::cuda_kernel<K>(config, device);
  if (!kernel.refusal.empty()) return op::Unsupported{kernel.refusal};
  return [&kernel, params, launch] {
    if (launch.grid[0] != 0 && launch.grid[1] != 0 && launch.grid[2] != 0) jit::launch(kernel, params, launch);
  };
}

// ---- the older form, of families that are not converted yet ----
template <const jit::Kernel& K, class MakeConfig>
op::Refusal refuse_cuda(const op::Op& op, const void* block, const MakeConfig& make_config) {
  return jit::cuda_kernel<K>(make_config(), op::device_of(op, block)).refusal;
}
template <const jit::Kernel& K, class Config, class Params>
void launch_cuda(const Config& config, const Params& params, Device device, const cuda::Launch& launch) {
  if (launch.grid[0] == 0 || launch.grid[1] == 0 || launch.grid[2] == 0) return;
  jit::launch(jit::cuda_kernel<K>(config, device), params, launch);
}

/// `enable_pdl` of a call: on where the GPU has it, unless the caller says otherwise (older GPUs ignore it).
inline bool wants_pdl(const std::optional<bool>& enable_pdl) { return enable_pdl.value_or(true); }

}  // namespace flashinfer::ops
