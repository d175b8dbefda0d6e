// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/transfer.h"

#include <cstring>

#include "flashinfer/core/context.h"
#include "flashinfer/core/cuda/memory.h"
#include "flashinfer/core/emu_memory.h"

namespace flashinfer {

DLDevice to_dlpack(Device d) {
  if (d.type == DeviceType::kCPU) return {kDLCPU, 0};
  return {d.type == DeviceType::kCUDA ? kDLCUDA : kDLExtDev, d.index};
}

Device from_dlpack(DLDevice d) {
  switch (d.device_type) {
    case kDLCPU:
    case kDLCUDAHost: return kCpu;
    case kDLCUDA:
    case kDLCUDAManaged: return {DeviceType::kCUDA, static_cast<int16_t>(d.device_id)};
    case kDLExtDev: return {DeviceType::kEmu, 0};
    default: break;
  }
  throw ValueError(
      str("DLPack device type ", static_cast<int>(d.device_type), " is not one of cpu (1), cuda (2, 3, 13), emu (12)"));
}

void copy_bytes(void* to, Device to_device, const void* from, Device from_device, size_t bytes) {
  void* const stream = Context::current().stream;
  const bool to_gpu = !host_can_read(to_device), from_gpu = !host_can_read(from_device);
  if (bytes == 0) return;
  if (!to_gpu && !from_gpu) {
    std::memcpy(to, from, bytes);
    if (to_device.type == DeviceType::kEmu) emu_memory::copied(to, from, bytes);
  } else if (!to_gpu)
    cuda::download(to, from, bytes, from_device.index, stream);
  else if (!from_gpu)
    cuda::upload(to, from, bytes, to_device.index, stream);
  else
    cuda::copy(to, from, bytes, to_device.index, stream);
}

Tensor to_device(const TensorView& v, Device device) {
  int64_t low = 0;  // negative strides reach below data()
  for (int i = 0; i < v.rank(); ++i)
    if (v.stride(i) < 0) low += (v.size(i) - 1) * v.stride(i);
  const int64_t before = v.numel() == 0 ? 0 : -low * v.item_size(), bytes = before + v.span_bytes();
  const Tensor whole = Tensor::empty({bytes}, DType::kU8, device);
  copy_bytes(whole.data(), device, static_cast<const char*>(v.data()) - before, v.device(), static_cast<size_t>(bytes));
  return Tensor(TensorView(whole.data_as<char>() + before, v.dtype(), v.shape(), v.strides(), device), whole.owner());
}

Tensor host_readable(const TensorView& v) {
  return host_can_read(v.device()) ? Tensor(v, nullptr) : to_device(v, kCpu);
}

}  // namespace flashinfer
