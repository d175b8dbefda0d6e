// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/op/device_indices.h"

#include <vector>

#include "flashinfer/core/context.h"
#include "flashinfer/core/cuda/device.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/op/owned_block.h"

namespace flashinfer::op {

bool checks_device_indices(Device device) {
  if (device.type == DeviceType::kCPU || !env::flag("FLASHINFER_CUDA_CHECK_INDICES")) return false;
  return device.type != DeviceType::kCUDA || !cuda::capturing(device.index, Context::current().stream);
}

void check_device_indices(const Op& op, const void* block, Device device) {
  constexpr DTypeSet kIntegers = DTypeSet(DType::kI32) | DType::kI64 | DType::kU32 | DType::kU64 | DType::kBool;
  if (!op.validate || !checks_device_indices(device)) return;
  const OwnedBlock<> copy(op.block, block);
  std::vector<Tensor> host;
  for (const Field& f : op.fields) {
    if (!f.assign || (f.role != Role::kIn && f.role != Role::kInOut)) continue;
    const Views v = f.tensors(block);
    if (v.empty() || v[0].device() != device || !kIntegers.has(v[0].dtype())) continue;
    host.push_back(to_device(v[0], kCpu));
    f.assign(copy.data(), host.back().view());
  }
  if (!host.empty()) op.validate(copy.data());
}

HostIndices::HostIndices(const TensorView& t) {
  if (t.device().type == DeviceType::kCPU) {
    view_ = t;
  } else if (checks_device_indices(t.device())) {
    copy_ = to_device(t, kCpu);
    view_ = copy_.view();
  }
}

}  // namespace flashinfer::op
