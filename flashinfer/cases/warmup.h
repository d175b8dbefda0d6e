// SPDX-License-Identifier: Apache-2.0
// Compiles kernels before the first requests. An engine names the ops and shapes it will use, in the text of the case
// tables:
//   warmup({{"rmsnorm", "input=bf16:8x4096 weight=bf16:4096"}, {"silu_and_mul", "input=bf16:8x2048"}});
// Kernels depend on dtypes, head sizes and the like, rarely on the number of rows, so small extents suffice.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "flashinfer/jit/engine.h"
#include "flashinfer/op/op.h"

#pragma GCC visibility push(default)

namespace flashinfer {

struct WarmupItem {
  std::string op;    // public name: "rmsnorm", "BatchDecodeWithPagedKVCacheWrapper.run"
  std::string args;  // as in cases/parse.h
};
struct WarmupReport {
  int64_t kernels = 0, compiled = 0, loaded = 0;  // loaded: from memory, disk or precompiled
  std::vector<std::string> problems;              // one for each item or kernel without a compiled kernel
  double seconds = 0;
};
/// Loads or compiles every kernel that the items need, `jobs` at a time (0: MAX_JOBS, else one per core). `progress` is
/// called after each kernel. ValueError for an op or arguments that do not exist; a failed compilation is a problem in
/// the report.
WarmupReport warmup(std::span<const WarmupItem> items, const std::function<void(const jit::Progress&)>& progress = {},
                    int jobs = 0);
inline WarmupReport warmup(std::initializer_list<WarmupItem> items,
                           const std::function<void(const jit::Progress&)>& progress = {}, int jobs = 0) {
  return warmup(std::span<const WarmupItem>(items.begin(), items.size()), progress, jobs);
}

struct Availability {
  bool available = false;  // an implementation other than the reference is selected
  std::string candidate;   // the one that is selected: "cpu", ..., "reference"; empty: none
  std::vector<std::pair<std::string, std::string>>
      unsupported;  // candidates before it, and why they do not support the call
  /// "cpu: no C++ compiler ..., " for messages; empty when the first candidate is selected.
  std::string why() const;
};
/// The implementation that is selected for these arguments on this machine. Loads or compiles its kernel.
Availability is_available(const std::string& op, const std::string& args);

namespace cases {
/// The kernels that the items need on `device`, without compiling. ValueError for an op or arguments that do not exist.
std::vector<jit::Request> kernels(std::span<const WarmupItem> items, Device device = kCpu);
/// The kernels that the cases with any of `tags` need (0: all cases), without compiling; `problems` (if given) gets a
/// line for every case that could not be built.
std::vector<jit::Request> kernels(std::span<const op::Op* const> ops, unsigned tags,
                                  std::vector<std::string>* problems = nullptr);
/// The CUDA kernels that they need on a GPU of this compute capability (90 for 9.0), which need not be present.
std::vector<jit::Request> cuda_kernels(std::span<const op::Op* const> ops, unsigned tags, int arch,
                                       std::vector<std::string>* problems = nullptr);
/// Those that no case row needs: of communication between GPUs, and of statistics inside a graph.
std::vector<jit::Request> cuda_kernels_beside_cases(int arch);
}  // namespace cases

}  // namespace flashinfer

#pragma GCC visibility pop
