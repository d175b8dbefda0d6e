// SPDX-License-Identifier: Apache-2.0
// What the ranks of a workspace on GPUs know of each other's calls without waiting for each other: which ones they
// make, and that one has failed.
//
// Kernels that meet (peers) compare a number of the call themselves and report to host memory; a thread looks there and
// for ranks that are gone. With NCCL a rank says what it is about to call, then looks what the others have said: of two
// ranks that differ, the later one sees it. On ranks of several machines, which only NCCL connects, nothing is
// compared.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "flashinfer/comm/rank_watch.h"
#include "flashinfer/comm/window.h"
#include "flashinfer/core/cuda/memory.h"
#include "flashinfer/core/dtype.h"
#include "flashinfer/ops/comm/kernels/meet_params.h"

namespace flashinfer::ops::comm {

class GpuCalls {
 public:
  using Signature = flashinfer::comm::Signature;
  /// Collective. `meets`: kernels report. Waits of the library for `device` (cuda::synchronize, copies to the host)
  /// throw the first GroupError that no call has thrown.
  GpuCalls(std::shared_ptr<flashinfer::comm::Group> group, Device device, bool meets);
  ~GpuCalls();
  GpuCalls(const GpuCalls&) = delete;
  GpuCalls& operator=(const GpuCalls&) = delete;

  /// Notes the call for the messages of all ranks; its number for MeetCudaParams.
  uint32_t note(const Signature& call);
  MeetReport* report() const { return report_; }
  /// GroupError with op, rank and reason: a call has failed, and the workspace with it.
  void check();
  /// Before call `number`, the same on all ranks. The first difference that this rank sees, as a sentence; empty: none.
  std::string difference(int64_t number, const Signature& call);
  /// This rank has met an error in a call that the others make or will make.
  void abandon(const std::string& reason);

 private:
  static constexpr size_t kKeptTexts = 64, kKeptCalls = 4096;
  struct Board;
  Board& board_of(int rank) const;
  std::string text_of(int rank, uint32_t call) const;
  std::string text_of(const MeetReport& report) const;
  /// Looks for what has failed; true: something has.
  bool failed();
  void fail(const std::string& what);
  void look();
  [[noreturn]] void raise();
  friend void check_waits(int index);

  std::shared_ptr<flashinfer::comm::Group> group_;
  Device device_;
  std::shared_ptr<flashinfer::comm::Window> boards_{};  // null: several machines
  std::optional<cuda::Pinned> pinned_{};
  MeetReport* report_ = nullptr;  // null: no kernel meets
  size_t noted_ = 0;
  std::mutex mutex_{};
  std::string failed_{};  // of mutex_
  std::atomic<bool> has_failed_{false}, told_{false};
  std::optional<flashinfer::comm::RankWatch> watch_{};  // last: its thread uses the others
};

}  // namespace flashinfer::ops::comm
