// SPDX-License-Identifier: Apache-2.0
// JIT-compiled kernels. A kernel is a function template in a header, `template <Config C> void f(const Params&, int64_t
// task)`; the struct `Config` is the template argument, the key in memory and on disk, and the text in the log.
//
// A Config has a name and visits its members, so that the generated source can be written from it:
//   struct NormConfig {
//     DType dtype;
//     int gemma;
//     static constexpr const char* kName = "flashinfer::NormConfig";
//     template <class V> constexpr void visit(V&& v) const { v("dtype", dtype); v("gemma", gemma); }
//     friend constexpr bool operator==(const NormConfig&, const NormConfig&) = default;
//   };
// Members are ints, bools and enums, with no padding (has_unique_object_representations).
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "flashinfer/jit/table.h"

#pragma GCC visibility push(default)

namespace flashinfer::jit {

/// Location of a kernel template: {"flashinfer/ops/norm/kernels/cpu/norm.h", "flashinfer::cpu::rmsnorm",
/// "flashinfer::NormParams"}.
struct Kernel {
  const char* header;
  const char* function;
  const char* params;  // the type of the entry's pointer argument
};

/// The one C entry of a CPU artifact. Tasks 0..n-1 are independent; the launcher decides how many there are.
using CpuFn = void (*)(const void* params, int64_t task);

/// A kernel for this machine, or why there is none.
struct Loaded {
  CpuFn fn = nullptr;
  /// Empty when fn is set: "no C++ compiler found and norm.rmsnorm{...} is not among the ... artifacts".
  std::string why_not;
  bool uses_tiles = false;  // compiled for a CPU with AMX, which this process may use
};

/// The kernel K for `config`: from memory (one hash of the config's bytes, no lock, no string), from the disk cache,
/// from the AOT artifacts shipped with the library, or compiled now. Never throws for a missing compiler: see
/// `why_not`. A kernel that fails to compile throws RuntimeError with the compiler's output and the command.
///   inline constexpr jit::Kernel kRmsNorm{...};   const jit::Loaded& k = jit::cpu_kernel<kRmsNorm>(config);
template <const Kernel& K, class Config>
const Loaded& cpu_kernel(const Config& config);

/// Source text added to a kernel's instantiation, through which users extend a kernel.
struct Extension {
  std::string label;      // in names: "FlashSigmoid"
  std::string text;       // declarations, put after the kernel's header
  std::string arguments;  // template arguments after the Config: "Params, FlashSigmoid"
};
/// The kernel K for `config` and a user's source. Found by its text (some microseconds a lookup). A replayed recording
/// must not execute code of its own: under ForeignSource, RuntimeError unless FLASHINFER_ALLOW_RECORDED_SOURCE is 1.
template <const Kernel& K, class Config>
const Loaded& cpu_kernel(const Config& config, const Extension& extension);

/// While it lives, this thread's arguments come from a file, not from the program.
class ForeignSource {
 public:
  ForeignSource();
  ~ForeignSource();
  ForeignSource(const ForeignSource&) = delete;
  ForeignSource& operator=(const ForeignSource&) = delete;
};

/// "norm.rmsnorm{dtype=bfloat16,gemma=0}": the name in logs, `list-modules` and the cache.
template <const Kernel& K, class Config>
std::string kernel_text(const Config& config);
/// "NormConfig{dtype=bfloat16,gemma=0}": without a kernel.
template <class Config>
std::string config_text(const Config& config);

}  // namespace flashinfer::jit

#pragma GCC visibility pop

#include "flashinfer/jit/jit-inl.h"
