// SPDX-License-Identifier: Apache-2.0
// What the CUDA candidates of all families do alike.
#pragma once
#include <optional>

#include "flashinfer/jit/cuda.h"
#include "flashinfer/op/call.h"

namespace flashinfer::ops {

/// The launch of a call with nothing to do.
inline constexpr cuda::Launch kNoBlocks{.grid = {0, 0, 0}};

/// A grid without blocks is nothing to do.
template <class Params>
void launch_unless_empty(const jit::CudaLoaded& kernel, const Params& params, const cuda::Launch& launch) {
  if (launch.grid[0] != 0 && launch.grid[1] != 0 && launch.grid[2] != 0) jit::launch(kernel, params, launch);
}

/// launch(kernel), with the kernel K for `config`, when there is one: for launches that need more than Params (scratch,
/// a generator's numbers, several kernels).
template <const jit::Kernel& K, class Config, class F>
op::Prepared with_cuda_kernel(const Config& config, Device device, F launch) {
  const jit::CudaLoaded& kernel = jit::cuda_kernel<K>(config, device);
  if (!kernel.why_not.empty()) return op::Unsupported{kernel.why_not};
  return [&kernel, launch = std::move(launch)] { launch(kernel); };
}

/// A launch of the kernel K for `config`.
template <const jit::Kernel& K, class Config, class Params>
op::Prepared prepare_cuda(const Config& config, const Params& params, Device device, const cuda::Launch& launch) {
  return with_cuda_kernel<K>(
      config, device, [params, launch](const jit::CudaLoaded& kernel) { launch_unless_empty(kernel, params, launch); });
}

/// `enable_pdl` of a call: on where the GPU has it, unless the caller says otherwise (older GPUs ignore it).
inline bool wants_pdl(const std::optional<bool>& enable_pdl) { return enable_pdl.value_or(true); }

}  // namespace flashinfer::ops
