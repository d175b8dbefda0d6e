// SPDX-License-Identifier: Apache-2.0
// The compiler's and linker's commands of a library.
#pragma once
#include <string>
#include <vector>

#include "flashinfer/jit/library.h"

namespace flashinfer::jit {

struct LibraryPlan {
  std::vector<CompileCommand> compile;         // run in any order; each leaves <object> and <object>.d
  std::vector<std::vector<std::string>> link;  // then these; the last writes <name>.so
  std::string flags;     // all of them as text, without what changes no result (FLASHINFER_NVCC_THREADS)
  std::string identity;  // of the compilers that are used
};
/// RuntimeError when a compiler that is needed is missing.
LibraryPlan plan_library(const LibrarySpec& spec);

std::string ninja_text(const LibrarySpec& spec, const LibraryPlan& plan);

/// The files that a depfile of gcc, clang or nvcc names after its target; empty when it cannot be read.
std::vector<std::string> read_depfile(const std::string& path);

}  // namespace flashinfer::jit
