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
  static constinit env::Cached checks("FLASHINFER_CUDA_CHECK_INDICES");
  if (device.type == DeviceType::kCPU || !checks.flag()) return false;
  return device.type != DeviceType::kCUDA || !cuda::capturing(device.index, Context::current().stream);
}

namespace {
/// Host copies in place of the integer tensors of `device` in `v`, which may hold some in lists; whether there were
/// any.
bool replace_indices(Value& v, Device device, std::vector<Tensor>& copies) {
  constexpr DTypeSet kIntegers = DTypeSet(DType::kI32) | DType::kI64 | DType::kU32 | DType::kU64 | DType::kBool;
  auto* const base = static_cast<Value::Base*>(&v);
  if (const TensorView* t = v.tensor()) {
    if (t->device() != device || !kIntegers.has(t->dtype())) return false;
    copies.push_back(to_device(*t, kCpu));
    v = copies.back();
    return true;
  }
  bool any = false;
  if (auto* list = std::get_if<ListValue>(base))
    for (Value& x : list->items) any |= replace_indices(x, device, copies);
  else if (auto* tuple = std::get_if<TupleValue>(base))
    for (Value& x : tuple->items) any |= replace_indices(x, device, copies);
  else if (auto* dict = std::get_if<DictValue>(base))
    for (auto& [key, x] : dict->items) any |= replace_indices(x, device, copies);
  return any;
}
}  // namespace

void check_device_indices(const Op& op, const void* block, Device device) {
  if (!op.validate || !checks_device_indices(device)) return;
  const OwnedBlock<> copy(op.block, block);
  std::vector<Tensor> host;
  for (const Field& f : op.fields) {
    if (f.role != Role::kIn && f.role != Role::kInOut && f.role != Role::kAttr) continue;
    Value v = f.get(block);
    if (replace_indices(v, device, host)) f.set(copy.data(), v, f);
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
