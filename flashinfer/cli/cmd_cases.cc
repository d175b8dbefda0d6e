// SPDX-License-Identifier: Apache-2.0
// `flashinfer cases [OP]`: runs case tables, or one case given as text (the command that a failing test prints).
#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "flashinfer/cases/run.h"
#include "flashinfer/cli/case_jobs.h"
#include "flashinfer/cli/cli.h"
#include "flashinfer/cli/progress.h"
#include "flashinfer/op/registry.h"

namespace flashinfer::cli {
namespace {

struct Options {
  std::string op, args, name, candidate = "cpu", device = "cpu";
  int seeds = 3, jobs = 0;
  bool list = false, precompiled = false;
};

const op::Op& find(const std::string& name) {
  const op::Op* op = op::find_op(name);
  FI_CHECK(op, ValueError, "there is no op named '", name, "'; `flashinfer list-ops` prints them");
  return *op;
}

const op::Case& row_named(const op::Op& op, const std::string& name) {
  for (const op::Case& c : op.cases())
    if (name == c.name) return c;
  throw ValueError(str("--case: ", op.name, " has no case named '", name, "'; --list prints them"));
}

/// What the rows of an op, or some of them, came to.
struct Tally {
  int passed = 0, failed = 0, unsupported = 0;
  std::string text;  // a line or two a row
};

void run_case(const op::Op& op, const op::Case& c, const cases::DeviceRun& options, Tally& t) {
  const cases::CaseResult r = cases::run_case(op, c, options);
  const std::string& why = r.passed ? r.unsupported : r.failure;
  ++(!r.passed ? t.failed : r.unsupported.empty() ? t.passed : t.unsupported);
  t.text += str(!r.passed               ? "FAIL"
                : r.unsupported.empty() ? "ok  "
                                        : "no  ",
                " ", op.name, " ", c.name, why.empty() ? "" : ": ", why, "\n");
  if (!r.passed) t.text += str("     ", r.repro, "\n");
}

/// The rows to run, those of an op one after another.
std::vector<std::pair<const op::Op*, const op::Case*>> rows_of(const Options& o, Device device) {
  std::vector<std::pair<const op::Op*, const op::Case*>> rows;
  for (const op::Op* op : o.op.empty() ? op::all_ops() : std::vector<const op::Op*>{&find(o.op)}) {
    if (o.op.empty() && !cases::supports(*op, device)) continue;
    for (const op::Case& c : op->cases()) {
      const bool large = c.tags == op::kBench && o.name.empty() && !o.list;  // `flashinfer bench`
      if ((o.name.empty() || o.name == c.name) && !(o.precompiled && (c.tags & op::kAot) == 0) && !large)
        rows.emplace_back(op, &c);
    }
  }
  FI_CHECK(o.name.empty() || !rows.empty(), ValueError, "--case: none of the cases to run is named '", o.name,
           "'; --list prints them");
  return rows;
}

/// The emulator runs one launch at a time in a process; on the CPU a row uses all cores, and processes would share a
/// GPU.
int jobs_of(const Options& o, Device device) {
  if (o.jobs > 0) return o.jobs;
  return device.type == DeviceType::kEmu ? static_cast<int>(std::max(1u, std::thread::hardware_concurrency())) : 1;
}

void print_tally(const Tally& t) {
  print("%d passed, %d failed%s\n", t.passed, t.failed,
        t.unsupported ? str(", ", t.unsupported, " unsupported there").c_str() : "");
}

/// In as many processes; a part is a few rows of an op, since rows share kernels.
Tally run_in_processes(const std::vector<std::pair<const op::Op*, const op::Case*>>& rows, int jobs,
                       const cases::DeviceRun& options) {
  constexpr size_t kRows = 8;
  std::vector<std::pair<size_t, size_t>> parts;
  for (size_t i = 0, end; i < rows.size(); i = end) {
    for (end = i + 1; end < rows.size() && end < i + kRows && rows[end].first == rows[i].first;) ++end;
    parts.emplace_back(i, end);
  }
  Tally all;
  size_t ended = 0;
  Progress progress("cases");
  const auto part = [&](size_t p) {
    Tally t;
    for (size_t i = parts[p].first; i < parts[p].second; ++i) run_case(*rows[i].first, *rows[i].second, options, t);
    return str(t.passed, " ", t.failed, " ", t.unsupported, "\n", t.text);
  };
  const auto done = [&](size_t p, const std::string& text) {
    int passed = 0, failed = 0, unsupported = 0;
    std::sscanf(text.c_str(), "%d %d %d", &passed, &failed, &unsupported);
    all.passed += passed, all.failed += failed, all.unsupported += unsupported;
    ended += parts[p].second - parts[p].first;
    progress.show(ended, rows.size(), rows[parts[p].first].first->name);
    print("%s", text.c_str() + text.find('\n') + 1);
  };
  const auto died = [&](size_t p, int signal) {
    const auto [first, end] = parts[p];
    ++all.failed;
    print("FAIL %s %s to %s: the process that ran them ended%s\n", rows[first].first->name, rows[first].second->name,
          rows[end - 1].second->name, signal ? str(" by signal ", signal).c_str() : "");
  };
  in_processes(parts.size(), jobs, part, done, died);
  return all;
}

int run(const Options& o) {
  const auto device = parse_device(o.device);
  FI_CHECK(device, ValueError, "--device ", o.device, " is none of cpu, cuda, cuda:N, emu");
  const cases::DeviceRun options{*device, o.seeds};
  Tally all;
  if (!o.args.empty()) {
    FI_CHECK(!o.op.empty(), ValueError, "--args needs the op's name");
    const op::Op& op = find(o.op);
    op::Case given = o.name.empty() ? op::Case{.candidate = o.candidate.c_str()} : row_named(op, o.name);
    given.name = "given";
    given.args = o.args.c_str();
    run_case(op, given, options, all);
    print("%s", all.text.c_str());
  } else {
    const auto rows = rows_of(o, *device);
    if (o.list) {
      for (const auto& [op, c] : rows) print("%s %s: %s\n", op->name, c->name, c->args);
      return 0;
    }
    const int jobs = jobs_of(o, *device);
    if (jobs > 1 && rows.size() > 1) {
      all = run_in_processes(rows, jobs, options);
    } else {
      Progress progress("cases");
      size_t begun = 0;
      for (const auto& [op, c] : rows) {
        progress.show(begun++, rows.size(), str(op->name, " ", c->name));
        all.text.clear();
        run_case(*op, *c, options, all);
        print("%s", all.text.c_str());
      }
    }
  }
  print_tally(all);
  return all.failed ? 1 : 0;
}

}  // namespace

void add_cases(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<Options>();
  CLI::App* c =
      app.add_subcommand("cases", "Run the case tables: every candidate against the double-precision reference");
  c->add_option("op", o->op, "only this op");
  c->add_option("--case", o->name, "only the case of this name; with --args, that case's tolerance and candidate");
  c->add_option("--args", o->args, "one case as text, e.g. \"input=bf16:4x5120 weight=bf16:5120\"");
  c->add_option("--candidate", o->candidate, "the implementation that must run --args (default cpu)");
  c->add_option("--device", o->device, "where the tensors are: cpu (default), cuda, cuda:N, emu (the CUDA emulator)");
  c->add_option("--seeds", o->seeds, "schedules a case runs under on the emulator (default 3)");
  c->add_option("--jobs", o->jobs, "processes that run cases (default: the emulator one a core, others 1)");
  c->add_flag("--precompiled", o->precompiled, "only cases whose kernels `flashinfer aot` precompiles");
  c->add_flag("--list", o->list, "print the cases, run nothing");
  c->callback([o, &exit_code] { exit_code = run(*o); });
}

}  // namespace flashinfer::cli
