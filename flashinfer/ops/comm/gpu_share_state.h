// SPDX-License-Identifier: Apache-2.0
// What is behind the memory of share_on_gpu.
#pragma once
#include <cstdint>
#include <memory>

#include "flashinfer/comm/group.h"
#include "flashinfer/core/tensor.h"

namespace flashinfer::ops::comm {

struct AllReduceGpu;
struct MoeA2aHeader;

struct GpuShare {
  std::shared_ptr<flashinfer::comm::Group> group;
  std::shared_ptr<AllReduceGpu> gpu;
  std::byte* own;  // `bytes` of this rank
  int64_t bytes;
  Tensor memory{};                         // with NCCL: of `own`
  std::shared_ptr<MoeA2aHeader> header{};  // of an all-to-all of experts: what the host knows of the memory
  Tensor sent{};                           // the same: rows that the last dispatch sends to each rank, i32 [ranks]
};
/// By the address of its first element; null when it is of no such tensor.
std::shared_ptr<GpuShare> gpu_share_at(const void* first);

}  // namespace flashinfer::ops::comm
