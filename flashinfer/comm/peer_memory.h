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
  /// Collective: `bytes` zeros, the same number on every rank, on each rank's `device`. Ranks of one process give each
  /// other addresses, on the emulator only these. NotImplementedError, on every rank: a rank's device cannot do that.
  static std::shared_ptr<PeerMemory> share(Group& group, Device device, int64_t bytes);
  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  /// The memory of a rank, as this rank's GPU addresses it; 256-byte aligned.
  void* of(int rank) const { return of_[static_cast<size_t>(rank)]; }
  Device device() const { return device_; }

 private:
  PeerMemory(Group& group, Device device);
  std::string export_own(int64_t bytes);
  void import_from(Group& group, const std::vector<std::string>& all);
  std::shared_ptr<Group> group_;
  Device device_;
  int rank_;
  std::vector<void*> of_;
};

}  // namespace flashinfer::comm
