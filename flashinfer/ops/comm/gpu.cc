// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/comm/gpu.h"

#include <algorithm>
#include <cstring>

#include "flashinfer/core/int_math.h"
#include "flashinfer/jit/cuda.h"
#include "flashinfer/ops/comm/kernels/cuda_params.h"
#include "flashinfer/ops/common/cuda.h"

namespace flashinfer::ops::comm {
namespace {

inline constexpr jit::Kernel kAllReduceCuda{"flashinfer/ops/comm/kernels/cuda/all_reduce.cuh",
                                            "flashinfer::cu::all_reduce", "flashinfer::AllReduceCudaParams"};

/// Ranks in threads of one process meet in one object, which rank 0 makes.
std::shared_ptr<jit::EmulatedRanks> meet_emulated(flashinfer::comm::Group& group) {
  std::shared_ptr<jit::EmulatedRanks> own;
  if (group.rank() == 0) own = std::make_shared<jit::EmulatedRanks>(group.size());
  const auto* const at = &own;
  const std::string said = group.exchange("emulated ranks", {reinterpret_cast<const char*>(&at), sizeof at})[0];
  const std::shared_ptr<jit::EmulatedRanks>* first = nullptr;
  std::memcpy(&first, said.data(), sizeof first);
  const std::shared_ptr<jit::EmulatedRanks> ranks = *first;
  group.barrier("emulated ranks");  // rank 0 keeps its pointer until all have read it
  return ranks;
}

bool is_aligned(const AllReduceOnGpu& c) {
  const AllReduceParams& p = c.params;
  uint64_t bits = reinterpret_cast<uintptr_t>(c.input.data());
  for (const void* x :
       {p.residual_in, p.gamma, static_cast<const void*>(p.out), static_cast<const void*>(p.residual_out),
        static_cast<const void*>(p.norm_out), static_cast<const void*>(p.quant_out)})
    bits |= reinterpret_cast<uintptr_t>(x);
  const int64_t elements = c.config.norm ? p.d : c.input.numel();
  return (bits | static_cast<uint64_t>(elements * c.input.item_size())) % 16 == 0;
}

int threads_for(const AllReduceOnGpu& c) {
  if (!c.config.norm) return 256;
  const int64_t pieces = ceil_div(c.params.d * c.input.item_size(), 16);
  return pieces <= 128 ? 128 : pieces <= 256 ? 256 : 512;
}

}  // namespace

std::shared_ptr<AllReduceGpu> share_on_gpu(flashinfer::comm::Group& group, Device device, int64_t bytes) {
  auto gpu = std::make_shared<AllReduceGpu>();
  gpu->rank = group.rank(), gpu->ranks = group.size();
  gpu->slot = round_up(bytes, 256);
  gpu->memory =
      flashinfer::comm::PeerMemory::share(group, device, kAllReduceFlagBytes + kAllReduceGpuSlots * gpu->slot);
  gpu->phases = Tensor::zeros({kAllReduceBlocks}, DType::kU32, device);
  gpu->blocks = std::min(kAllReduceBlocks, jit::multiprocessors(device));
  for (const std::string& blocks : group.exchange("blocks of a launch", std::to_string(gpu->blocks)))
    gpu->blocks = std::min(gpu->blocks, std::stoi(blocks));
  if (device.type == DeviceType::kEmu) {
    gpu->emulated = meet_emulated(group);
    gpu->emulated->add_memory(gpu->rank, gpu->memory->of(gpu->rank));
  }
  return gpu;
}

bool gpu_wants_one_shot(int64_t bytes, int64_t ranks) {
  const int64_t megabytes = ranks <= 2 ? 512 : ranks < 8 ? 64 : 42;
  return 2 * bytes * ranks <= megabytes << 20;
}

op::Prepared prepare_on_gpu(const AllReduceOnGpu& call, const std::shared_ptr<AllReduceGpu>& gpu) {
  const AllReduceConfig& c = call.config;
  const AllReduceCudaConfig config{.dtype = c.dtype,
                                   .weight = c.weight,
                                   .fp32_acc = c.fp32_acc,
                                   .norm = c.norm,
                                   .quant = c.quant,
                                   .one_shot = call.one_shot,
                                   .aligned = is_aligned(call),
                                   .ranks = static_cast<unsigned char>(gpu->ranks),
                                   .threads = threads_for(call)};
  const Device device = gpu->memory->device();
  const int64_t item = call.input.item_size();
  AllReduceCudaParams p{.row = call.params, .scale = call.scale, .input = call.input.data()};
  p.elements = call.input.numel();
  if (!c.norm) p.row.d = config.threads * (16 / item);
  p.row.last = c.norm ? call.tokens : ceil_div(p.elements, p.row.d);
  cuda::Launch launch{.block = {static_cast<unsigned>(config.threads), 1, 1}, .cooperative = true};
  if (c.norm) {
    const int64_t shared = 128 + round_up(p.row.d * item, 16),
                  most = jit::arch_of_number(jit::arch_number(device)).shared_bytes;
    if (shared > most)
      return op::Unsupported{
          str("input.shape[1] is ", p.row.d, ", but a row must fit into ", most - 128, " bytes of shared memory")};
    launch.shared_bytes = static_cast<unsigned>(shared);
  }
  const int64_t share = call.one_shot ? p.row.last : ceil_div(p.row.last, gpu->ranks);
  launch.grid[0] = static_cast<unsigned>(std::min<int64_t>(share, gpu->blocks));
  for (int r = 0; r < gpu->ranks; ++r) p.row.source[r] = gpu->memory->of(r);
  p.phases = reinterpret_cast<uint32_t*>(gpu->phases.data());
  p.slot = gpu->slot, p.rank = gpu->rank;
  p.limit = static_cast<uint64_t>(flashinfer::comm::timeout_seconds() * 1e9);
  const jit::CudaLoaded& kernel = jit::cuda_kernel<kAllReduceCuda>(config, device);
  if (!kernel.why_not.empty()) return op::Unsupported{kernel.why_not};
  return [&kernel, p, launch, gpu] {
    ++gpu->calls;
    if (launch.grid[0] == 0) return;
    if (gpu->emulated)
      gpu->emulated->launch(gpu->rank, kernel, &p, sizeof p, launch, flashinfer::comm::timeout_seconds());
    else
      jit::launch(kernel, p, launch);
  };
}

}  // namespace flashinfer::ops::comm
