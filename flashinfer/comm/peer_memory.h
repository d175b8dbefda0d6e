// SPDX-License-Identifier: Apache-2.0
// Memory of GPUs that the GPUs of all ranks of a group access.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "flashinfer/comm/group.h"
#include "flashinfer/core/dtype.h"

namespace flashinfer::comm {

class PeerMemory {
 public:
  /// Collective: `bytes` zeros, the same number on every rank, on each rank's `device`: processes give each other the
  /// driver's IPC handles, ranks of one process addresses; the emulator has only these. NotImplementedError, on every
  /// rank, with the driver's reason: a rank's device cannot do that. On GPUs the destructor waits for the other ranks'.
  static std::shared_ptr<PeerMemory> share(Group& group, Device device, int64_t bytes);
  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  /// The memory of a rank, as this rank's GPU addresses it; 256-byte aligned.
  void* of(int rank) const { return of_[static_cast<size_t>(rank)]; }
  Device device() const { return device_; }

 private:
  PeerMemory(Group& group, Device device);
  void*& own() { return of_[static_cast<size_t>(rank_)]; }
  std::string export_own(int64_t bytes);
  void import_from(Group& group, const std::vector<std::string>& all);
  std::shared_ptr<Group> group_;
  Device device_;
  int rank_;
  bool shared_ = false;  // share() has succeeded
  std::vector<void*> of_, imported_;
};

}  // namespace flashinfer::comm
