// SPDX-License-Identifier: Apache-2.0
// What programs and tools ask of the JIT beyond one kernel: compile a list ahead, know what happened, start anew.
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

namespace flashinfer::jit {

/// Since the process began (or reset_stats()).
struct Stats {
  int64_t compiled = 0;
  double compile_seconds = 0;  // of the compilers, summed; parallel ones overlap
  int64_t disk_hits = 0;       // loaded from the disk cache
  int64_t aot_hits = 0;        // loaded from artifacts made ahead
  int64_t memory_hits = 0;     // lookups on the launch path that found their kernel; a lower bound when threads race
  int64_t failed = 0;          // did not compile or load
  int64_t refused = 0;         // no compiler, nothing made ahead
  double load_seconds = 0;     // of dlopen and checks, compiling not included
};
Stats stats();
void reset_stats();

/// Kernels this process asked for, in the order of asking.
struct Module {
  std::string text;  // "norm.rmsnorm{dtype=bfloat16,gemma=0}"
  std::string target;
  std::string origin;  // "compiled", "disk", "aot", "refused" or "failed"
  std::string path;    // of kernel.so or kernel.cubin; empty when there is none
  double seconds = 0;  // from asking to having it
};
std::vector<Module> modules();

/// While it lives, jit::cpu_kernel on this thread loads and compiles nothing: it notes what was asked and refuses
/// ("being listed, not run"). Running the `refuse` of every case of every op's table this way gives the list for AOT
/// and warm-up.
class KernelCollector {
 public:
  KernelCollector();
  ~KernelCollector();
  KernelCollector(const KernelCollector&) = delete;
  KernelCollector& operator=(const KernelCollector&) = delete;
  /// What was asked since, without repeats, in order.
  std::vector<Request> take();

 private:
  std::vector<Request>* previous_;
  std::unique_ptr<std::vector<Request>> list_;
};

enum class Outcome { kMemory, kDisk, kAot, kCompiled, kRefused, kFailed };
const char* name(Outcome o);
struct Progress {
  int64_t done, total;  // done counts this one
  const Request* request;
  Outcome outcome;
  double seconds;              // this one
  const std::string* message;  // refusal or error, else empty
};
struct Prefetched {
  Outcome outcome = Outcome::kFailed;
  double seconds = 0;
  std::string message;
};
/// Loads or compiles all of `requests`, `jobs` at a time (0: MAX_JOBS, else one per core), so that launches later find
/// them. `progress` is called after each, one call at a time. Never throws for a kernel: see the results, in the order
/// of requests.
std::vector<Prefetched> prefetch(std::span<const Request> requests, int jobs = 0,
                                 const std::function<void(const Progress&)>& progress = {});

/// Runs `work(i)` for i in [0, n) on `jobs` threads (0 as above).
void for_each_job(int64_t n, int jobs, const std::function<void(int64_t)>& work);

/// Why no kernel for `t` can be compiled on this machine ("FLASHINFER_DISABLE_JIT is 1", "no C++ compiler: ..."), or
/// empty.
std::string compiler_refusal(Target t = Target::kNative);

/// Forgets kernels, compilers, headers and folders (not what is loaded: kernels in use stay valid), so that the next
/// call looks anew: after the environment or a header changed.
void reset();

}  // namespace flashinfer::jit
