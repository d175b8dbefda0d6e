// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/jit/cache.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "flashinfer/core/check.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/printable.h"
#include "flashinfer/core/status_line.h"
#include "flashinfer/core/version.h"
#include "flashinfer/jit/locks.h"
#include "flashinfer/jit/precompiled_header.h"
#include "flashinfer/jit/source.h"

namespace flashinfer::jit {
namespace {

/// Added by languages, from any thread, and read by all: those before it stay, since a thread may be reading one.
struct AddedFolder {
  std::string path;
  const AddedFolder* before;
};
std::atomic<const AddedFolder*> added_folders{nullptr};

std::set<std::string> warned;
std::string private_path;
pid_t private_owner = 0;

void warn_once(const std::string& text) {
  {
    const std::lock_guard lock(g_folders_mutex);
    if (!warned.insert(text).second) return;
  }
  write_stderr(str("flashinfer: warning: ", printable_lines(text), "\n"));
}

/// One per process, removed at exit; a forked child makes its own.
std::string private_folder() {
  const std::lock_guard lock(g_folders_mutex);
  if (private_owner == ::getpid() && fs::is_dir(private_path)) return private_path;
  static const int registered = std::atexit([] {
    if (private_owner == ::getpid()) fs::remove_tree(private_path);
  });
  static_cast<void>(registered);
  private_path = fs::make_temp_dir(env::text("TMPDIR"), "flashinfer-");
  private_owner = ::getpid();
  return private_path;
}

std::string base_folder() {
  std::string base = env::text("FLASHINFER_WORKSPACE_BASE");
  if (base.empty()) base = env::text("HOME");
  return base.empty() ? base : fs::canonical(std::filesystem::absolute(base).lexically_normal());
}

/// Why the cache at `root` (cache_path()) cannot hold this target's artifacts; creates missing folders.
std::string prepare(const std::string& folder) {
  const std::string base = base_folder();
  try {
    fs::make_dirs(folder);
  } catch (const Error& e) {
    return e.message();
  }
  // Parent folders may be sticky (as /tmp); our own folders must not be writable by others.
  std::vector<std::string> ours;
  for (std::string f = folder; f.size() > base.size() + std::strlen("/.cache"); f.resize(f.rfind('/')))
    ours.push_back(f);
  for (const std::string& parent : {base, base + "/.cache"})
    if (std::string why = fs::unsafe_folder(parent, true); !why.empty()) return why;
  for (const std::string& f : ours)
    if (std::string why = fs::unsafe_folder(f); !why.empty()) return why;
  return {};
}

}  // namespace

std::string to_json(const Meta& m) {
  const nlohmann::ordered_json j = {{"name", m.name},
                                    {"config", m.config},
                                    {"header", m.header},
                                    {"target", m.target},
                                    {"version", m.version},
                                    {"flags", m.flags},
                                    {"compiler", m.compiler},
                                    {"source", m.source},
                                    {"headers", m.headers},
                                    {"cpu", m.cpu},
                                    {"directory", m.directory},
                                    {"arguments", m.arguments},
                                    {"compile_seconds", m.seconds},
                                    {"created", m.created},
                                    {"bytes", m.bytes},
                                    {"xxh3_128", m.checksum},
                                    {"guarded_xxh3_128", m.guarded}};
  return j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::optional<Meta> parse_meta(const std::string& text) {
  try {
    const auto j = nlohmann::json::parse(text);
    Meta m;
    j.at("name").get_to(m.name);
    j.at("config").get_to(m.config);
    j.at("header").get_to(m.header);
    j.at("target").get_to(m.target);
    j.at("version").get_to(m.version);
    j.at("flags").get_to(m.flags);
    j.at("compiler").get_to(m.compiler);
    j.at("source").get_to(m.source);
    j.at("headers").get_to(m.headers);
    j.at("cpu").get_to(m.cpu);
    j.at("directory").get_to(m.directory);
    j.at("arguments").get_to(m.arguments);
    j.at("compile_seconds").get_to(m.seconds);
    j.at("created").get_to(m.created);
    j.at("bytes").get_to(m.bytes);
    j.at("xxh3_128").get_to(m.checksum);
    j.at("guarded_xxh3_128").get_to(m.guarded);
    return m;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::string cache_path() {
  const std::string base = base_folder();
  return base.empty() ? base : base + "/.cache/flashinfer/" + build::version();
}

CacheFolders cache_folders(const std::string& target) {
  CacheFolders folders;
  const std::string root = cache_path();
  std::string why = "neither FLASHINFER_WORKSPACE_BASE nor HOME is set";
  if (!root.empty()) {
    folders.read = root + "/" + target;
    why = prepare(folders.read);
    if (why.empty() && ::access(folders.read.c_str(), W_OK | X_OK) == 0) {
      folders.write = folders.read;
      return folders;
    }
    if (why.empty())
      why = str(folders.read, " cannot be written: ", std::strerror(errno));
    else
      folders.read.clear();
  }
  folders.write = private_folder() + "/" + target;
  fs::make_dirs(folders.write);
  warn_once("the kernel cache is not used: " + why + "; compiling into a temporary folder");
  return folders;
}

void forget_folders() {
  const std::lock_guard lock(g_folders_mutex);
  warned.clear();
}

std::string artifact_path(const std::string& dir, const std::string& target) {
  if (target == kModulesFolder) {
    const std::string entry = dir.substr(dir.rfind('/') + 1);
    return dir + "/" + entry.substr(0, std::max<size_t>(entry.size(), 33) - 33) + ".so";
  }
  return dir + (target.starts_with("sm_") ? "/kernel.cubin" : "/kernel.so");
}

std::string source_path(const std::string& dir, const std::string& target) {
  return dir + (target.starts_with("sm_") ? "/kernel.cu" : "/kernel.cc");
}

std::string guarded_path(const std::string& dir) { return dir + "/kernel.guarded.so"; }

std::string guarded_checksum(const std::string& dir) {
  const auto bytes = fs::read_file(guarded_path(dir));
  return bytes ? hash_hex(*bytes) : "";
}

std::optional<Meta> read_meta(const std::string& dir) {
  const auto text = fs::read_file(dir + "/meta.json");
  return text ? parse_meta(*text) : std::nullopt;
}

std::optional<Meta> read_artifact(const std::string& dir) {
  auto meta = read_meta(dir);
  if (!meta) return std::nullopt;
  const auto bytes = fs::read_file(artifact_path(dir, meta->target));
  if (!bytes || bytes->size() != meta->bytes || hash_hex(*bytes) != meta->checksum) return std::nullopt;
  if (guarded_checksum(dir) != meta->guarded) return std::nullopt;
  return meta;
}

void publish(const std::string& temporary, const std::string& final) {
  for (int attempt = 0; attempt < 8; ++attempt) {
    if (::rename(temporary.c_str(), final.c_str()) == 0) return;
    const int error = errno;
    if (error != ENOTEMPTY && error != EEXIST && error != ENOTDIR) {
      fs::remove_tree(temporary);
      throw RuntimeError(str("cannot rename ", temporary, " to ", final, ": ", std::strerror(error)));
    }
    if (read_artifact(final)) {  // another process was faster
      fs::remove_tree(temporary);
      return;
    }
    const std::string aside = temporary + ".damaged";
    if (::rename(final.c_str(), aside.c_str()) == 0) fs::remove_tree(aside);
  }
  fs::remove_tree(temporary);
  throw RuntimeError(str("cannot replace the damaged ", final));
}

void add_aot_folder(const std::string& path) {
  auto added = std::make_unique<AddedFolder>(AddedFolder{path, added_folders.load(std::memory_order_acquire)});
  do {
    for (const AddedFolder* f = added->before; f != nullptr; f = f->before)
      if (f->path == path) return;
  } while (!added_folders.compare_exchange_weak(added->before, added.get(), std::memory_order_acq_rel));
  added.release();
}

std::vector<std::string> aot_folders() {
  std::vector<std::string> folders, searched{env::text("FLASHINFER_AOT_DIR")};
  for (const AddedFolder* f = added_folders.load(std::memory_order_acquire); f != nullptr; f = f->before)
    searched.push_back(f->path);
  const std::string library = fs::object_of(reinterpret_cast<const void*>(&aot_folders));
  const std::string prefix = build::static_prefix();
  const std::string beside =
      prefix.empty() ? library.substr(0, std::min(library.size(), library.rfind('/'))) : prefix + "/lib";
  searched.push_back(beside + "/flashinfer/aot");
  for (const std::string& f : searched) {
    if (f.empty() || !fs::is_dir(f)) continue;
    const std::string why = fs::unsafe_folder(f);
    if (why.empty())
      folders.push_back(fs::canonical(f));
    else
      warn_once("precompiled artifacts are not used: " + why);
  }
  return folders;
}

int64_t clear_cache() {
  const std::string root = cache_path();
  if (root.empty()) throw RuntimeError("there is no cache folder: neither FLASHINFER_WORKSPACE_BASE nor HOME is set");
  const std::string all = root.substr(0, root.rfind('/'));
  if (const std::string why = fs::unsafe_folder(all); !why.empty()) throw RuntimeError("not cleared: " + why);
  int64_t artifacts = 0;
  // Removes only files of this library's form: other programs keep folders under the same name.
  for (const std::string& version : fs::list_dir(all)) {
    const std::string measured = all + "/" + version + "/autotune/v2";  // winners.h
    if (fs::is_dir(measured) && !fs::remove_tree(measured))
      throw RuntimeError(str("cannot remove ", measured, ": ", std::strerror(errno)));
    ::rmdir((all + "/" + version + "/autotune").c_str());
    for (const std::string& target : fs::list_dir(all + "/" + version))
      for (const std::string& entry : fs::list_dir(all + "/" + version + "/" + target)) {
        const std::string dir = all + "/" + version + "/" + target + "/" + entry;
        const bool artifact = fs::is_file(dir + "/meta.json");
        const bool ninja = target == kModulesFolder && fs::is_file(dir + "/build.ninja");  // JitSpec.write_ninja()
        if (!artifact && !ninja && !entry.starts_with(".build-") && !entry.starts_with(".lock-") &&
            !entry.starts_with(kPrecompiledHeaderPrefix) && !entry.ends_with(".failed"))
          continue;
        if (!fs::remove_tree(dir)) throw RuntimeError(str("cannot remove ", dir, ": ", std::strerror(errno)));
        artifacts += artifact && !entry.starts_with(".");
        ::rmdir((all + "/" + version + "/" + target).c_str());  // removing the last target also removes the folder
      }
    ::rmdir((all + "/" + version).c_str());
  }
  return artifacts;
}

}  // namespace flashinfer::jit
