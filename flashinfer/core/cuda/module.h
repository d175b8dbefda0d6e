// SPDX-License-Identifier: Apache-2.0
// Cubins in the driver: loading, and the launch.
#pragma once
#include <string>

#include "flashinfer/core/cuda/device.h"
#include "flashinfer/core/cuda_launch.h"

#pragma GCC visibility push(default)

namespace flashinfer::cuda {

/// A kernel of a loaded cubin; lives as long as the process (modules are never unloaded: graphs may hold their
/// kernels).
struct Function {
  Handle handle = nullptr;
  int device = 0;
  int registers = 0;     // a thread
  int local_bytes = 0;   // a thread, spills included
  int shared_bytes = 0;  // static
  int max_threads = 0;   // a block
};
/// Loads `cubin` (an ELF image) into cuda:`index` and finds `name`. Allows it the device's maximum of dynamic shared
/// memory a block. RuntimeError with the driver's text.
Function load(const std::string& cubin, const char* name, int index);

/// Enqueues the kernel on `stream` with one argument of `bytes`, copied now. ValueError for a launch that exceeds the
/// limits of CUDA or of this GPU (grid limits, cluster sizes, shared memory), with both numbers; RuntimeError with the
/// driver's text. `what` names the kernel.
void launch(const Function& f, const void* params, const Launch& launch, Handle stream, const char* what);

/// Number of blocks of this size that run on one multiprocessor at once.
int occupancy(const Function& f, int threads, size_t shared_bytes);

/// Checks that hold for every target; `clusters`, `shared_limit`: of the device.
void check_launch(const Launch& l, bool clusters, int shared_limit, const char* what);

}  // namespace flashinfer::cuda

#pragma GCC visibility pop
