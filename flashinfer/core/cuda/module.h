// SPDX-License-Identifier: Apache-2.0
// Cubins in the driver: loading, and the launch.
#pragma once
#include <string>

#include "flashinfer/core/cuda/device.h"
#include "flashinfer/core/cuda_launch.h"

namespace flashinfer::cuda {

/// A kernel of a loaded cubin; as long as the process (modules are never unloaded: graphs may hold their kernels).
struct Function {
  Handle handle = nullptr;
  int device = 0;
  int registers = 0;     // a thread
  int local_bytes = 0;   // a thread, spills included
  int shared_bytes = 0;  // static
  int max_threads = 0;   // a block
};
/// Loads `cubin` (an ELF image) into cuda:`index` and finds `name`. Allows it as much dynamic shared memory as a block
/// may have. RuntimeError with the driver's sentence.
Function load(const std::string& cubin, const char* name, int index);

/// Enqueues the kernel on `stream` with one argument of bytes, copied now. ValueError for a launch that no GPU or not
/// this one takes (grid limits, cluster sizes, shared memory), with both numbers; RuntimeError with the driver's
/// sentence. `what` names the kernel.
void launch(const Function& f, const void* params, const Launch& launch, Handle stream, const char* what);

/// How many blocks of this size run on one multiprocessor at once.
int occupancy(const Function& f, int threads, size_t shared_bytes);

/// Checks that hold for every target; `clusters`, `shared_limit`: of the device.
void check_launch(const Launch& l, bool clusters, int shared_limit, const char* what);

}  // namespace flashinfer::cuda
