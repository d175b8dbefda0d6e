// SPDX-License-Identifier: Apache-2.0
// The JIT's interface for programs and tools: compile a list of kernels beforehand, statistics, reset.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "flashinfer/jit/jit.h"
#include "flashinfer/jit/request.h"
#include "flashinfer/jit/toolchain.h"

#pragma GCC visibility push(default)

namespace flashinfer::jit {

/// Since the process began (or reset_stats()).
struct Stats {
  int64_t compiled = 0;
  double compile_seconds = 0;  // of the compilers, summed; parallel ones overlap
  int64_t disk_hits = 0;       // loaded from the disk cache
  int64_t aot_hits = 0;        // loaded from AOT artifacts
  int64_t memory_hits = 0;     // lookups on the launch path that hit; a lower bound when threads race
  int64_t failed = 0;          // did not compile or load
  int64_t unavailable = 0;     // no compiler and no AOT artifact
  double load_seconds = 0;     // of dlopen and checks, compiling not included
};
Stats stats();
void reset_stats();

/// Kernels requested by this process, in order.
struct Module {
  std::string text;  // "norm.rmsnorm{dtype=bfloat16,gemma=0}"
  std::string target;
  std::string origin;  // "compiled", "disk", "aot", "unavailable" or "failed"
  std::string path;    // of kernel.so or kernel.cubin; empty when there is none
  double seconds = 0;  // from the request to the loaded kernel
};
std::vector<Module> modules();

/// While it lives, kernel lookups of this thread load and compile nothing: they record the request and return no kernel
/// (`why_not`: "being listed, not run"; on a GPU none either, but no reason, so that a call of several kernels asks for
/// all of them; its launch would be an InternalError). Selecting a candidate for every case of every op's table this
/// way gives the list for AOT and warm-up.
class KernelCollector {
 public:
  KernelCollector();
  ~KernelCollector();
  KernelCollector(const KernelCollector&) = delete;
  KernelCollector& operator=(const KernelCollector&) = delete;
  /// The requests so far, without repeats, in order.
  std::vector<Request> take();

 private:
  std::vector<Request>* previous_;
  std::unique_ptr<std::vector<Request>> list_;
};

enum class Outcome { kMemory, kDisk, kAot, kCompiled, kUnavailable, kFailed };
const char* name(Outcome o);
struct Progress {
  int64_t done, total;  // `done` includes this one
  const Request* request;
  Outcome outcome;
  double seconds;              // this one
  const std::string* message;  // why there is none or the error, else empty
};
struct Prefetched {
  Outcome outcome = Outcome::kFailed;
  double seconds = 0;
  std::string message;
};
/// Loads or compiles all `requests`, `jobs` at a time (0: MAX_JOBS, else one per core), so that later launches find
/// them. `progress` is called after each, one call at a time. Never throws for a kernel: see the results, in the order
/// of requests.
std::vector<Prefetched> prefetch(std::span<const Request> requests, int jobs = 0,
                                 const std::function<void(const Progress&)>& progress = {});

/// Why no kernel for `t` can be compiled on this machine ("FLASHINFER_DISABLE_JIT is 1", "no C++ compiler: ..."), or
/// empty.
std::string why_no_compiler(Target t = Target::kNative);

/// Drops kernels, compilers, headers and folders (loaded kernels stay valid), so that the next call searches again:
/// after the environment or a header changed.
void reset();

}  // namespace flashinfer::jit

#pragma GCC visibility pop
