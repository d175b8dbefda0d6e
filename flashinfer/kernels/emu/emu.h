// SPDX-License-Identifier: Apache-2.0
// The CUDA emulator: runs one launch of a kernel that the host compiler built with the emulated wrappers of
// kernels/cuda. Stricter than hardware: docs/emulator.md describes what it finds, and how.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "flashinfer/core/cuda_launch.h"

#pragma GCC visibility push(default)

namespace flashinfer::emu {

/// Global memory that the kernel may access.
struct Range {
  const void* begin;
  size_t bytes;
  /// One bit for each byte, set once it was written; the kernel's writes set it. A byte without it holds 0xff unless
  /// the host wrote it directly. Null: all of it has values.
  uint8_t* written = nullptr;
  int gpu = -1;  // whose memory it is, for counts; -1: of all
};

struct Options {
  uint64_t seed = 0;  // 0: blocks and threads in order, no preemption; others: a different schedule each
  bool races = true;
  bool count = false;
  std::span<const Range> memory = {};  // sorted by begin; empty: global accesses are not bounds-checked
  std::function<std::vector<Range>()> freed =
      {};  // memory of earlier tensors, asked for when an access is out of bounds
  // What the emulated GPU has (jit/targets.h).
  unsigned shared_limit = 232448;  // bytes of shared memory a block
  bool clusters = true;            // from sm_90
  bool async_copy = true;          // cp.async and mma of 16 x 8 x 16: from sm_80
  double idle_seconds = 8;         // processor time of a kernel without an access or a wait: it never ends
};

/// One source line's worst shared request, or its global requests together.
struct LineCount {
  std::string where;
  uint64_t requests = 0;  // warp-wide instructions
  uint64_t units = 0;     // global: 32-byte sectors; shared: passes over the banks
  uint64_t least = 0;     // minimum for the same bytes
  bool shared = false, write = false;
};
struct Counts {
  uint64_t global_load_bytes = 0, global_store_bytes = 0;      // requested by lanes
  uint64_t global_load_sectors = 0, global_store_sectors = 0;  // of 32 bytes, by request
  uint64_t least_load_sectors = 0, least_store_sectors = 0;    // if each request's bytes were contiguous
  uint64_t global_requests = 0;
  uint64_t remote_load_bytes = 0, remote_store_bytes = 0;  // of them: of memory of another GPU
  uint64_t shared_load_bytes = 0, shared_store_bytes = 0, shared_requests = 0;
  uint64_t shared_passes = 0, least_shared_passes = 0;  // the difference is the number of bank conflicts
  uint64_t mma = 0, matrix = 0, shuffles = 0, votes = 0, barriers = 0, async_copies = 0, atomics = 0,
           special = 0;          // warp-wide
  std::vector<LineCount> lines;  // most expensive first
  uint64_t bank_conflicts() const { return shared_passes - least_shared_passes; }
  std::string text() const;
};

struct Report {
  std::string error;                // all of `errors`, a line each; empty: clean
  std::vector<std::string> errors;  // sentences with source lines
  Counts counts;
  uint64_t switches = 0;
};

/// The argument of an artifact's flashinfer_emu_bind.
void* hooks();

/// Runs `kernel` (flashinfer_emu_kernel of an artifact) on a copy of the parameter block, on the calling thread; one
/// run at a time in a process. A kernel that writes out of bounds or cannot continue is stopped there.
Report run(void (*kernel)(const void*), const void* params, size_t bytes, const cuda::Launch& launch,
           const Options& options = {});

/// A launch of one of several GPUs.
struct Work {
  void (*kernel)(const void*);
  const void* params;
  size_t bytes;
  cuda::Launch launch;
};
/// Runs several GPUs at the same time, which share their global memory: gpus[g] are the launches of GPU g, one after
/// another in a stream of its own. Nothing orders the launches of two GPUs but what their kernels do. All launches are
/// cooperative: a kernel that waits for another GPU needs all its blocks on this one.
Report run_together(std::span<const std::vector<Work>> gpus, const Options& options = {});

}  // namespace flashinfer::emu

#pragma GCC visibility pop
