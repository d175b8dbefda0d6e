// SPDX-License-Identifier: Apache-2.0
// Artifacts on disk: <base>/.cache/flashinfer/<version>/<target>/<name>-<hash>/ holds kernel.cc, kernel.so (GPUs:
// kernel.cu, kernel.cubin; the emulator: kernel.guarded.so too), meta.json, compile_command.txt and compile_command.sh.
// A folder is published complete, by rename; a damaged one is treated as missing.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace flashinfer::jit {

/// meta.json: what an artifact is and its inputs.
struct Meta {
  std::string name, config, header, source;  // source: its hash
  std::string target, version, flags, cpu;   // cpu: features, for target native
  std::string compiler;                      // identity, see Toolchain
  std::string headers;                       // hash
  std::string directory;                     // the working directory of `arguments`
  std::vector<std::string> arguments;
  double seconds = 0;    // of the compiler
  int64_t created = 0;   // Unix time
  uint64_t bytes = 0;    // of the artifact
  std::string checksum;  // XXH3-128 of it
  std::string guarded;   // of kernel.guarded.so; empty: there is none
};
std::string to_json(const Meta& m);
std::optional<Meta> parse_meta(const std::string& text);  // nullopt: another format, or torn

/// <FLASHINFER_WORKSPACE_BASE or home>/.cache/flashinfer/<version>; it may be missing or unsafe. Empty: no home folder.
std::string cache_path();

/// The folders where artifacts are read and written. A folder that belongs to someone else, that others can write to or
/// that cannot be created is not used (one warning). Then `write` is a private temporary folder, removed at exit.
struct CacheFolders {
  std::string read;  // empty: none
  std::string write;
};
CacheFolders cache_folders(const std::string& target);
/// Drops the cached checks of folders and the warnings given (tests).
void forget_folders();

/// The folder, beside those of the targets, of libraries made from programs' own sources (library.h); in meta.json it
/// stands for the target.
inline constexpr const char* kModulesFolder = "modules";
/// <dir>/kernel.so, or kernel.cubin for a GPU's target, or <name>.so for a library in <name>-<32 digits>.
std::string artifact_path(const std::string& dir, const std::string& target);
std::string source_path(const std::string& dir, const std::string& target);
/// <dir>/kernel.guarded.so: the second form of an artifact of the emulator (kernels/emu/guarded.h).
std::string guarded_path(const std::string& dir);
/// The XXH3-128 of kernel.guarded.so in `dir`; empty: there is none.
std::string guarded_checksum(const std::string& dir);
/// The artifact in `dir` if meta.json is valid and its files (kernel.so or kernel.cubin, kernel.guarded.so) have the
/// recorded size and checksums.
std::optional<Meta> read_artifact(const std::string& dir);
/// The same without reading kernel.so, for listings.
std::optional<Meta> read_meta(const std::string& dir);

/// Renames `temporary` to `final`. If a complete artifact is already there (another process was faster), it stays and
/// `temporary` is removed; a damaged one is replaced.
void publish(const std::string& temporary, const std::string& final);

/// Another folder of AOT artifacts, which a package of its own has installed (packaging/cubin). A second time: nothing.
void add_aot_folder(const std::string& path);
/// Folders of AOT artifacts: FLASHINFER_AOT_DIR, the added ones, then flashinfer/aot beside the library. Safe ones
/// only.
std::vector<std::string> aot_folders();

/// Removes the cache of this version and of all others under <base>/.cache/flashinfer, tuning results (winners.h) too;
/// returns the number of artifacts removed. RuntimeError when something cannot be removed or the folder is not ours.
int64_t clear_cache();

}  // namespace flashinfer::jit

#pragma GCC visibility pop
