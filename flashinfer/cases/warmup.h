// SPDX-License-Identifier: Apache-2.0
// Compiling before serving. An engine names the ops and shapes it will use, in the text of the case tables:
//   warmup({{"rmsnorm", "input=bf16:8x4096 weight=bf16:4096"}, {"silu_and_mul", "input=bf16:8x2048"}});
// Kernels depend on dtypes, head sizes and the like, rarely on how many rows there are: small extents do.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "flashinfer/jit/engine.h"
#include "flashinfer/op/op.h"

namespace flashinfer {

struct WarmupItem {
  std::string op;    // public name: "rmsnorm", "BatchDecodeWithPagedKVCacheWrapper.run"
  std::string args;  // as in cases/parse.h
};
struct WarmupReport {
  int64_t kernels = 0, compiled = 0, loaded = 0;  // loaded: from memory, disk or made ahead
  std::vector<std::string> problems;              // one per item or kernel that will not be served by a compiled kernel
  double seconds = 0;
};
/// Loads or compiles every kernel the items need, `jobs` at a time (0: MAX_JOBS, else one per core). `progress` is
/// called after each kernel. ValueError for an op or arguments that do not exist; what cannot be compiled is a problem
/// in the report.
WarmupReport warmup(std::span<const WarmupItem> items, const std::function<void(const jit::Progress&)>& progress = {},
                    int jobs = 0);
inline WarmupReport warmup(std::initializer_list<WarmupItem> items,
                           const std::function<void(const jit::Progress&)>& progress = {}, int jobs = 0) {
  return warmup(std::span<const WarmupItem>(items.begin(), items.size()), progress, jobs);
}

struct Availability {
  bool available = false;  // an implementation other than the reference serves
  std::string candidate;   // which one would serve: "cpu", ..., "reference"; empty: none
  std::vector<std::pair<std::string, std::string>> refusals;  // those before it, and why
  /// "cpu: no C++ compiler ..., " for messages; empty when nothing refused.
  std::string why() const;
};
/// Which implementation would serve these arguments on this machine. Its kernel is loaded or compiled on the way.
Availability is_available(const std::string& op, const std::string& args);

namespace cases {
/// The kernels that the cases with any of `tags` ask for (0: all cases), without compiling; `problems` (if given) gets
/// a line for every case that could not be built.
std::vector<jit::Request> kernels(std::span<const op::Op* const> ops, unsigned tags,
                                  std::vector<std::string>* problems = nullptr);
/// The CUDA kernels that they ask for on a GPU of this compute capability (90 for 9.0), which need not be there.
std::vector<jit::Request> cuda_kernels(std::span<const op::Op* const> ops, unsigned tags, int arch,
                                       std::vector<std::string>* problems = nullptr);
}  // namespace cases

}  // namespace flashinfer
