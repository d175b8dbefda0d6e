// SPDX-License-Identifier: Apache-2.0
// Used by the engine for CUDA kernels: a device's target, why it has none, and loading of artifacts.
#pragma once
#include <atomic>
#include <string>
#include <vector>

#include "flashinfer/core/cuda/module.h"
#include "flashinfer/jit/request.h"
#include "flashinfer/jit/toolchain.h"

#pragma GCC visibility push(default)

namespace flashinfer::jit {

struct CudaKernel {
  std::string name;  // "norm.rmsnorm{...}"
  Device device;
  cuda::Function function;                         // on a GPU
  void (*emulated)(const void* params) = nullptr;  // on the emulator
  // The last answer of occupancy(): threads, shared bytes and blocks, in 16, 32 and 16 bits; 0: not asked yet.
  mutable std::atomic<uint64_t> occupancy{0};
};

/// A CUDA kernel's header ends with .cuh.
inline bool is_cuda(const Request& r) { return r.header.ends_with(".cuh"); }

/// The best target for the device among FLASHINFER_CUDA_ARCH_LIST (all, when it is not set) that the compiler supports,
/// else the best of all. Target::kEmu for the emulator.
Target cuda_target(Device device);
/// Targets whose AOT artifacts run on the device, best first.
std::vector<Target> cuda_stand_ins(Device device);
/// Why cuda:`index` cannot run kernels for `target` (no driver, no such GPU, a driver older than the compiler, ...), or
/// empty.
std::string why_no_cuda(int index, Target target);
/// nvcc, whatever FLASHINFER_TOOLCHAIN says: for programs' own CUDA sources (library.h).
Toolchain nvcc_toolchain();
/// The best target of each GPU of this machine, without repeats; empty without a driver or GPU.
std::vector<Target> visible_gpu_targets();
/// Null, with `error` set, for an artifact that does not load.
const CudaKernel* load_cuda(const std::string& path, const Request& request, Device device, std::string& error);

}  // namespace flashinfer::jit

#pragma GCC visibility pop
