// SPDX-License-Identifier: Apache-2.0
// Launches on `emu`: their schedules and results.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "flashinfer/core/cuda_launch.h"

namespace flashinfer::emu {
struct Counts;
}

namespace flashinfer::jit {

struct CudaKernel;

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

}  // namespace flashinfer::jit
