// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/jit/library.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <set>

#include "flashinfer/core/check.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/jobs.h"
#include "flashinfer/core/process.h"
#include "flashinfer/core/status_line.h"
#include "flashinfer/core/version.h"
#include "flashinfer/jit/library_commands.h"
#include "flashinfer/jit/source.h"

namespace flashinfer::jit {
namespace {

constexpr size_t kDigits = 16;  // of each of the two hashes in a folder's name; meta.json holds them whole

void check(const LibrarySpec& spec) {
  const bool legal = std::ranges::all_of(spec.name, [](char c) {
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || c == '.' || c == '+' ||
           c == '-';
  });
  FI_CHECK(legal && !spec.name.empty() && spec.name[0] != '.' && spec.name.size() <= 200, ValueError,
           "jit: the name \"", spec.name, "\" must be 1 to 200 letters, digits, _ . + or -, and not begin with a dot");
  FI_CHECK(!spec.sources.empty(), ValueError, "jit: ", spec.name, " has no sources");
  for (const std::string& source : spec.sources)
    FI_CHECK(fs::is_file(source), ValueError, "jit: ", spec.name, ": the source ", source, " does not exist");
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& p : parts) text += std::to_string(p.size()) + ":" + p + "\n";
  return text;
}

/// What meta.json of a matching library holds, but for the hash of the headers.
Meta wanted(const LibrarySpec& spec, const LibraryPlan& plan) {
  Meta m;
  m.name = spec.name;
  m.header = spec.sources[0];
  m.target = kModulesFolder;
  m.version = build::version();
  m.flags = plan.flags;
  m.compiler = plan.identity;
  m.source = library_source_hash(spec);
  return m;
}

std::string key_of(const Meta& m) { return hash_hex(joined({m.name, m.version, m.flags, m.compiler, m.source})); }

/// "<hash> <path>" of every file that the depfiles in `dir` name, in the order of their paths.
std::string dependencies(const std::string& dir, const LibraryPlan& plan) {
  std::set<std::string> files;
  for (const CompileCommand& c : plan.compile)
    for (const std::string& file : read_depfile(dir + "/" + c.object + ".d")) files.insert(file);
  std::string text;
  for (const std::string& file : files) text += hash_hex(fs::read_file(file).value_or("")) + " " + file + "\n";
  return text;
}

/// Whether one of them was written after `start`, so that the compiler may have read other bytes than were hashed.
bool changed_since(const std::string& dependencies_text, int64_t start_ns) {
  for (size_t begin = 0; begin < dependencies_text.size();) {
    const size_t end = dependencies_text.find('\n', begin);
    const auto id = fs::file_id(dependencies_text.substr(begin + 33, end - begin - 33));
    if (!id || id->mtime_ns > start_ns) return true;
    begin = end + 1;
  }
  return false;
}

std::optional<Artifact> find_in(const std::string& folder, const Meta& want) {
  if (folder.empty()) return std::nullopt;
  const std::string prefix = want.name + "-" + key_of(want).substr(0, kDigits);
  for (const std::string& entry : fs::list_dir(folder)) {
    if (!entry.starts_with(prefix) || entry.size() != prefix.size() + kDigits) continue;
    const std::string dir = folder + "/" + entry;
    const auto meta = read_artifact(dir);
    if (meta && meta->target == want.target && key_of(*meta) == key_of(want) && library_is_current(dir))
      return Artifact{artifact_path(dir, want.target), "disk", meta->seconds};
  }
  return std::nullopt;
}

[[noreturn]] void fail(const LibrarySpec& spec, const std::string& what, const process::Result& result,
                       const std::vector<std::string>& argv) {
  constexpr size_t kShown = 16000;
  std::string output = result.output.substr(0, kShown);
  if (output.size() < result.output.size()) output += "...\n";
  throw RuntimeError(str("jit: ", spec.name, ": ", what, result.timed_out ? " took too long" : " failed",
                         " (exit code ", result.exit_code, ")\n", output, "command: ", process::shell_line(argv)));
}

void run_steps(const LibrarySpec& spec, const LibraryPlan& plan, const std::string& dir, bool verbose) {
  const auto run = [&](const std::string& what, const std::vector<std::string>& argv) {
    process::Options options;
    options.cwd = dir;
    options.timeout_seconds = 3600;  // CUDA sources with many templates take more than ten minutes
    if (verbose) write_stderr(str("flashinfer: ", spec.name, ": ", process::shell_line(argv), "\n"));
    const process::Result result = process::run(argv, options);
    if (!result.ok()) fail(spec, what, result, argv);
    if (verbose) {
      const StatusLineHidden while_it_prints;
      std::fprintf(stderr, "flashinfer: %s: %s took %.2f s\n%s", spec.name.c_str(), what.c_str(), result.seconds,
                   result.output.c_str());
    }
  };
  for_each_job(static_cast<int64_t>(plan.compile.size()), 0, [&](int64_t i) {
    const CompileCommand& c = plan.compile[static_cast<size_t>(i)];
    run("compiling " + c.source, c.arguments);
  });
  for (const std::vector<std::string>& argv : plan.link) run("linking", argv);
}

std::string commands_json(const LibraryPlan& plan, const std::string& directory) {
  auto list = nlohmann::ordered_json::array();
  for (const CompileCommand& c : plan.compile)
    list.push_back({{"directory", directory}, {"arguments", c.arguments}, {"file", c.source}});
  return list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

/// nullopt: a file changed while it was compiled.
std::optional<Artifact> compile(const LibrarySpec& spec, const LibraryPlan& plan, Meta meta, const std::string& folder,
                                bool verbose) {
  const auto began = std::chrono::steady_clock::now();
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  const int64_t start_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(wall).count();
  const std::string temporary = fs::make_temp_dir(folder, ".build-");
  try {
    run_steps(spec, plan, temporary, verbose);
    const std::string listed = dependencies(temporary, plan), library = temporary + "/" + spec.name + ".so";
    const auto image = fs::read_file(library);
    FI_CHECK(image && !image->empty(), RuntimeError, "jit: ", spec.name, ": the linker wrote no library");
    if (changed_since(listed, start_ns) || library_source_hash(spec) != meta.source) {
      fs::remove_tree(temporary);
      return std::nullopt;
    }
    meta.headers = hash_hex(listed);
    const std::string entry = spec.name + "-" + key_of(meta).substr(0, kDigits) + meta.headers.substr(0, kDigits),
                      final = folder + "/" + entry;
    for (const CompileCommand& c : plan.compile)
      for (const char* end : {"", ".d"}) std::remove((temporary + "/" + c.object + end).c_str());
    fs::write_plain(temporary + "/dependencies.txt", listed);
    fs::write_plain(temporary + "/build.ninja", ninja_text(spec, plan));
    fs::write_plain(temporary + "/compile_commands.json", commands_json(plan, final));
    meta.directory = final;
    meta.arguments = plan.compile[0].arguments;
    meta.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    meta.created = static_cast<int64_t>(std::time(nullptr));
    meta.bytes = image->size();
    meta.checksum = hash_hex(*image);
    ::chmod(library.c_str(), 0700);
    fs::write_plain(temporary + "/meta.json", to_json(meta));
    publish(temporary, final);
    return Artifact{artifact_path(final, meta.target), "compiled", meta.seconds};
  } catch (...) {
    fs::remove_tree(temporary);
    throw;
  }
}

}  // namespace

std::string libraries_path() {
  const std::string cache = cache_path();
  return cache.empty() ? cache : cache + "/" + kModulesFolder;
}

std::string library_source_hash(const LibrarySpec& spec) {
  std::vector<std::string> parts;
  for (const std::string& source : spec.sources) parts.push_back(hash_hex(fs::read_file(source).value_or("")));
  return hash_hex(joined(parts));
}

bool library_is_current(const std::string& dir) {
  const auto text = fs::read_file(dir + "/dependencies.txt");
  const auto meta = read_meta(dir);
  if (!text || !meta || hash_hex(*text) != meta->headers) return false;
  for (size_t begin = 0; begin < text->size();) {
    const size_t end = text->find('\n', begin);
    const std::string file = text->substr(begin + 33, end - begin - 33);
    const auto bytes = fs::read_file(file);
    if (!bytes || text->compare(begin, 32, hash_hex(*bytes)) != 0) return false;
    begin = end + 1;
  }
  return true;
}

std::vector<CompileCommand> library_commands(const LibrarySpec& spec, const std::string& folder) {
  LibraryPlan plan = plan_library(spec);
  for (CompileCommand& c : plan.compile) c.directory = folder;
  return plan.compile;
}

std::string library_ninja(const LibrarySpec& spec) { return ninja_text(spec, plan_library(spec)); }

std::optional<Artifact> find_library(const LibrarySpec& spec) {
  for (const std::string& source : spec.sources)
    if (!fs::is_file(source)) return std::nullopt;
  check(spec);
  const LibraryPlan plan = plan_library(spec);
  const Meta want = wanted(spec, plan);
  if (!spec.folder.empty()) return find_in(spec.folder, want);
  const std::string path = libraries_path();
  return path.empty() || !fs::unsafe_folder(path).empty() ? std::nullopt : find_in(path, want);
}

Artifact build_library(const LibrarySpec& spec, bool verbose) {
  check(spec);
  FI_CHECK(!env::flag("FLASHINFER_DISABLE_JIT"), RuntimeError, "jit: ", spec.name,
           " is not compiled, because FLASHINFER_DISABLE_JIT is 1");
  CacheFolders folders{spec.folder, spec.folder};
  if (spec.folder.empty())
    folders = cache_folders(kModulesFolder);
  else
    fs::make_dirs(spec.folder);
  const bool loud = verbose || env::flag("FLASHINFER_JIT_VERBOSE");
  const LibraryPlan plan = plan_library(spec);
  for (int attempt = 0; attempt < 3; ++attempt) {
    const Meta want = wanted(spec, plan);
    if (auto a = find_in(folders.read, want)) return *a;
    const fs::FileLock lock(folders.write + "/.lock-" + key_of(want), 3600, [&] {
      write_stderr(str("flashinfer: waiting for another process that compiles ", spec.name, " ...\n"));
    });
    if (auto a = find_in(folders.write, want)) return *a;
    if (auto a = compile(spec, plan, want, folders.write, loud)) return *a;
  }
  throw RuntimeError(str("jit: ", spec.name, ": its sources or headers keep changing while they are compiled"));
}

}  // namespace flashinfer::jit
