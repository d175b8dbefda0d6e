// SPDX-License-Identifier: Apache-2.0
// On which device a call runs.
#pragma once
#include "flashinfer/op/op.h"

namespace flashinfer::op {

/// The first tensor's device that is not the CPU; absent outputs are allocated there.
Device device_of(const Op& op, const void* block);
/// As refuse_unless_cpu, for GPUs and the emulator: all tensors lie on one device, which `device` becomes. The refusal
/// names the argument.
Refusal refuse_unless_gpu(const Op& op, const void* block, Device& device);

/// For observers, in before(): this call waits for the device after its launch, so that an asynchronous fault is its
/// own.
void wait_after_launch();

}  // namespace flashinfer::op
