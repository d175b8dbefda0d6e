// SPDX-License-Identifier: Apache-2.0
// Shared libraries made from a program's own C++ and CUDA sources, in the cache of the kernels: each is a folder
// <cache>/modules/<name>-<hash><hash>/ with <name>.so, build.ninja, compile_commands.json, dependencies.txt and
// meta.json, published complete by rename. The first hash is of name, sources, flags and compilers, the second of the
// contents of all headers that the compiler read, so that an edited header gives another folder.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "flashinfer/jit/build.h"

#pragma GCC visibility push(default)

namespace flashinfer::jit {

struct LibrarySpec {
  std::string name;                  // letters, digits, _ . + -; at most 200
  std::vector<std::string> sources;  // absolute paths; *.cu is compiled by nvcc, anything else by the C++ compiler
  std::vector<std::string> cflags, cuda_cflags, ldflags;
  std::map<std::string, std::vector<std::string>> cuda_cflags_by_source;  // added for that source
  std::vector<std::string> include_dirs;                                  // absolute, for all sources
  bool device_linking = false;                                            // relocatable device code, linked by nvcc
  std::string folder;                                                     // instead of the cache's; empty: that one
};

/// An entry of compile_commands.json.
struct CompileCommand {
  std::string directory, source, object;
  std::vector<std::string> arguments;
};

/// The folder of the cache where libraries are: <cache>/modules.
std::string libraries_path();

/// The compile commands, as they run in `folder`. RuntimeError without a compiler.
std::vector<CompileCommand> library_commands(const LibrarySpec& spec, const std::string& folder);
/// build.ninja with the same commands and the link, for use by hand.
std::string library_ninja(const LibrarySpec& spec);

/// The library if it was made from these sources, flags, compilers and the headers as they are now.
std::optional<Artifact> find_library(const LibrarySpec& spec);
/// The same, else compiled, MAX_JOBS sources at once; one process when several miss together. RuntimeError with the
/// compiler's output and the command when a source does not compile or link, when there is no compiler, and when
/// FLASHINFER_DISABLE_JIT is 1. ValueError for a wrong name or a source that does not exist.
Artifact build_library(const LibrarySpec& spec, bool verbose);

/// Whether the files that the library in `dir` was compiled from still have their contents.
bool library_is_current(const std::string& dir);

/// The hash over the contents of the sources alone, for libraries that were compiled elsewhere.
std::string library_source_hash(const LibrarySpec& spec);

}  // namespace flashinfer::jit

#pragma GCC visibility pop
