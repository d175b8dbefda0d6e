// SPDX-License-Identifier: Apache-2.0
// GPU targets, which GPU runs which of them, and their features. One table.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "flashinfer/core/dtype.h"
#include "flashinfer/jit/toolchain.h"

#pragma GCC visibility push(default)

namespace flashinfer::jit {

/// Features that a target's kernels may use. Rules of the suffixes: code for sm_90a runs on 9.0 only, for sm_100f on
/// 10.0 and later 10.x, for sm_80 on every later 8.x; features of `a` (or `a` and `f`) are missing without the suffix.
struct Arch {
  const char* name;       // "sm_90a"
  int number;             // 90
  char suffix;            // 'a', 'f' or 0
  int compiler;           // the first CUDA version whose compiler supports it: 12080
  bool async_copy;        // cp.async, bf16 mma.sync, ldmatrix with four matrices: from sm_80
  bool fp8_mma;           // mma.sync on e4m3 and e5m2: from sm_89
  bool clusters;          // clusters, TMA, mbarrier, griddepcontrol: from sm_90
  bool wgmma;             // wgmma, setmaxnreg: sm_90a only
  bool tensor_memory;     // tcgen05: data-centre Blackwell with a suffix
  bool block_scaled_mma;  // mma.sync with block scales (mxfp4, nvfp4): consumer Blackwell with a suffix
  int shared_bytes;       // most shared memory of a block, opted in
};
std::span<const Arch> arch_table();
const Arch& arch_of(Target t);  // InternalError for a target that is not a GPU
/// The first row of this compute capability (times ten), else the nearest before it: for properties that do not depend
/// on the suffix.
const Arch& arch_of_number(int number);

/// Whether code for `t` runs on a GPU of compute capability major.minor.
bool runs_on(Target t, int major, int minor);
/// Targets whose code runs on major.minor, best first (most features, then closest). `allowed`: restricts the result;
/// empty: all.
std::vector<Target> targets_for(int major, int minor, std::span<const Target> allowed = {});

/// "8.0 9.0a 12.0f" -> targets. Without a suffix, 9.x, 10.x and later get "a", 12.0 gets "f". ValueError that lists the
/// known ones.
std::vector<Target> parse_arch_list(const std::string& text);
/// FLASHINFER_CUDA_ARCH_LIST; empty when it is not set.
std::vector<Target> arch_list();

/// Compute capability, times ten, for heuristics: of the GPU; on the emulator that of the innermost EmulatedArch, else
/// 90.
int arch_number(Device device);
/// While it lives, heuristics of this thread choose for `number` on the emulator (to list kernels for absent targets).
class EmulatedArch {
 public:
  explicit EmulatedArch(int number);
  ~EmulatedArch();
  EmulatedArch(const EmulatedArch&) = delete;
  EmulatedArch& operator=(const EmulatedArch&) = delete;

 private:
  int previous_;
};

}  // namespace flashinfer::jit

#pragma GCC visibility pop
