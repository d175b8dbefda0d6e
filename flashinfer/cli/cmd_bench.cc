// SPDX-License-Identifier: Apache-2.0
// `flashinfer bench --op NAME`: times rows of the case tables beside the machine's limits.
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "flashinfer/bench/bench.h"
#include "flashinfer/cli/bench_report.h"
#include "flashinfer/cli/cli.h"
#include "flashinfer/op/registry.h"

namespace flashinfer::cli {
namespace {

struct Options {
  std::string op, name, args, device = "cpu", csv, list;
  std::vector<std::string> candidates;
  bool json = false, counts = false;
  bench::Options bench;
};

void add_options(CLI::App& c, Options& o) {
  c.add_option("--op", o.op, "the op; all: every op's rows for bench");
  c.add_option("--case", o.name, "the row of this name (default: the rows meant for bench)");
  c.add_option("--args", o.args, "a case as text, as for `flashinfer cases`");
  c.add_option("--candidates", o.candidates,
               "time these one after the other, as cpu,reference; all: every one there is")
      ->delimiter(',');
  c.add_option("--seconds", o.bench.seconds, "time spent on a row (default 0.5)");
  c.add_flag("--refcheck", o.bench.refcheck, "check the result against the reference first");
  c.add_option("--device", o.device, "cpu (default), cuda or cuda:N (timed by the GPU's events), or emu with --counts");
  c.add_flag("--cold", o.bench.cold, "overwrite the last-level (GPU: L2) cache before each call");
  c.add_flag("--counts", o.counts, "count memory sectors, bank conflicts and instructions on the emulator");
}

/// Where the rows of all commands go.
struct Output {
  bool json = false;
  std::ofstream csv;
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  bool failed = false, has_head = false;

  void add(const bench::Row& r, double over_first, const std::string& repro) {
    failed |= !r.check.empty() && r.check != "ok";
    if (csv.is_open()) csv << csv_line(r, over_first, repro) << std::endl;
    if (json) {
      all.push_back(to_json(r, over_first));
      return;
    }
    if (!std::exchange(has_head, true)) print_head();
    print_row(r, over_first, repro);
  }
};

std::vector<op::Case> rows_of(const op::Op& op, const Options& o) {
  if (!o.args.empty()) return {{.name = "given", .args = o.args.c_str(), .candidate = ""}};
  std::vector<op::Case> rows;
  for (const op::Case& c : op.cases())
    if (o.name.empty() ? (c.tags & op::kBench) != 0 : o.name == c.name) rows.push_back(c);
  return rows;
}

void count_row(const op::Op& op, const op::Case& c, Output& out) {
  const bench::CountedRow r = bench::count(op, c);
  if (out.json)
    out.all.push_back(to_json(r));
  else
    print_counts(r);
}

/// A row by each of the candidates that the options name; of `all`, those that support it.
void time_row(const op::Op& op, const op::Case& c, const Options& o, Output& out) {
  std::vector<std::string> names = o.candidates;
  const bool all = names == std::vector<std::string>{"all"};
  if (all) {
    names.clear();
    for (const op::Candidate& k : op.candidates) names.emplace_back(k.name);
  }
  if (names.empty()) names.emplace_back();
  double first = 0;
  bool any = false;
  for (const std::string& name : names) {
    bench::Options options = o.bench;
    options.candidate = name;
    bench::Row r;
    try {
      r = bench::run(op, c, options);
    } catch (const ValueError&) {
      if (!all) throw;
      continue;
    }
    any = true;
    const std::string repro =
        str("flashinfer bench --op ", r.op, o.device == "cpu" ? "" : " --device " + o.device,
            o.bench.cold ? " --cold" : "", name.empty() ? "" : " --candidates " + name, " --args \"", r.args, "\"");
    const double median = r.samples.median();
    out.add(r, first > 0 ? first / median : 0, repro);
    if (first == 0) first = median;
  }
  FI_CHECK(any, ValueError, op.name, " ", c.name, ": no candidate supports it on ", o.device);
}

void run_one(Options o, Output& out) {
  FI_CHECK(!o.op.empty(), ValueError, "Missing option '--op' (or '--testlist')");
  const auto device = parse_device(o.device);
  FI_CHECK(device, ValueError, "--device ", o.device, " is none of cpu, cuda, cuda:N, emu");
  FI_CHECK(!o.counts || device->type == DeviceType::kEmu, ValueError, "--counts needs --device emu, but it is ",
           o.device);
  FI_CHECK(o.counts || device->type != DeviceType::kEmu, ValueError, "--device ", o.device,
           " times nothing here: the emulator's time means nothing (--counts)");
  FI_CHECK(!o.bench.cold || !o.counts, ValueError, "--counts and --cold exclude each other");
  o.bench.device = *device;
  std::vector<const op::Op*> ops;
  if (o.op == "all")
    for (const op::Op* op : op::all_ops()) ops.push_back(op);
  else
    ops.push_back(op::find_op(o.op));
  FI_CHECK(ops.front(), ValueError, "there is no op named '", o.op, "'; `flashinfer list-ops` prints them");
  bool any = false;
  for (const op::Op* op : ops) {
    for (const op::Case& c : rows_of(*op, o)) {
      any = true;
      if (o.counts)
        count_row(*op, c, out);
      else
        time_row(*op, c, o, out);
    }
  }
  FI_CHECK(any, ValueError, "op '", o.op, "' has no ",
           o.name.empty() ? "rows for bench" : "case named '" + o.name + "'");
}

/// The commands of a file, one a line without `flashinfer bench`; empty lines and those that begin with # are left out.
/// A command that fails is reported, and the others run.
void run_list(const std::string& path, Output& out) {
  std::ifstream file(path);
  FI_CHECK(file, ValueError, "--testlist ", path, " cannot be read");
  for (std::string line; std::getline(file, line);) {
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos || line[begin] == '#') continue;
    try {
      Options o;
      CLI::App parser;
      add_options(parser, o);
      parser.parse(line, false);
      run_one(o, out);
    } catch (const std::exception& e) {
      out.failed = true;
      print_error("[ERROR] %s: %s\n", line.c_str() + begin, e.what());
    }
  }
}

int run(const Options& o) {
  Output out;
  out.json = o.json;
  if (!o.csv.empty()) {
    out.csv.open(o.csv);
    FI_CHECK(out.csv, ValueError, "--csv ", o.csv, " cannot be written");
    out.csv << csv_head() << "\n";
  }
  if (o.list.empty())
    run_one(o, out);
  else
    run_list(o.list, out);
  if (o.json) print("%s\n", out.all.dump(2).c_str());
  return out.failed ? 1 : 0;
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<Options>();
  CLI::App* c = app.add_subcommand("bench", "Time an op beside the machine's copy bandwidth and arithmetic peak");
  add_options(*c, *o);
  c->add_flag("--json", o->json, "print JSON");
  c->add_option("--csv", o->csv, "write the results to this file as well");
  c->add_option("--testlist", o->list, "a file of options, one command a line, in place of --op");
  c->callback([o, &exit_code] { exit_code = run(*o); });
}

}  // namespace flashinfer::cli
