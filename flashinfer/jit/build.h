// SPDX-License-Identifier: Apache-2.0
// From a request to an artifact on disk: the key, the lookup, the compiler's run, publication.
#pragma once
#include <optional>
#include <string>

#include "flashinfer/jit/cache.h"
#include "flashinfer/jit/request.h"
#include "flashinfer/jit/toolchain.h"

namespace flashinfer::jit {

/// Everything that decides whether an artifact may serve, gathered without running a program.
struct BuildKey {
  Meta wanted;         // what meta.json of a matching artifact says (flags, headers, compiler, cpu, ...)
  std::string folder;  // "<name>-<hash>" in the disk cache: a hash of all of `wanted` and the source
  std::string ahead;   // "<name>-<hash>" among artifacts made ahead: source and target only, the rest is compared
};
BuildKey build_key(const Request& request, Target target, const Toolchain& toolchain);
/// Whether an artifact was made from the same source, headers (when they are known here), flags, version and CPU; not
/// the compiler, which artifacts made ahead need not share.
bool serves(const Meta& have, const Meta& wanted);

struct Artifact {
  std::string path;    // of kernel.so or kernel.cubin
  std::string origin;  // "disk", "aot" or "compiled"
  double seconds = 0;  // of the compiler
};

/// A whole artifact made ahead for exactly this target, headers, flags (and CPU, for native).
std::optional<Artifact> find_ahead(const Request& request, Target target);

/// A whole artifact in the disk cache for this target, headers, flags and CPU, whatever compiler made it: for machines
/// that have none (any more).
std::optional<Artifact> find_cached(const Request& request, Target target);

/// How many artifacts there are in the folders made ahead, for the refusal's text.
int64_t count_ahead();

/// From the disk cache, else compiled into it: once, when several processes miss together. RuntimeError with the
/// compiler's output and the command when it does not compile. `discard`: the artifact there does not load; build it
/// anew.
Artifact find_or_compile(const Request& request, Target target, const Toolchain& toolchain, bool quiet,
                         bool discard = false);

/// Thrown by compile_into when a header was saved while the compiler ran; what was remembered of the headers is
/// forgotten.
struct HeadersChanged {};
/// Compiles into `parent`/`entry` (published by rename). Used for both the cache and AOT.
/// `ahead`: nothing that differs from one run to the next (times, the folder's place) is written into the artifact.
Artifact compile_into(const Request& request, Target target, const Toolchain& toolchain, const BuildKey& key,
                      const std::string& parent, const std::string& entry, bool quiet, bool ahead = false);

}  // namespace flashinfer::jit
