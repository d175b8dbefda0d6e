// SPDX-License-Identifier: Apache-2.0
// `flashinfer trace`: lists the ops' definitions and checks files of them.
#include <memory>

#include "flashinfer/cli/cli.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/op/registry.h"
#include "flashinfer/trace/trace.h"
#include "flashinfer/trace/workloads.h"

namespace flashinfer::cli {
namespace {

int validate(const std::vector<std::string>& files) {
  int wrong = 0;
  for (const std::string& file : files) {
    const auto text = fs::read_file(file);
    FI_CHECK(text, RuntimeError, file, " cannot be read");
    const auto problems = trace::problems(formats::parse_json(*text));
    if (problems.empty()) print("✅ %s\n", file.c_str());
    for (const std::string& p : problems) print("❌ %s: %s\n", file.c_str(), p.c_str());
    wrong += !problems.empty();
  }
  print("%zu of %zu valid\n", files.size() - static_cast<size_t>(wrong), files.size());
  return wrong ? 1 : 0;
}

std::string axes_of(const trace::Template& t) {
  std::string s;
  for (const trace::Axis& a : t.axes)
    if (a.constant && !a.abbreviation.empty()) s += "_" + a.abbreviation + "{" + a.name + "}";
  return s;
}

int list() {
  for (const op::Op* op : op::all_ops())
    for (const op::TraceEntry* e : trace::entries_of(*op)) {
      if (!e->op_type) continue;
      const trace::Template t = trace::make_template(*op, *e);
      print("%s  %s%s%s%s\n", t.api.c_str(), (t.prefix.empty() ? t.op_type : t.prefix).c_str(), axes_of(t).c_str(),
            e->when[0] ? "  when " : "", e->when);
    }
  return 0;
}

}  // namespace

void add_trace(CLI::App& app, int& exit_code) {
  auto files = std::make_shared<std::vector<std::string>>();
  CLI::App* cmd = app.add_subcommand("trace", "Trace definitions (docs/trace.md)");
  cmd->require_subcommand(1);
  cmd->add_subcommand("list", "The ops' definitions: the function, and how a definition is named")
      ->callback([&exit_code] { exit_code = list(); });
  CLI::App* check = cmd->add_subcommand(
      "validate", "Check files of definitions by flashinfer-bench's data model; exits 1 when one is not valid");
  check->add_option("FILE", *files, "Definitions (.json)")->required();
  struct Workloads {
    std::string dir, out;
    bool dense = false;
  };
  auto workloads = std::make_shared<Workloads>();
  CLI::App* from = cmd->add_subcommand(
      "workloads", "Turn a recording into a data set of flashinfer-bench: definitions, workloads, index arrays");
  from->add_option("--dir", workloads->dir, "The recording (a session or one call)")->required();
  from->add_option("--out", workloads->out, "The folder of the data set")->required();
  from->add_flag("--dense", workloads->dense, "Save all tensors, not only index arrays");
  from->callback([workloads] {
    const trace::DataSet set = trace::write_workloads(workloads->dir, workloads->out, workloads->dense);
    for (const std::string& n : set.notes) print("%s\n", n.c_str());
    print("%d definitions and %d workloads of %d calls in %s\n", set.definitions, set.workloads, set.calls,
          workloads->out.c_str());
  });
  check->callback([files, &exit_code] { exit_code = validate(*files); });
}

}  // namespace flashinfer::cli
