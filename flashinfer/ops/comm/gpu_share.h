// SPDX-License-Identifier: Apache-2.0
// Memory of the GPUs of a group's ranks as a tensor, for ops that take their memory as an argument.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "flashinfer/comm/group.h"
#include "flashinfer/core/tensor.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// comm::share for GPUs: memory of this rank's `device` ("cuda:N" or "emu") as [size, bytes] u8. All rows are this
/// rank's memory (their stride is 0): what other ranks read and write there is moved by kernels. The ranks' GPUs access
/// each other's memory (`backend` peers), or NCCL connects them (nccl; enough for the exchanges of a spread context);
/// auto: peers if all GPUs can. Collective. The memory is there as long as the tensor or a copy of it lives.
/// ValueError: bytes < 1, a device that is no GPU, another back end; NotImplementedError, on every rank: the reasons
/// why these GPUs cannot.
Tensor share_on_gpu(const std::shared_ptr<comm::Group>& group, Device device, int64_t bytes,
                    const std::string& backend = "auto");

}  // namespace flashinfer

#pragma GCC visibility pop
