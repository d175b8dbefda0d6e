// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/comm/peer_memory.h"

#include <unistd.h>

#include <cstring>
#include <string>

#include "flashinfer/comm/agree.h"
#include "flashinfer/core/check.h"
#include "flashinfer/core/cuda/device.h"
#include "flashinfer/core/cuda/peers.h"
#include "flashinfer/core/emu_memory.h"

namespace flashinfer::comm {
namespace {

/// What a rank says of its memory.
struct Said {
  Device device;
  int64_t process = 0;
  uint64_t address = 0;
  cuda::IpcHandle handle{};  // on a GPU
};
constexpr const char* kWhat = "memory of GPUs";

}  // namespace

PeerMemory::PeerMemory(Group& group, Device device)
    : group_(group.shared_from_this()), device_(device), rank_(group.rank()), of_(static_cast<size_t>(group.size())) {}

std::shared_ptr<PeerMemory> PeerMemory::share(Group& group, Device device, int64_t bytes) {
  FI_CHECK(group.one_machine(), NotImplementedError, "the ranks of group '", group.name(),
           "' are on several machines, whose GPUs do not access each other's memory");
  std::shared_ptr<PeerMemory> memory(new PeerMemory(group, device));
  constexpr ErrorKind kCannot = ErrorKind::kNotImplementedError;
  std::string said;
  on_every_rank(group, kWhat, [&] { said = memory->export_own(bytes); }, kCannot);
  const auto all = group.exchange(kWhat, said);
  on_every_rank(group, kWhat, [&] { memory->import_from(group, all); }, kCannot);
  memory->shared_ = true;
  return memory;
}

std::string PeerMemory::export_own(int64_t bytes) {
  const size_t n = static_cast<size_t>(bytes);
  Said said{device_, getpid()};
  if (device_.type == DeviceType::kEmu) {
    own() = emu_memory::allocate(n);
    std::memset(own(), 0, n);
    emu_memory::wrote(own(), n);
  } else {
    own() = cuda::allocate_exported(n, device_.index);
    if (group_->size() > 1) said.handle = cuda::export_memory(own(), device_.index);
  }
  said.address = reinterpret_cast<uint64_t>(own());
  return {reinterpret_cast<const char*>(&said), sizeof said};
}

void PeerMemory::import_from(Group& group, const std::vector<std::string>& all) {
  for (int r = 0; r < group.size(); ++r) {
    Said said;
    std::memcpy(&said, all[static_cast<size_t>(r)].data(), sizeof said);
    FI_CHECK(said.device.type == device_.type, ValueError, "device is ", to_string(device_), ", but that of rank ", r,
             " is ", to_string(said.device));
    if (r == rank_) continue;
    void*& to = of_[static_cast<size_t>(r)];
    const bool here = said.process == getpid();
    if (device_.type == DeviceType::kCUDA && !here) {
      to = cuda::import_memory(said.handle, device_.index);
      imported_.push_back(to);
      continue;
    }
    FI_CHECK(here, NotImplementedError, "the memory of the emulator is that of a process, but rank ", r,
             " is another process: run the ranks as threads");
    if (device_.type == DeviceType::kCUDA) cuda::enable_peer(device_.index, said.device.index);
    to = reinterpret_cast<void*>(said.address);
  }
}

/// A GPU's kernels may still read the memory of another rank when that one has ended its own: each waits for its
/// kernels, then for the other ranks (not for those that are gone), before it frees.
PeerMemory::~PeerMemory() {
  if (device_.type == DeviceType::kEmu) {
    emu_memory::release(own());
    return;
  }
  if (shared_) try {
      cuda::synchronize_device(device_.index);
      for (void* p : imported_) cuda::close_imported(p, device_.index);
      group_->barrier("end of memory of GPUs");
    } catch (const Error&) {
    }
  cuda::free_exported(own(), device_.index);
}

}  // namespace flashinfer::comm
