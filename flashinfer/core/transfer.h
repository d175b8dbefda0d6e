// SPDX-License-Identifier: Apache-2.0
// Tensors between devices, in the order of the current context's stream.
#pragma once
#include "flashinfer/core/tensor.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// Whether the host may read and write the memory: on the CPU and on the emulator.
inline bool host_can_read(Device d) { return d.type != DeviceType::kCUDA; }

/// DLPack's extension device (kDLExtDev) is the emulator here.
DLDevice to_dlpack(Device d);
/// Pinned host memory is the CPU's, managed memory the GPU's; ValueError for device kinds that this library does not
/// support.
Device from_dlpack(DLDevice d);

/// Copies bytes between any two devices; on return, host memory that takes part holds the data or may be reused.
void copy_bytes(void* to, Device to_device, const void* from, Device from_device, size_t bytes);

/// A copy on `device` with the same shape and strides, including gaps between elements.
Tensor to_device(const TensorView& v, Device device);

/// `v` itself when the host can read it, else a copy in host memory that lives as long as the result. RuntimeError
/// while the stream is captured.
Tensor host_readable(const TensorView& v);

}  // namespace flashinfer

#pragma GCC visibility pop
