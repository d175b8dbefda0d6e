// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/comm/peer_memory.h"

#include <unistd.h>

#include <cstring>
#include <string>

#include "flashinfer/core/check.h"
#include "flashinfer/core/emu_memory.h"

namespace flashinfer::comm {
namespace {

/// What a rank says of its memory.
struct Said {
  Device device;
  int64_t process = 0;
  uint64_t address = 0;
};
constexpr const char* kWhat = "memory of GPUs";

/// ValueError or NotImplementedError, on every rank, when one has a problem.
void agree(Group& group, const std::string& problem) {
  const auto problems = group.exchange(kWhat, problem);
  for (size_t r = 0; r < problems.size(); ++r)
    FI_CHECK(problems[r].empty(), NotImplementedError, "rank ", r, ": ", problems[r]);
}

}  // namespace

PeerMemory::PeerMemory(Group& group, Device device)
    : group_(group.shared_from_this()), device_(device), rank_(group.rank()), of_(static_cast<size_t>(group.size())) {}

std::shared_ptr<PeerMemory> PeerMemory::share(Group& group, Device device, int64_t bytes) {
  std::shared_ptr<PeerMemory> memory(new PeerMemory(group, device));
  std::string said, problem;
  try {
    said = memory->export_own(bytes);
  } catch (const Error& e) {
    problem = e.message();
  }
  agree(group, problem);
  const auto all = group.exchange(kWhat, said);
  problem.clear();
  try {
    memory->import_from(group, all);
  } catch (const Error& e) {
    problem = e.message();
  }
  agree(group, problem);
  return memory;
}

std::string PeerMemory::export_own(int64_t bytes) {
  FI_CHECK(device_.type == DeviceType::kEmu, NotImplementedError, "device is ", to_string(device_),
           ", but memory of GPUs is shared on the emulator alone");
  void* const own = emu_memory::allocate(static_cast<size_t>(bytes));
  of_[static_cast<size_t>(rank_)] = own;
  std::memset(own, 0, static_cast<size_t>(bytes));
  emu_memory::wrote(own, static_cast<size_t>(bytes));
  const Said said{device_, getpid(), reinterpret_cast<uint64_t>(own)};
  return {reinterpret_cast<const char*>(&said), sizeof said};
}

void PeerMemory::import_from(Group& group, const std::vector<std::string>& all) {
  for (int r = 0; r < group.size(); ++r) {
    Said said;
    std::memcpy(&said, all[static_cast<size_t>(r)].data(), sizeof said);
    FI_CHECK(said.device.type == device_.type, ValueError, "device is ", to_string(device_), ", but that of rank ", r,
             " is ", to_string(said.device));
    if (r == rank_) continue;
    FI_CHECK(said.process == getpid(), NotImplementedError,
             "the memory of the emulator is that of a process, but rank ", r,
             " is another process: run the ranks as threads");
    of_[static_cast<size_t>(r)] = reinterpret_cast<void*>(said.address);
  }
}

PeerMemory::~PeerMemory() { emu_memory::release(of_[static_cast<size_t>(rank_)]); }

}  // namespace flashinfer::comm
