// SPDX-License-Identifier: Apache-2.0
// The kernels that exist or could be compiled, and the libraries of programs (library.h), for `list-modules`,
// `module-status` and `export-compile-commands`.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "flashinfer/jit/cache.h"
#include "flashinfer/jit/request.h"
#include "flashinfer/jit/toolchain.h"

#pragma GCC visibility push(default)

namespace flashinfer::jit {

struct ModuleStatus {
  std::string text;       // "norm.rmsnorm{dtype=bfloat16,gemma=0}"
  std::string target;     // "native"
  std::string kind;       // "jit": in the disk cache; "aot": precompiled; empty: not compiled
  std::string directory;  // of the artifact
  Meta meta;              // of the artifact
  bool compiled() const { return !kind.empty(); }
};

/// One kernel for `target`, compiled or not, from any compiler.
ModuleStatus module_status(const Request& request, Target target);

/// `known` for the selected target, compiled or not, then all other complete artifacts of this version on disk that
/// were made from the current headers; programs' libraries have the target "modules". Sorted by text and target.
std::vector<ModuleStatus> module_statuses(std::span<const Request> known);

}  // namespace flashinfer::jit

#pragma GCC visibility pop
