// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/jit/modules.h"

#include <map>
#include <utility>

#include "flashinfer/core/fs.h"
#include "flashinfer/core/version.h"
#include "flashinfer/jit/build.h"
#include "flashinfer/jit/library.h"
#include "flashinfer/jit/source.h"

namespace flashinfer::jit {
namespace {

/// The libraries whose sources and headers are unchanged.
void scan_libraries(const std::string& folder, auto& found) {
  for (const std::string& entry : fs::list_dir(folder)) {
    const std::string dir = folder + "/" + entry;
    auto meta = entry.starts_with(".") ? std::nullopt : read_artifact(dir);
    if (!meta || meta->version != build::version() || !library_is_current(dir)) continue;
    ModuleStatus s{meta->name, meta->target, "jit", dir, *meta};
    found.try_emplace({s.text, s.target}, std::move(s));
  }
}

using Found = std::map<std::pair<std::string, std::string>, ModuleStatus>;  // by text and target

void scan(const std::string& folder, const char* kind, const std::string& root, Found& found) {
  for (const Target target : all_targets())
    for (const std::string& entry : fs::list_dir(folder + "/" + name(target))) {
      if (entry.starts_with(".")) continue;
      const std::string dir = folder + "/" + name(target) + "/" + entry;
      auto meta = read_artifact(dir);
      if (!meta || meta->version != build::version()) continue;
      if (!root.empty() && meta->headers != headers_hash(root, meta->header))
        continue;  // of an earlier state of the headers
      ModuleStatus s{meta->name + meta->config, meta->target, kind, dir, *meta};
      found.try_emplace({s.text, s.target}, std::move(s));
    }
}

}  // namespace

ModuleStatus module_status(const Request& r, Target target) {
  ModuleStatus s{r.text(), name(target), "", "", {}};
  s.meta.name = r.name;
  s.meta.config = r.config;
  s.meta.header = r.header;
  const auto aot = find_aot(r, target);
  const auto found = aot ? aot : find_cached(r, target);
  if (!found) return s;
  s.kind = aot ? "aot" : "jit";
  s.directory = found->path.substr(0, found->path.rfind('/'));
  if (auto meta = read_meta(s.directory)) s.meta = *meta;
  return s;
}

std::vector<ModuleStatus> module_statuses(std::span<const Request> known) {
  Found found;
  const std::string root = include_root(), cache = cache_path();
  if (!cache.empty() && fs::unsafe_folder(cache).empty()) {
    scan(cache, "jit", root, found);
    scan_libraries(libraries_path(), found);
  }
  for (const std::string& folder : aot_folders()) scan(folder, "aot", root, found);
  const std::string target = name(selected_target());
  for (const Request& r : known) {
    ModuleStatus s{r.text(), target, "", "", {}};
    s.meta.name = r.name;
    s.meta.config = r.config;
    s.meta.header = r.header;
    found.try_emplace({s.text, s.target}, std::move(s));
  }
  std::vector<ModuleStatus> list;
  for (auto& [key, status] : found) list.push_back(std::move(status));
  return list;
}

}  // namespace flashinfer::jit
