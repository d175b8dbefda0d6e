// SPDX-License-Identifier: Apache-2.0
// `flashinfer list-modules [NAME]`: the kernels of the case tables and of the cache; with NAME (or its beginning), in
// detail.
#include <string>

#include "flashinfer/cli/cli.h"
#include "flashinfer/cli/modules.h"

namespace flashinfer::cli {
namespace {

void details(const jit::ModuleStatus& m) {
  print("Module: %s\n", shown_name(m).c_str());
  print("Status: %s\n", m.compiled() ? "Compiled" : "Not Compiled");
  if (m.compiled()) {
    print("Library Path: %s\n", jit::artifact_path(m.directory, m.target).c_str());
    print("Created: %s\n", time_text(m.meta.created).c_str());
    print("Compile Time: %.2f s\n", m.meta.seconds);
  }
  print("Device Linking: False\n");
  print("Source Files:\n");
  if (m.compiled() && m.target != jit::kModulesFolder) print("  %s\n", jit::source_path(m.directory, m.target).c_str());
  print("  %s\n", m.meta.header.c_str());
}

int run(const std::string& name) {
  const auto modules = all_modules();
  if (name.empty()) {
    print("Available compilation modules:\n");
    for (const auto& m : modules)
      print("  %s - %s\n", shown_name(m).c_str(), m.compiled() ? "Compiled" : "Not Compiled");
    return 0;
  }
  bool found = false;
  for (const auto& m : modules) {
    if (m.text != name && m.meta.name != name && shown_name(m) != name) continue;
    if (found) print("\n");
    details(m);
    found = true;
  }
  if (!found) print("Module '%s' not found.\n", name.c_str());
  return found ? 0 : 2;
}

}  // namespace

void add_list_modules(CLI::App& app, int& exit_code) {
  auto name = std::make_shared<std::string>();
  CLI::App* c = app.add_subcommand("list-modules", "List the kernels and whether they are compiled");
  c->add_option("name", *name, "details of one, e.g. norm.rmsnorm or 'norm.rmsnorm{dtype=bfloat16,...}'");
  c->callback([name, &exit_code] { exit_code = run(*name); });
}

}  // namespace flashinfer::cli
