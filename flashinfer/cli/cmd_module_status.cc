// SPDX-License-Identifier: Apache-2.0
// `flashinfer module-status`: a table of the kernels with a summary.
#include <algorithm>
#include <string>

#include "flashinfer/cli/cli.h"
#include "flashinfer/cli/modules.h"

namespace flashinfer::cli {
namespace {

struct Options {
  bool detailed = false;
  std::string filter = "all";
};

bool wanted(const jit::ModuleStatus& m, const std::string& filter) {
  if (filter == "compiled") return m.compiled();
  if (filter == "not-compiled") return !m.compiled();
  return filter == "all" || m.kind == filter;
}

void block(const jit::ModuleStatus& m) {
  print("Module: %s\n  Target: %s\n  Status: %s\n", m.text.c_str(), m.target.c_str(),
        m.compiled() ? "Compiled" : "Not Compiled");
  if (!m.compiled()) return;
  print("  Kind: %s\n  Library Path: %s (%llu bytes)\n  Created: %s\n  Compile Time: %.2f s\n  Flags: %s\n",
        m.kind.c_str(), jit::artifact_path(m.directory, m.target).c_str(),
        static_cast<unsigned long long>(m.meta.bytes), time_text(m.meta.created).c_str(), m.meta.seconds,
        m.meta.flags.c_str());
}

void table(const std::vector<jit::ModuleStatus>& modules) {
  size_t width = 6;
  for (const auto& m : modules) width = std::max(width, m.text.size());
  const int w = static_cast<int>(width);
  print("%-*s  %-9s  %-12s  %-4s  %9s  %9s\n", w, "Module", "Target", "Status", "Kind", "Bytes", "Compile s");
  print("%s\n", std::string(width + 53, '-').c_str());
  for (const auto& m : modules) {
    if (!m.compiled()) {
      print("%-*s  %-9s  Not Compiled\n", w, m.text.c_str(), m.target.c_str());
      continue;
    }
    print("%-*s  %-9s  %-12s  %-4s  %9llu  %9.2f\n", w, m.text.c_str(), m.target.c_str(), "Compiled", m.kind.c_str(),
          static_cast<unsigned long long>(m.meta.bytes), m.meta.seconds);
  }
}

int run(const Options& o) {
  std::vector<jit::ModuleStatus> modules = all_modules();
  std::erase_if(modules, [&](const auto& m) { return !wanted(m, o.filter); });
  if (o.detailed) {
    for (const auto& m : modules) block(m);
  } else {
    table(modules);
  }
  const auto compiled = std::count_if(modules.begin(), modules.end(), [](const auto& m) { return m.compiled(); });
  print("\n=== Summary ===\nTotal modules: %zu\nCompiled: %td\nNot compiled: %td\n", modules.size(), compiled,
        static_cast<std::ptrdiff_t>(modules.size()) - compiled);
  return 0;
}

}  // namespace

void add_module_status(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<Options>();
  CLI::App* c = app.add_subcommand("module-status", "Show the state of the compiled kernels");
  c->add_flag("--detailed", o->detailed, "a block of lines for each");
  c->add_option("--filter", o->filter, "all, aot, jit, compiled or not-compiled")
      ->check(CLI::IsMember({"all", "aot", "jit", "compiled", "not-compiled"}))
      ->capture_default_str();
  c->callback([o, &exit_code] { exit_code = run(*o); });
}

}  // namespace flashinfer::cli
