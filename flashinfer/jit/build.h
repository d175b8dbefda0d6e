// SPDX-License-Identifier: Apache-2.0
// From a request to an artifact on disk: the key, the lookup, the compiler run, publication.
#pragma once
#include <optional>
#include <string>

#include "flashinfer/jit/cache.h"
#include "flashinfer/jit/request.h"
#include "flashinfer/jit/toolchain.h"

#pragma GCC visibility push(default)

namespace flashinfer::jit {

/// The properties that decide whether an artifact can be used, collected without running a program.
struct BuildKey {
  Meta wanted;             // meta.json of a matching artifact (flags, headers, compiler, cpu, ...)
  std::string folder;      // "<name>-<hash>" in the disk cache: a hash of all of `wanted` and the source
  std::string aot_folder;  // "<name>-<hash>" among AOT artifacts: source and target only, the rest is compared
};
BuildKey build_key(const Request& request, Target target, const Toolchain& toolchain);
/// Whether an artifact was made from the same source, headers (when they are available), flags, version and CPU; the
/// compiler is not compared, AOT artifacts may come from another one.
bool matches(const Meta& have, const Meta& wanted);

struct Artifact {
  std::string path;    // of kernel.so or kernel.cubin
  std::string origin;  // "disk", "aot" or "compiled"
  double seconds = 0;  // of the compiler
};

/// A complete AOT artifact for exactly this target, headers, flags (and CPU, for native).
std::optional<Artifact> find_aot(const Request& request, Target target);

/// A complete artifact below the AOT folder `folder`. Where a level's code is the same as that of the level it extends
/// (CpuLevel), its own folder holds meta.json alone, and `directory` is that of the artifact with the same checksum.
struct AotEntry {
  Meta meta;
  std::string directory;
};
std::optional<AotEntry> read_aot(const std::string& folder, const Request& request, Target target);

/// A complete artifact in the disk cache for this target, headers, flags and CPU, from any compiler: for machines that
/// have none (any more).
std::optional<Artifact> find_cached(const Request& request, Target target);

/// Number of AOT artifacts, for messages.
int64_t count_aot();

/// From the disk cache, else compiled into it: once, when several processes miss together. RuntimeError with the
/// compiler's output and the command when it does not compile. `discard`: the existing artifact does not load; rebuild
/// it.
Artifact find_or_compile(const Request& request, Target target, const Toolchain& toolchain, bool quiet,
                         bool discard = false);

/// Thrown by compile_into when a header was saved while the compiler ran; the cached header hashes are dropped.
struct HeadersChanged {};
/// Compiles into `parent`/`entry` (published by rename). Used for both the cache and AOT. `aot`: the artifact contains
/// nothing that differs between runs (times, the folder's path).
Artifact compile_into(const Request& request, Target target, const Toolchain& toolchain, const BuildKey& key,
                      const std::string& parent, const std::string& entry, bool quiet, bool aot = false);

}  // namespace flashinfer::jit

#pragma GCC visibility pop
