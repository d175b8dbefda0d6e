// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/comm/gpu.h"

#include <algorithm>
#include <cstring>

#include "flashinfer/comm/agree.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/jit/cuda.h"
#include "flashinfer/ops/comm/kernels/cuda_params.h"

namespace flashinfer::ops::comm {
namespace {
using flashinfer::comm::Group;

/// Ranks in threads of one process meet in one object, which rank 0 makes.
std::shared_ptr<jit::EmulatedRanks> meet_emulated(Group& group) {
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

/// Of a slot, for each rank: pieces of tensors that are larger than a slot need some.
constexpr int64_t kLeastOfRank = 16 * 1024;

void share_memory(AllReduceGpu& gpu, Group& group, int64_t bytes) {
  gpu.slot = round_up(std::max(bytes, gpu.ranks * kLeastOfRank), 256);
  gpu.memory =
      flashinfer::comm::PeerMemory::share(group, gpu.device, kAllReduceFlagBytes + kAllReduceGpuSlots * gpu.slot);
  flashinfer::comm::on_every_rank(group, "memory of GPUs",
                                  [&] { gpu.words = Tensor::zeros({kPhaseWords}, DType::kU32, gpu.device); });
  if (gpu.device.type != DeviceType::kEmu) return;
  gpu.emulated = meet_emulated(group);
  gpu.emulated->add_memory(gpu.rank, gpu.memory->of(gpu.rank));
}
}  // namespace

MeetCudaParams AllReduceGpu::meet(const flashinfer::comm::Signature& call) const {
  return {.words = reinterpret_cast<uint32_t*>(words.data()),
          .report = said->report(),
          .limit = static_cast<uint64_t>(flashinfer::comm::timeout_seconds() * 1e9),
          .among = ranks >= 64 ? ~uint64_t{0} : (uint64_t{1} << ranks) - 1,
          .call = said->note(call),
          .rank = rank};
}
void AllReduceGpu::begin(const flashinfer::comm::Signature& call) {
  said->check();
  const int64_t number = calls++;
  if (!nccl) return;
  const std::string difference = said->difference(number, call);
  if (difference.empty()) return;
  nccl->abandon(difference);
  throw flashinfer::comm::GroupError(str("group '", nccl->group().name(), "', rank ", rank, ": ", difference));
}
void AllReduceGpu::abandon(const std::string& reason) {
  if (emulated)
    emulated->abandon(rank, reason);
  else
    said->abandon(reason);
  if (nccl) nccl->abandon(reason);
}
void AllReduceGpu::launch(const jit::CudaLoaded& kernel, const void* params, size_t size, const cuda::Launch& l,
                          uint64_t among) const {
  if (!emulated) return jit::launch(kernel, params, size, l);
  emulated->launch(rank, kernel, params, size, l, among, flashinfer::comm::timeout_seconds());
  said->check();
}

std::shared_ptr<AllReduceGpu> connect_gpus(const std::shared_ptr<Group>& group, Device device, int64_t bytes,
                                           const std::string& backend) {
  auto gpu = std::make_shared<AllReduceGpu>();
  gpu->device = device, gpu->rank = group->rank(), gpu->ranks = group->size();
  flashinfer::comm::on_every_rank(*group, "blocks of a launch",
                                  [&] { gpu->blocks = std::min(kAllReduceBlocks, jit::multiprocessors(device)); });
  for (const std::string& blocks : group->exchange("blocks of a launch", std::to_string(gpu->blocks)))
    gpu->blocks = std::min(gpu->blocks, std::stoi(blocks));
  std::string why_no_peers;
  if (backend != "nccl") try {
      share_memory(*gpu, *group, bytes);
      gpu->said = std::make_unique<GpuCalls>(group, device, true);
      return gpu;
    } catch (const NotImplementedError& e) {
      if (backend == "peers" || group->size() == 1) throw;
      why_no_peers = str(e.message(), "; with NCCL: ");
    }
  try {
    gpu->nccl = flashinfer::comm::NcclGroup::connect(group, device);
    gpu->said = std::make_unique<GpuCalls>(group, device, false);
  } catch (const RuntimeError& e) {
    throw NotImplementedError(why_no_peers + e.message());
  }
  return gpu;
}

bool gpu_wants_one_shot(int64_t bytes, int64_t ranks) {
  const int64_t megabytes = ranks <= 2 ? 512 : ranks < 8 ? 64 : 42;
  return 2 * bytes * ranks <= megabytes << 20;
}

}  // namespace flashinfer::ops::comm
