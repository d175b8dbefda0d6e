// SPDX-License-Identifier: Apache-2.0
// The commands of FlashInfer about files that it downloads: cubins and wheels with kernels. This library downloads
// nothing: its kernels are compiled where they run, or come precompiled with the package. The commands exist so that
// scripts run; `list-cubins` shows what there is in their place, the CUDA kernels on disk.
#include <algorithm>
#include <string>
#include <vector>

#include "flashinfer/cli/cli.h"
#include "flashinfer/cli/modules.h"
#include "flashinfer/core/check.h"
#include "flashinfer/core/version.h"
#include "flashinfer/jit/cubins.h"

namespace flashinfer::cli {
namespace {

constexpr const char* kNothing =
    "nothing to download: kernels are compiled where they run, or come precompiled with the packages flashinfer-cpp "
    "and flashinfer-cpp-cubin (`make cubin-wheel`)";

/// Those on disk, and those that a package lists and that are not there.
int list_cubins() {
  struct Row {
    std::string kernel, target;
    const char* status;
  };
  std::vector<Row> rows;
  for (const jit::ModuleStatus& m : jit::module_statuses({}))
    if (m.target.starts_with("sm_")) rows.push_back({m.text, m.target, m.kind == "aot" ? "Precompiled" : "Compiled"});
  const size_t n = rows.size();
  for (const jit::PackagedCubin& c : jit::packaged_cubins())
    if (!c.present) rows.push_back({c.kernel, c.target, "Missing"});
  size_t width = 5;
  for (const Row& r : rows) width = std::max(width, r.kernel.size());
  const int w = static_cast<int>(width);
  print("| %-*s | Target  | Status      |\n|%s|---------|-------------|\n", w, "Cubin",
        std::string(width + 2, '-').c_str());
  for (const Row& r : rows) print("| %-*s | %-7s | %-11s |\n", w, r.kernel.c_str(), r.target.c_str(), r.status);
  print("%zu cubins; %s\n", n, kNothing);
  return 0;
}

void add_cubins(CLI::App& app, int& exit_code) {
  app.add_flag_callback(
      "--download-cubin", [] { print("✅ All cubin download tasks completed successfully.\n%s\n", kNothing); },
      "As the command download-cubin");
  app.add_subcommand("download-cubin", "Report that there are no cubins to download")->callback([&exit_code] {
    print("✅ All cubin download tasks completed successfully.\n%s\n", kNothing);
    exit_code = 0;
  });
  app.add_subcommand("list-cubins", "List the compiled CUDA kernels on disk")->callback([&exit_code] {
    exit_code = list_cubins();
  });
  app.add_subcommand("clear-cubin", "Report that there are no downloaded cubins; clear-cache removes compiled kernels")
      ->callback([&exit_code] {
        print(
            "✅ Cubin cleared successfully.\nno cubin was ever downloaded; `flashinfer clear-cache` removes compiled "
            "kernels, `pip uninstall flashinfer-cpp-cubin` precompiled ones\n");
        exit_code = 0;
      });
}

/// The options that FlashInfer's commands take; what they choose does not exist here.
struct Wheel {
  std::string version, index, cubin_index, cache_index, cuda, mode = "all";
  std::vector<std::string> sm;
  bool nightly = false, dry_run = false;
};

/// `kind` of kernels: flashinfer-KIND is FlashInfer's package, and `command` builds flashinfer-cpp-KIND.
void install(const char* title, const char* kind, const char* command, const Wheel& o) {
  FI_CHECK(o.sm.empty() || o.mode == "minimal", ValueError, "--sm is only for --mode minimal");
  print("=== %s ===\nFlashInfer version: %s\nRequirement: none\nCommand: none\n", title,
        o.version.empty() ? build::version() : o.version.c_str());
  print("No flashinfer-%s wheel is downloaded: %s of the sources builds flashinfer-cpp-%s; %s.\n", kind, command, kind,
        kNothing);
}

void common_options(CLI::App* c, Wheel& o, const char* dry_run) {
  c->add_option("--flashinfer-version", o.version, "accepted; there is no wheel of any version");
  c->add_flag("--nightly", o.nightly, "accepted; there is no wheel");
  c->add_flag("--dry-run", o.dry_run, dry_run);
}

void add_wheels(CLI::App& app, int& exit_code) {
  auto cubin = std::make_shared<Wheel>(), cache = std::make_shared<Wheel>(), both = std::make_shared<Wheel>();
  constexpr const char* kDry = "print without installing, as is always the case here";
  CLI::App* c = app.add_subcommand("install-cubin-wheel", "Say where a wheel of cubins comes from; none is downloaded");
  common_options(c, *cubin, kDry);
  c->add_option("--index-url", cubin->index, "accepted; no index is asked");
  c->callback([cubin, &exit_code] {
    install("Cubin Wheel Install", "cubin", "`make cubin-wheel`", *cubin);
    exit_code = 0;
  });
  c = app.add_subcommand("install-jit-cache-wheel",
                         "Say where a wheel of precompiled kernels comes from; none is downloaded");
  common_options(c, *cache, kDry);
  c->add_option("--index-url", cache->index, "accepted; no index is asked");
  c->add_option("--cuda-version", cache->cuda, "accepted; there is no wheel");
  c->add_option("--mode", cache->mode, "all or minimal")
      ->check(CLI::IsMember({"all", "minimal"}))
      ->capture_default_str();
  c->add_option("--sm", cache->sm, "accepted with --mode minimal")->allow_extra_args(false);
  c->callback([cache, &exit_code] {
    install("JIT Cache Wheel Install", "jit-cache", "packaging/jit-cache", *cache);
    exit_code = 0;
  });
  c = app.add_subcommand("download-kernels", "Say where wheels with kernels come from; none is downloaded");
  common_options(c, *both, kDry);
  c->add_option("--cuda-version", both->cuda, "accepted; there is no wheel");
  c->add_option("--cubin-index-url", both->cubin_index, "accepted; no index is asked");
  c->add_option("--jit-cache-index-url", both->cache_index, "accepted; no index is asked");
  c->add_option("--sm", both->sm, "accepted; there is no wheel")->allow_extra_args(false);
  c->callback([both, &exit_code] {
    both->mode = "minimal";
    install("Cubin Wheel Install", "cubin", "`make cubin-wheel`", *both);
    install("JIT Cache Wheel Install", "jit-cache", "packaging/jit-cache", *both);
    exit_code = 0;
  });
}

}  // namespace

void add_artifacts(CLI::App& app, int& exit_code) {
  add_cubins(app, exit_code);
  add_wheels(app, exit_code);
}

}  // namespace flashinfer::cli
