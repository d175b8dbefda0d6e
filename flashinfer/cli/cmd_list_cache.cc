// SPDX-License-Identifier: Apache-2.0
// `flashinfer list-cache`: the folders of compiled kernels and libraries on disk, with their sizes.
#include <map>
#include <string>

#include "flashinfer/cli/cli.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/jit/cache.h"

namespace flashinfer::cli {
namespace {

struct Sum {
  int64_t artifacts = 0;
  uint64_t bytes = 0;
};

/// <folder>/<target>/<artifact>, of any version and state of the headers.
void add(const std::string& folder, std::map<std::string, Sum>& sums) {
  for (const std::string& target : fs::list_dir(folder))
    for (const std::string& entry : fs::list_dir(folder + "/" + target)) {
      const auto meta = jit::read_meta(folder + "/" + target + "/" + entry);
      if (!meta || entry.starts_with(".")) continue;
      Sum& s = sums[folder + "/" + target];
      ++s.artifacts;
      const std::string dir = folder + "/" + target + "/" + entry;
      if (fs::is_file(jit::artifact_path(dir, target))) s.bytes += meta->bytes;  // else the code is another level's
    }
}

int run() {
  std::map<std::string, Sum> sums;
  const std::string cache = jit::cache_path(), all = cache.substr(0, cache.rfind('/'));
  for (const std::string& version : fs::list_dir(all)) add(all + "/" + version, sums);
  for (const std::string& folder : jit::aot_folders()) add(folder, sums);
  Sum total;
  for (const auto& [folder, s] : sums) {
    print("%6lld artifacts %10.1f KB  %s\n", static_cast<long long>(s.artifacts), static_cast<double>(s.bytes) / 1e3,
          folder.c_str());
    total.artifacts += s.artifacts, total.bytes += s.bytes;
  }
  print("%6lld artifacts %10.1f KB in all\n", static_cast<long long>(total.artifacts),
        static_cast<double>(total.bytes) / 1e3);
  return 0;
}

}  // namespace

void add_list_cache(CLI::App& app, int& exit_code) {
  app.add_subcommand("list-cache", "Show the folders of compiled kernels and their sizes, of all versions")
      ->callback([&exit_code] { exit_code = run(); });
}

}  // namespace flashinfer::cli
