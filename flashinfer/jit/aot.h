// SPDX-License-Identifier: Apache-2.0
// AOT artifacts: a cache filled beforehand, to be shipped with the library or to machines without a compiler.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "flashinfer/jit/engine.h"

#pragma GCC visibility push(default)

namespace flashinfer::jit {

struct AotResult {
  int64_t compiled = 0, kept = 0;  // kept: existing, made from the same source, headers, flags and version
  int64_t shared = 0;              // of both: without code of their own, because that of another level is the same
  double seconds = 0;
  uint64_t bytes = 0;                   // of all artifacts
  std::map<Target, uint64_t> bytes_of;  // by target
  std::vector<std::string> errors;      // one per kernel that did not compile
};

/// Fills <out_dir>/<target>/<name>-<hash>/ with `requests` for each target they apply to (CPU kernels for CPUs, CUDA
/// kernels for GPUs and the emulator), the same bytes in every run, `jobs` at a time (0: MAX_JOBS, else one per core).
/// Artifacts of the same kernels from other versions of the headers are replaced. A level of CPUs that extends another
/// (CpuLevel) stores only kernels whose code differs from that one's, when that one was made before it. Nothing is
/// loaded or run, so targets need not fit this CPU. RuntimeError when there is no compiler or the folder cannot be
/// written.
AotResult aot(const std::string& out_dir, std::span<const Target> targets, std::span<const Request> requests,
              int jobs = 0, const std::function<void(const Progress&)>& progress = {});

}  // namespace flashinfer::jit

#pragma GCC visibility pop
