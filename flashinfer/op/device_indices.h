// SPDX-License-Identifier: Apache-2.0
// Checks of index arrays that only a kernel reads otherwise.
#pragma once
#include "flashinfer/op/op.h"

namespace flashinfer::op {

/// Whether FLASHINFER_CUDA_CHECK_INDICES asks for them, and the current stream of `device` allows it: nothing is read
/// while it is captured.
bool checks_device_indices(Device device);
/// The op's own checks once more, with host copies in place of the integer tensors that lie on `device`: what is an
/// error on the CPU is one here, before a kernel follows the index. Waits for the stream.
void check_device_indices(const Op& op, const void* block, Device device);

}  // namespace flashinfer::op
