// SPDX-License-Identifier: Apache-2.0
// `flashinfer list-ops`: the registry, as text or as the table of the README.
#include <string>

#include "flashinfer/cli/cli.h"
#include "flashinfer/op/registry.h"

namespace flashinfer::cli {
namespace {
std::string candidates(const op::Op& op) {
  std::string s;
  for (const op::Candidate& c : op.candidates) s += (s.empty() ? "" : ", ") + std::string(c.name);
  return s;
}
}  // namespace

void add_list_ops(CLI::App& app, int& exit_code) {
  auto markdown = std::make_shared<bool>(false);
  CLI::App* c = app.add_subcommand("list-ops", "List the ops with their signatures and implementations");
  c->add_flag("--markdown", *markdown, "as a table");
  c->callback([markdown, &exit_code] {
    if (*markdown) print("| op | module | back ends |\n| --- | --- | --- |\n");
    for (const op::Op* op : op::all_ops()) {
      if (*markdown)
        print("| `%s` | `%s` | %s |\n", op->name, op->module, candidates(*op).c_str());
      else
        print("%s.%s%s\n    %s\n    implementations: %s\n", op->module, op->name, op::signature(*op).c_str(), op->doc,
              candidates(*op).c_str());
    }
    exit_code = 0;
  });
}

}  // namespace flashinfer::cli
