// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/comm/gpu_share.h"

#include <map>

#include "flashinfer/comm/agree.h"
#include "flashinfer/core/check.h"
#include "flashinfer/core/fork_mutex.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/comm/gpu.h"
#include "flashinfer/ops/comm/gpu_share_state.h"

namespace flashinfer {
namespace ops::comm {
namespace {
constinit ForkMutex g_mutex(ForkLayer::kOps);
std::map<const void*, std::weak_ptr<GpuShare>>& shares() {
  static auto* all = new std::map<const void*, std::weak_ptr<GpuShare>>;  // tensors may outlive static objects
  return *all;
}

constexpr const char* kWhat = "share_on_gpu";
/// What all ranks must pass alike, and none wrong.
void agree(flashinfer::comm::Group& group, Device device, int64_t bytes, const std::string& backend) {
  flashinfer::comm::on_every_rank(group, kWhat, [&] {
    FI_CHECK(bytes >= 1, ValueError, "share_on_gpu: bytes is ", bytes, ", but must be at least 1");
    FI_CHECK(device.type != DeviceType::kCPU, ValueError, "share_on_gpu: device is ", to_string(device),
             ", but must be a GPU: comm::share is for the CPU");
    FI_CHECK(backend == "auto" || backend == "peers" || backend == "nccl", ValueError, "share_on_gpu: backend is '",
             backend, "', but must be auto, peers or nccl");
  });
  const auto all = group.exchange(kWhat, str("bytes=", bytes, ", backend='", backend, "'"));
  for (size_t r = 1; r < all.size(); ++r)
    FI_CHECK(all[r] == all[0], ValueError, "share_on_gpu: rank ", r, " has ", all[r], ", but rank 0 has ", all[0]);
}
}  // namespace

std::shared_ptr<GpuShare> gpu_share_at(const void* first) {
  const std::scoped_lock lock(g_mutex);
  const auto found = shares().find(first);
  return found == shares().end() ? nullptr : found->second.lock();
}
}  // namespace ops::comm

Tensor share_on_gpu(const std::shared_ptr<comm::Group>& group, Device device, int64_t bytes,
                    const std::string& backend) {
  using namespace ops::comm;
  agree(*group, device, bytes, backend);
  auto share = std::make_shared<GpuShare>();
  share->group = group, share->bytes = bytes;
  // Its slots, one behind another; exchanges use two of them, in turn.
  share->gpu = connect_gpus(group, device, ceil_div(bytes, int64_t{kAllReduceGpuSlots}), backend);
  if (share->gpu->memory) {
    share->own = static_cast<std::byte*>(share->gpu->memory->of(group->rank())) + kAllReduceFlagBytes;
  } else {
    flashinfer::comm::on_every_rank(*group, kWhat, [&] { share->memory = Tensor::zeros({bytes}, DType::kU8, device); });
    share->own = static_cast<std::byte*>(share->memory.data());
  }
  {
    const std::scoped_lock lock(g_mutex);
    shares()[share->own] = share;
  }
  const int64_t shape[] = {group->size(), bytes}, strides[] = {0, 1};
  const TensorView view(share->own, DType::kU8, shape, strides, device);
  // The entry goes before the memory does, whose address other memory may get.
  std::shared_ptr<void> owner(share.get(), [held = share](void*) mutable {
    {
      const std::scoped_lock lock(g_mutex);
      shares().erase(held->own);
    }
    held = nullptr;
  });
  return Tensor(view, std::move(owner));
}

}  // namespace flashinfer
