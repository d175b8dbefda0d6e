// SPDX-License-Identifier: Apache-2.0
// `flashinfer list-ops`: the registry, as text or as the tables of docs/ops.md.
#include <algorithm>
#include <string>
#include <vector>

#include "flashinfer/cli/cli.h"
#include "flashinfer/op/registry.h"

namespace flashinfer::cli {
namespace {
std::string candidates(const op::Op& op) {
  std::string s;
  for (const op::Candidate& c : op.candidates) s += (s.empty() ? "" : ", ") + std::string(c.name);
  return s;
}

/// A function, or a class with its methods.
struct Row {
  std::string name, module, doc;
  std::vector<std::string> back_ends;

  void add(const op::Op& op) {
    for (const op::Candidate& c : op.candidates) {
      if (c.backend == op::Backend::kReference) continue;
      const std::string back_end = c.name;
      if (std::find(back_ends.begin(), back_ends.end(), back_end) == back_ends.end()) back_ends.push_back(back_end);
    }
    std::sort(back_ends.begin(), back_ends.end());  // cpu, cuda, cuda_cublaslt
  }
  void print_markdown() const {
    std::string names, text;
    for (const std::string& b : back_ends) names += (names.empty() ? "" : ", ") + b;
    for (const char c : doc) text += c == '|' ? "\\|" : std::string(1, c);
    print("| `%s` | %s | %s |\n", name.c_str(), text.c_str(), names.c_str());
  }
};

/// In the order of the registry; a class stands where its first method does and takes that method's text.
std::vector<Row> rows() {
  std::vector<Row> all;
  for (const op::Op* op : op::all_ops()) {
    const std::string name = std::string(op->name).substr(0, std::string(op->name).find('.'));
    const auto same = [&](const Row& r) { return r.name == name && r.module == op->module; };
    auto row = std::find_if(all.begin(), all.end(), same);
    if (row == all.end()) row = all.insert(all.end(), Row{name, op->module, op->doc, {}});
    row->add(*op);
  }
  return all;
}

void print_tables() {
  std::vector<Row> all = rows();
  std::stable_sort(all.begin(), all.end(), [](const Row& a, const Row& b) { return a.module < b.module; });
  std::string module;
  for (const Row& r : all) {
    if (r.module != module)
      print("%s## `%s`\n\n| name | computes | back ends |\n| --- | --- | --- |\n", module.empty() ? "" : "\n",
            r.module.c_str());
    module = r.module;
    r.print_markdown();
  }
}
}  // namespace

void add_list_ops(CLI::App& app, int& exit_code) {
  auto markdown = std::make_shared<bool>(false);
  CLI::App* c = app.add_subcommand("list-ops", "List the ops with their signatures and implementations");
  c->add_flag("--markdown", *markdown, "as tables, a row for each function and class");
  c->callback([markdown, &exit_code] {
    exit_code = 0;
    if (*markdown) return print_tables();
    for (const op::Op* op : op::all_ops())
      print("%s.%s%s\n    %s\n    implementations: %s\n", op->module, op->name, op::signature(*op).c_str(), op->doc,
            candidates(*op).c_str());
  });
}

}  // namespace flashinfer::cli
