// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <optional>

#include "flashinfer/cli/cli.h"
#include "flashinfer/cli/progress.h"
#include "flashinfer/replay/replay.h"

namespace flashinfer::cli {

void add_export(CLI::App& app, int& exit_code) {
  struct Args {
    std::string from, to;
  };
  auto args = std::make_shared<Args>();
  CLI::App* cmd = app.add_subcommand("export", "Turn a recording with a chunk store into plain files (.pt)");
  cmd->add_option("--dir", args->from, "The recording (a session or one call)")->required();
  cmd->add_option("--out", args->to, "The folder to write; must not exist")->required();
  cmd->callback([args, &exit_code] {
    std::optional<Progress> progress(std::in_place, "export");
    const auto problems =
        replay::export_session(args->from, args->to, [&](size_t done, size_t total) { progress->show(done, total); });
    progress.reset();
    for (const std::string& p : problems) print("❌ %s\n", p.c_str());
    print("Exported %s to %s\n", args->from.c_str(), args->to.c_str());
    exit_code = problems.empty() ? 0 : 1;
  });
}

}  // namespace flashinfer::cli
