// SPDX-License-Identifier: Apache-2.0
// Artifacts on disk: <base>/.cache/flashinfer/<version>/<target>/<name>-<hash>/ holds kernel.cc, kernel.so (GPUs:
// kernel.cu, kernel.cubin), meta.json, compile_command.txt and compile_command.sh. A folder appears by rename, whole;
// what is damaged counts as missing.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace flashinfer::jit {

/// meta.json: what an artifact is and was made from.
struct Meta {
  std::string name, config, header, source;  // source: its hash
  std::string target, version, flags, cpu;   // cpu: features, for target native
  std::string compiler;                      // identity, see Toolchain
  std::string headers;                       // hash
  std::string directory;                     // where `arguments` runs
  std::vector<std::string> arguments;
  double seconds = 0;    // of the compiler
  int64_t created = 0;   // Unix time
  uint64_t bytes = 0;    // of the artifact
  std::string checksum;  // XXH3-128 of it
};
std::string to_json(const Meta& m);
std::optional<Meta> parse_meta(const std::string& text);  // nullopt: not ours, or torn

/// <FLASHINFER_WORKSPACE_BASE or home>/.cache/flashinfer/<version>; it may not exist or not be safe. Empty: no home
/// folder.
std::string cache_path();

/// Where artifacts are read and written. A folder that belongs to someone else or that others can write to is not used
/// (one warning); neither is one that cannot be made. Then `write` lies in a private temporary folder, removed at exit.
struct CacheFolders {
  std::string read;  // empty: none
  std::string write;
};
CacheFolders cache_folders(const std::string& target);
/// Forgets which folders were found good and which warnings were given (tests).
void forget_folders();

/// <dir>/kernel.so, or kernel.cubin for a GPU's target.
std::string artifact_path(const std::string& dir, const std::string& target);
std::string source_path(const std::string& dir, const std::string& target);
/// The artifact in `dir` when meta.json is whole and kernel.so or kernel.cubin has the size and checksum it names.
std::optional<Meta> read_artifact(const std::string& dir);
/// As above without reading kernel.so, for listings.
std::optional<Meta> read_meta(const std::string& dir);

/// Renames `temporary` to `final`. When a whole artifact is there already (another process was faster), that one stays
/// and `temporary` is removed; a damaged one is replaced.
void publish(const std::string& temporary, const std::string& final);

/// Folders of artifacts made ahead: FLASHINFER_AOT_DIR, then flashinfer/aot beside the library. Safe ones only.
std::vector<std::string> aot_folders();

/// Removes the cache of this version and of all others under <base>/.cache/flashinfer, measured choices (winners.h)
/// too; returns how many artifacts went. RuntimeError when something cannot be removed or the folder is not ours.
int64_t clear_cache();

}  // namespace flashinfer::jit
