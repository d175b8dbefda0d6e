// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/jit/build.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <future>

#include "flashinfer/core/check.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/process.h"
#include "flashinfer/core/status_line.h"
#include "flashinfer/core/version.h"
#include "flashinfer/jit/nvrtc.h"
#include "flashinfer/jit/precompiled_header.h"
#include "flashinfer/jit/source.h"

namespace flashinfer::jit {
namespace {

/// Joins fields with their lengths, so that different lists give different texts.
std::string joined(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view p : parts) text += std::to_string(p.size()) + ":" + std::string(p) + "\n";
  return text;
}

/// The command in a form that can be pasted anywhere: it runs in the artifact's folder and gives the same bytes.
std::string pasteable(const std::string& dir, const std::vector<std::string>& argv) {
  return "cd " + process::shell_line({dir}) + " && " + process::shell_line(argv);
}

/// meta.json is written last: a folder without it is not an artifact.
void write_companions(const std::string& dir, const std::string& final_dir,
                      const std::vector<std::vector<std::string>>& commands) {
  std::string line;
  for (const auto& argv : commands) line += pasteable(final_dir, argv) + "\n";
  fs::write_plain(dir + "/compile_command.txt", line);
  fs::write_plain(dir + "/compile_command.sh", "#!/bin/sh\n" + line, 0700);
}

[[noreturn]] void report_failure(const Request& request, const process::Result& result, const std::string& temporary,
                                 const std::string& kept, const std::vector<std::string>& argv) {
  fs::remove_tree(kept);
  const bool moved = ::rename(temporary.c_str(), kept.c_str()) == 0;
  if (!moved) fs::remove_tree(temporary);
  constexpr size_t kShown = 8000;
  std::string output = result.output.substr(0, kShown);
  if (output.size() < result.output.size()) output += "...\n";
  throw RuntimeError(str("jit: compiling ", request.text(), result.timed_out ? " took too long" : " failed",
                         " (exit code ", result.exit_code, ")\n", output, "command: ", pasteable(kept, argv)));
}

}  // namespace

bool matches(const Meta& have, const Meta& wanted) {
  return have.source == wanted.source && have.version == wanted.version && have.flags == wanted.flags &&
         have.cpu == wanted.cpu && have.target == wanted.target &&
         (wanted.headers.empty() || have.headers == wanted.headers);
}

BuildKey build_key(const Request& request, Target target, const Toolchain& toolchain) {
  BuildKey key;
  Meta& m = key.wanted;
  const std::string root = include_root();
  m.name = request.name;
  m.config = request.config;
  m.header = request.header;
  m.source = hash_hex(request.source);
  m.target = name(target);
  m.version = build::version();
  const auto text = [](const Flags& flags) {
    return process::shell_line(flags.compile) + (flags.link.empty() ? "" : " " + process::shell_line(flags.link));
  };
  m.flags = text(kernel_flags(target));
  if (const auto guarded = guarded_flags(target)) m.flags += " and " + text(*guarded);
  m.cpu = target == Target::kNative ? cpu_features() : "";
  m.compiler = toolchain.identity;
  m.headers = root.empty() ? "" : headers_hash(root, request.header);
  key.folder = m.name + "-" + hash_hex(joined({m.source, m.target, m.version, m.flags, m.cpu, m.compiler, m.headers}));
  key.aot_folder = m.name + "-" + hash_hex(joined({m.source, m.target}));
  return key;
}

std::optional<Artifact> find_aot(const Request& request, Target target) {
  const auto folders = aot_folders();
  if (folders.empty()) return std::nullopt;
  const BuildKey key = build_key(request, target, Toolchain{});
  for (const std::string& folder : folders)
    if (const auto entry = read_aot(folder, request, target); entry && matches(entry->meta, key.wanted))
      return Artifact{artifact_path(entry->directory, name(target)), "aot"};
  return std::nullopt;
}

std::optional<AotEntry> read_aot(const std::string& folder, const Request& request, Target target) {
  const auto dir_of = [&](Target t) {
    return folder + "/" + name(t) + "/" + build_key(request, t, Toolchain{}).aot_folder;
  };
  const std::string dir = dir_of(target);
  auto meta = read_meta(dir);
  if (!meta) return std::nullopt;
  for (std::optional<Target> t = target; t;) {
    const std::string at = dir_of(*t);
    if (const auto complete = read_artifact(at); complete && complete->checksum == meta->checksum)
      return AotEntry{std::move(*meta), at};
    const CpuLevel* const level = find_level(*t);
    t = level == nullptr ? std::nullopt : level->extends;
  }
  return std::nullopt;
}

std::optional<Artifact> find_cached(const Request& request, Target target) {
  const std::string folder = cache_folders(name(target)).read;
  const Meta wanted = build_key(request, target, Toolchain{}).wanted;
  if (folder.empty()) return std::nullopt;
  for (const std::string& entry : fs::list_dir(folder)) {
    if (!entry.starts_with(request.name + "-")) continue;
    const auto meta = read_meta(folder + "/" + entry);
    if (meta && matches(*meta, wanted) && read_artifact(folder + "/" + entry))
      return Artifact{artifact_path(folder + "/" + entry, name(target)), "disk"};
  }
  return std::nullopt;
}

int64_t count_aot() {
  int64_t n = 0;
  for (const std::string& folder : aot_folders())
    for (const Target t : all_targets())
      for (const std::string& entry : fs::list_dir(folder + "/" + name(t))) n += !entry.starts_with(".");
  return n;
}

namespace {

/// The command's words; its files are in the folder where it runs.
std::vector<std::string> command_of(Target target, const Toolchain& toolchain, const Flags& flags,
                                    const std::string& artifact) {
  const std::string out = artifact.substr(artifact.rfind('/') + 1), in = source_path("x", name(target)).substr(2);
  std::vector<std::string> argv = toolchain.command;
  if (const int64_t threads = env::integer("FLASHINFER_NVCC_THREADS"); toolchain.maker == Maker::kNvcc && threads != 1)
    argv.push_back("--threads=" + std::to_string(threads));  // changes the time alone, so it is no part of the key
  argv.insert(argv.end(), flags.compile.begin(), flags.compile.end());
  argv.insert(argv.end(), {"-I", include_root(), "-o", out, in});
  argv.insert(argv.end(), flags.link.begin(), flags.link.end());
  return argv;
}

process::Result run_nvrtc(const Request& request, Target target, const std::string& artifact) {
  process::Result result;
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::string> words = kernel_flags(target).compile;
  words.push_back("--include-path=" + include_root());
  const std::string image = nvrtc_compile_words(request.source, words, result.output);
  result.exit_code = image.empty() ? 1 : 0;
  if (!image.empty()) fs::write_plain(artifact, image);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

/// `argv` with the precompiled header. Where the compiler rejects that, or an error: the message is that of the plain
/// command.
process::Result run_host_compiler(Target target, const Toolchain& toolchain, const Flags& flags,
                                  const std::vector<std::string>& argv, const process::Options& options) {
  std::vector<std::string> faster = argv;
  const std::vector<std::string> header = precompiled_header_options(target, toolchain, flags);
  faster.insert(faster.end(), header.begin(), header.end());
  const process::Result result = process::run(faster, options);
  return result.ok() || result.timed_out || header.empty() ? result : process::run(argv, options);
}

process::Result run_compiler(const Request& request, Target target, const Toolchain& toolchain,
                             const std::vector<std::string>& argv, const std::string& temporary, bool quiet) {
  if (toolchain.maker == Maker::kNvrtc) return run_nvrtc(request, target, artifact_path(temporary, name(target)));
  process::Options options;
  options.cwd = temporary;
  if (!quiet)
    options.on_slow = [&] {
      write_stderr(str("flashinfer: compiling ", request.text(), " for ", name(target), " ...\n"));
    };
  return run_host_compiler(target, toolchain, kernel_flags(target), argv, options);
}

}  // namespace

Artifact compile_into(const Request& request, Target target, const Toolchain& toolchain, const BuildKey& key,
                      const std::string& parent, const std::string& entry, bool quiet, bool aot) {
  const bool verbose = env::flag("FLASHINFER_JIT_VERBOSE");
  const std::string temporary = fs::make_temp_dir(parent, ".build-");
  const std::string final_dir = parent + "/" + entry,
                    shown_dir = aot ? std::string(name(target)) + "/" + entry : final_dir;
  const std::string artifact = artifact_path(temporary, name(target));
  std::vector<std::vector<std::string>> commands = {command_of(target, toolchain, kernel_flags(target), artifact)};
  const auto flags_guarded = guarded_flags(target);
  if (flags_guarded) commands.push_back(command_of(target, toolchain, *flags_guarded, guarded_path(temporary)));
  const std::vector<std::string>& argv = commands[0];
  fs::write_plain(source_path(temporary, name(target)), request.source);
  write_companions(temporary, shown_dir, commands);
  if (verbose)
    for (const auto& command : commands)
      write_stderr(str("flashinfer: ", request.text(), ": ", pasteable(final_dir, command), "\n"));

  // Both forms at the same time. A compiler that cannot make the guarded one leaves its checks out.
  std::future<void> guarded;
  if (flags_guarded)
    guarded = std::async(std::launch::async, [&] {
      process::Options options;
      options.cwd = temporary;
      const process::Result r = run_host_compiler(target, toolchain, *flags_guarded, commands[1], options);
      if (r.ok()) return;
      ::unlink(guarded_path(temporary).c_str());  // a part of it, where the linker was killed
      if (verbose) write_stderr(str("flashinfer: ", request.text(), ": no guarded form:\n", r.output, "\n"));
    });
  const process::Result result = run_compiler(request, target, toolchain, argv, temporary, quiet);
  if (guarded.valid()) guarded.get();
  const auto image = fs::read_file(artifact);
  if (!result.ok() || !image || image->empty()) {
    write_companions(temporary, final_dir + ".failed", commands);
    report_failure(request, result, temporary, final_dir + ".failed", argv);
  }
  if (verbose) {
    const StatusLineHidden while_it_prints;
    std::fprintf(stderr, "flashinfer: %s: compiled in %.2f s\n%s", request.text().c_str(), result.seconds,
                 result.output.c_str());
  }

  // A header was saved meanwhile, so the key may not describe what was compiled. Start over.
  if (headers_hash_now(include_root(), request.header) != key.wanted.headers) {
    fs::remove_tree(temporary);
    forget_sources();
    throw HeadersChanged();
  }
  Meta meta = key.wanted;
  meta.compiler = toolchain.identity;
  meta.directory = shown_dir;
  meta.arguments = argv;
  meta.seconds = aot ? 0 : result.seconds;
  meta.created = aot ? 0 : static_cast<int64_t>(std::time(nullptr));
  meta.bytes = image->size();
  meta.checksum = hash_hex(*image);
  meta.guarded = guarded_checksum(temporary);
  ::chmod(artifact.c_str(), 0700);  // whatever umask the linker used
  fs::write_plain(temporary + "/meta.json", to_json(meta));
  publish(temporary, final_dir);
  return {artifact_path(final_dir, name(target)), "compiled", result.seconds};
}

namespace {
Artifact find_or_compile_once(const Request& request, Target target, const Toolchain& toolchain, bool quiet,
                              bool discard) {
  const BuildKey key = build_key(request, target, toolchain);
  const CacheFolders folders = cache_folders(name(target));
  const auto look = [&](const std::string& folder) -> std::optional<Artifact> {
    if (folder.empty()) return std::nullopt;
    const auto meta = read_artifact(folder + "/" + key.folder);
    if (!meta || !matches(*meta, key.wanted) || meta->compiler != key.wanted.compiler) return std::nullopt;
    return Artifact{artifact_path(folder + "/" + key.folder, name(target)), "disk"};
  };
  if (!discard) {
    if (auto a = look(folders.read)) return *a;
    if (folders.write != folders.read)
      if (auto a = look(folders.write)) return *a;
  }
  const auto tell = [&] {
    if (!quiet) write_stderr(str("flashinfer: waiting for another process that compiles ", request.text(), " ...\n"));
  };
  // Processes that miss together queue here and find the first one's result. The lock file stays until clear-cache:
  // removing it would let a third process lock another file of the same name.
  const fs::FileLock lock(folders.write + "/.lock-" + key.folder, 300, tell);
  if (!discard)
    if (auto a = look(folders.write)) return *a;
  if (discard) fs::remove_tree(folders.write + "/" + key.folder);
  return compile_into(request, target, toolchain, key, folders.write, key.folder, quiet);
}
}  // namespace

Artifact find_or_compile(const Request& request, Target target, const Toolchain& toolchain, bool quiet, bool discard) {
  for (int attempt = 0; attempt < 3; ++attempt) try {
      return find_or_compile_once(request, target, toolchain, quiet, discard);
    } catch (const HeadersChanged&) {
    }
  throw RuntimeError(
      str("jit: ", request.text(), ": the headers of ", request.header, " keep changing while they are compiled"));
}

}  // namespace flashinfer::jit
