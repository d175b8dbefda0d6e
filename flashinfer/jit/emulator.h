// SPDX-License-Identifier: Apache-2.0
// Launches on `emu`: their schedules and results.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "flashinfer/core/cuda_launch.h"

#pragma GCC visibility push(default)

namespace flashinfer::emu {
struct Counts;
}

namespace flashinfer::jit {

struct CudaKernel;
struct CudaLoaded;

/// One launch on the emulator.
struct EmulatedLaunch {
  std::string kernel;  // "norm.rmsnorm{...}"
  cuda::Launch launch;
  std::shared_ptr<const emu::Counts> counts;  // null unless requested (kernels/emu/emu.h)
};

/// While it lives, launches of this thread on the emulator use the schedule `seed` (0: in order; others: a different
/// schedule each), are counted on request, and are listed. Without one the seed is FLASHINFER_EMU_SEED.
class Emulation {
 public:
  explicit Emulation(uint64_t seed, bool count = false);
  ~Emulation();
  Emulation(const Emulation&) = delete;
  Emulation& operator=(const Emulation&) = delete;
  const std::vector<EmulatedLaunch>& launches() const { return launches_; }

 private:
  friend class EmulatedRanks;
  friend void run_emulated(const CudaKernel&, const void*, size_t, const cuda::Launch&);
  uint64_t seed_;
  bool count_;
  std::vector<EmulatedLaunch> launches_;
  Emulation* previous_;
};

/// The entry of an artifact for the emulator, bound to it; null with `error` set when it does not load.
void (*load_emulated(const std::string& path, std::string& error))(const void*);
/// RuntimeError with the emulator's findings, a line each.
void run_emulated(const CudaKernel& kernel, const void* params, size_t bytes, const cuda::Launch& launch);

/// Ranks of a group in threads of this process, each of which is a GPU of its own on the emulator. Launches that wait
/// for other ranks run at the same time: the ranks' n-th ones, when all ranks that take part have made them.
class EmulatedRanks {
 public:
  explicit EmulatedRanks(int ranks);
  ~EmulatedRanks();
  EmulatedRanks(const EmulatedRanks&) = delete;
  EmulatedRanks& operator=(const EmulatedRanks&) = delete;

  /// The allocation that begins at `begin` is memory of that rank's GPU: accesses of the others are counted.
  void add_memory(int rank, const void* begin);
  /// The launch of a rank; returns when the launches of all ranks in `among` (bit r: rank r) have ended.
  /// comm::GroupError with the emulator's findings, on every rank; or a rank has abandoned its launch, or has not
  /// launched within `seconds`.
  void launch(int rank, const CudaLoaded& kernel, const void* params, size_t bytes, const cuda::Launch& launch,
              uint64_t among, double seconds);
  /// The rank will not make its next launch, which the others make or will make: they get an error with the reason.
  void abandon(int rank, const std::string& reason);

 private:
  friend class HeldLaunches;
  struct Outcome;
  struct Made;  // a launch, or the reason why there is none
  /// The ranks of `among` that have made no launch.
  std::vector<int> missing(uint64_t among) const;
  void run_first(uint64_t among);
  /// The first launches of the ranks in `among`, as far as they have made them; the emulator's findings.
  std::string run(size_t launches, uint64_t among, std::shared_ptr<const emu::Counts>& counts);
  std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<std::deque<Made>> made_;  // by rank
  std::vector<std::pair<const void*, int>> memory_;
  bool held_ = false;
};

/// While it lives, launches of EmulatedRanks are kept instead, as a stream keeps them; run() runs those of all ranks,
/// each rank's one after another but not ordered with the others' except by what the kernels do. As a GPU does, which
/// may begin a call while another one is still in the call before; a rank may have made fewer, or none. For tests, one
/// at a time.
class HeldLaunches {
 public:
  explicit HeldLaunches(EmulatedRanks& ranks);
  ~HeldLaunches();
  HeldLaunches(const HeldLaunches&) = delete;
  HeldLaunches& operator=(const HeldLaunches&) = delete;
  /// With the schedule of the first rank's first launch. RuntimeError with the emulator's findings.
  void run();

 private:
  EmulatedRanks& ranks_;
};

}  // namespace flashinfer::jit

#pragma GCC visibility pop
