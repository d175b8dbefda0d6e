// SPDX-License-Identifier: Apache-2.0
// `flashinfer export-compile-commands [PATH]`: a compile_commands.json for editors, one entry per compiled kernel.
#include <nlohmann/json.hpp>
#include <string>

#include "flashinfer/cli/cli.h"
#include "flashinfer/cli/modules.h"
#include "flashinfer/core/fs.h"

namespace flashinfer::cli {
namespace {

int run(const std::string& path) {
  auto commands = nlohmann::ordered_json::array();
  for (const auto& m : jit::module_statuses({})) {
    if (m.target == jit::kModulesFolder) {
      const auto text = fs::read_file(m.directory + "/compile_commands.json").value_or("");
      const auto own = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
      if (own.is_array()) commands.insert(commands.end(), own.begin(), own.end());
      continue;
    }
    // Precompiled artifacts may have been built elsewhere: their command works in the folder that holds them now.
    commands.push_back({{"directory", m.directory},
                        {"arguments", m.meta.arguments},
                        {"file", jit::source_path(m.directory, m.target)}});
  }
  if (commands.empty()) {
    print("No modules found to export.\n");
    return 0;
  }
  fs::write_atomic(path, commands.dump(2) + "\n", 0644);
  print("✅ Successfully exported %zu compile commands to %s\n", commands.size(), path.c_str());
  return 0;
}

}  // namespace

void add_export_compile_commands(CLI::App& app, int& exit_code) {
  auto path = std::make_shared<std::string>("compile_commands.json");
  CLI::App* c = app.add_subcommand("export-compile-commands", "Write compile_commands.json for the compiled kernels");
  c->add_option("path,-o,--output", *path, "the file to write")->capture_default_str();
  c->callback([path, &exit_code] { exit_code = run(*path); });
}

}  // namespace flashinfer::cli
