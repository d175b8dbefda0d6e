// SPDX-License-Identifier: Apache-2.0
// What the CUDA candidates of all families do alike.
#pragma once
#include <optional>
#include <vector>

#include "flashinfer/core/transfer.h"
#include "flashinfer/jit/cuda.h"
#include "flashinfer/op/device.h"

namespace flashinfer::ops {

/// Refuses unless all tensors of the block lie on one GPU or the emulator and the kernel K for `make_config()` can be
/// had there.
template <const jit::Kernel& K, class MakeConfig>
op::Refusal refuse_cuda(const op::Op& op, const void* block, const MakeConfig& make_config) {
  Device device;
  if (op::Refusal r = op::refuse_unless_gpu(op, block, device); !r.empty()) return r;
  return jit::cuda_kernel<K>(make_config(), device).refusal;
}

/// Launches it; a grid without blocks is nothing to do.
template <const jit::Kernel& K, class Config, class Params>
void launch_cuda(const Config& config, const Params& params, Device device, const cuda::Launch& launch) {
  if (launch.grid[0] == 0 || launch.grid[1] == 0 || launch.grid[2] == 0) return;
  jit::launch(jit::cuda_kernel<K>(config, device), params, launch);
}

/// For ops that the host serves whatever device their arrays lie on (plans): calls `launch` with host copies of those
/// that it cannot read. Copying waits for the stream.
template <class Block>
void with_host_arrays(const op::Op& op, const Block& a, void (*launch)(const Block&)) {
  Block here = a;
  std::vector<Tensor> keep;
  for (const op::Field& f : op.fields) {
    const TensorView* v[2];
    if (!f.assign || f.role == op::Role::kScratch || f.tensors(&a, v) == 0 || v[0]->device().type == DeviceType::kCPU)
      continue;
    keep.push_back(to_device(*v[0], kCpu));
    f.assign(&here, keep.back().view());
  }
  launch(here);
}

template <class Block>
op::Refusal accept_any(const Block&) {
  return {};
}

/// `enable_pdl` of a call: on where the GPU has it, unless the caller says otherwise (older GPUs ignore it).
inline bool wants_pdl(const std::optional<bool>& enable_pdl) { return enable_pdl.value_or(true); }

}  // namespace flashinfer::ops
