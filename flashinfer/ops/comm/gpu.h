// SPDX-License-Identifier: Apache-2.0
// All-reduces of GPU tensors through memory that the ranks' GPUs share.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "flashinfer/comm/group.h"
#include "flashinfer/comm/peer_memory.h"
#include "flashinfer/core/tensor.h"
#include "flashinfer/jit/emulator.h"
#include "flashinfer/kernels/common/factor_source.h"
#include "flashinfer/op/prepared.h"
#include "flashinfer/ops/comm/kernels/params.h"

namespace flashinfer::ops::comm {

/// A rank's part in the calls of a workspace on GPUs.
struct AllReduceGpu {
  std::shared_ptr<flashinfer::comm::PeerMemory> memory;
  std::shared_ptr<jit::EmulatedRanks> emulated;  // null on a GPU
  Tensor phases;                                 // u32 [kAllReduceBlocks]
  int rank = 0, ranks = 1;
  int64_t slot = 0;  // bytes
  int blocks = 1;    // of a launch at most, the same on all ranks
  int64_t calls = 0;
};
/// Collective. `bytes`: of the largest input. Errors as PeerMemory::share.
std::shared_ptr<AllReduceGpu> share_on_gpu(flashinfer::comm::Group& group, Device device, int64_t bytes);

/// A call whose arguments were checked. params: of the outputs, as for one task on the CPU.
struct AllReduceOnGpu {
  TensorView input;
  AllReduceConfig config;
  AllReduceParams params;
  int64_t tokens;
  FactorSource scale;
  bool one_shot;
};
op::Prepared prepare_on_gpu(const AllReduceOnGpu& call, const std::shared_ptr<AllReduceGpu>& gpu);

/// Whether FlashInfer's rule chooses one shot: by the bytes that all ranks would receive.
bool gpu_wants_one_shot(int64_t bytes, int64_t ranks);

}  // namespace flashinfer::ops::comm
