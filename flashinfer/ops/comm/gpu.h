// SPDX-License-Identifier: Apache-2.0
// Collectives of GPU tensors: through memory that the ranks' GPUs share (peers), or with NCCL.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "flashinfer/comm/group.h"
#include "flashinfer/comm/nccl_group.h"
#include "flashinfer/comm/peer_memory.h"
#include "flashinfer/core/cuda_launch.h"
#include "flashinfer/core/tensor.h"
#include "flashinfer/jit/emulator.h"
#include "flashinfer/kernels/common/factor_source.h"
#include "flashinfer/op/prepared.h"
#include "flashinfer/ops/comm/gpu_calls.h"
#include "flashinfer/ops/comm/kernels/cuda_params.h"

namespace flashinfer::ops::comm {

/// A rank's part in the calls of a workspace on GPUs.
struct AllReduceGpu {
  Device device{};
  std::shared_ptr<flashinfer::comm::PeerMemory> memory{};  // null: `nccl`
  std::shared_ptr<flashinfer::comm::NcclGroup> nccl{};
  std::shared_ptr<jit::EmulatedRanks> emulated{};  // null on a GPU
  Tensor words{};                                  // of the memory: u32 [kPhaseWords]
  std::unique_ptr<GpuCalls> said{};
  int rank = 0, ranks = 1;
  int64_t slot = 0;  // bytes
  int blocks = 1;    // of a launch at most, the same on all ranks
  int64_t calls = 0;

  /// The parameters of a launch that meets the other ranks'. `call`: what they must pass alike.
  MeetCudaParams meet(const flashinfer::comm::Signature& call) const;
  /// Counts a call. GroupError: one has failed, or another rank calls something else.
  void begin(const flashinfer::comm::Signature& call);
  /// This rank raises `reason` instead of its next launch.
  void abandon(const std::string& reason);
  /// A cooperative launch that waits for those of the ranks in `among`.
  void launch(const jit::CudaLoaded& kernel, const void* params, size_t bytes, const cuda::Launch& launch,
              uint64_t among = ~uint64_t{0}) const;
};
/// Collective. `bytes`: of the largest input. backend: "peers", "nccl", or "auto": peers where all GPUs access each
/// other's memory, else NCCL. NotImplementedError on every rank: the reasons why these ranks can use neither.
std::shared_ptr<AllReduceGpu> connect_gpus(const std::shared_ptr<flashinfer::comm::Group>& group, Device device,
                                           int64_t bytes, const std::string& backend);

/// What a rank adds instead of its input: the sum of experts' rows.
struct ExpertsOnGpu {
  AllReduceAddend addend = AllReduceAddend::kInput;
  DType scale = DType::kF32;
  ExpertsCudaParams params{};
};
/// A call whose arguments were checked. params: of the outputs, as for one task on the CPU.
struct AllReduceOnGpu {
  TensorView input;
  AllReduceConfig config;
  AllReduceParams params;
  int64_t tokens;
  flashinfer::comm::Signature signature{};
  FactorSource scale{};
  bool one_shot = true;
  ExpertsOnGpu experts{};
};
op::Prepared prepare_on_gpu(const AllReduceOnGpu& call, const std::shared_ptr<AllReduceGpu>& gpu);
/// Block `rank` of the sum of the ranks' inputs, which are as many blocks.
op::Prepared prepare_scatter_on_gpu(const TensorView& input, const TensorView& out, bool fp32_acc,
                                    const flashinfer::comm::Signature& signature,
                                    const std::shared_ptr<AllReduceGpu>& gpu);

/// A matrix of which columns go to the ranks, and one whose columns come from them. Widths and strides are bytes; a
/// part is its columns of each row, one row behind another, and as long where it is sent as where it is received.
struct ColumnsOnGpu {
  const void* in;
  int64_t in_rows, in_stride, in_width;  // in_width: of one part's columns
  bool to_each;                          // a part for each rank; else one for all
  void* out;
  int64_t out_rows, out_stride;
  std::vector<int64_t> begin;  // [ranks + 1]: where each rank's columns begin in a row of `out`
  flashinfer::comm::Signature signature{};
};
op::Prepared prepare_columns_on_gpu(ColumnsOnGpu call, const std::shared_ptr<AllReduceGpu>& gpu);

/// Sums of the blocks that each rank's input is divided into: sum s is of block `own` of sums[s]'s ranks, in this order
/// in f32, rounded once, to block s of `out`. All have as many ranks; `copies`: one each, whose bytes they are.
struct MixedCommOnGpu {
  TensorView in, out;
  int64_t blocks, own;
  std::vector<std::vector<int>> sums;
  bool copies = false;
  flashinfer::comm::Signature signature{};
};
op::Prepared prepare_mixed_comm_on_gpu(const MixedCommOnGpu& call, const std::shared_ptr<AllReduceGpu>& gpu);
/// quantized_all_reduce; bf16. A slot holds a group.
op::Prepared prepare_quantized_sum_on_gpu(const TensorView& in, const TensorView& out, int64_t group,
                                          const flashinfer::comm::Signature& signature,
                                          const std::shared_ptr<AllReduceGpu>& gpu);

/// The kernels of usual calls through the memory of 2, 4 and 8 ranks - bf16, rows that begin at 16 bytes - for lists to
/// precompile: the case tables, which have one rank, have none of them.
void look_up_all_reduce_kernels(Device device);
void look_up_columns_kernels(Device device);
void look_up_context_parallel_kernels(Device device);
void look_up_moe_a2a_kernels(Device device);
void look_up_sums_kernels(Device device);

/// Whether FlashInfer's rule chooses one shot: by the bytes that all ranks would receive.
bool gpu_wants_one_shot(int64_t bytes, int64_t ranks);

}  // namespace flashinfer::ops::comm
