// SPDX-License-Identifier: Apache-2.0
// `flashinfer bench --op NAME`: times rows of the case tables beside the machine's limits.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "flashinfer/bench/bench.h"
#include "flashinfer/cli/bench_report.h"
#include "flashinfer/cli/bench_trace.h"
#include "flashinfer/cli/cli.h"
#include "flashinfer/cli/progress.h"
#include "flashinfer/cli/report.h"
#include "flashinfer/op/registry.h"

namespace flashinfer::cli {
namespace {

struct Options {
  std::string op, name, args, device = "cpu", csv, list, html, label, goal, over, over_op, over_args, traces;
  std::vector<std::string> candidates, peers;
  std::string python = "python3";
  int over_threads = 0;
  double rotate_mb = 0;
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
  c.add_option("--threads", o.bench.threads, "on this many threads (default: those of the library)");
  c.add_flag("--read", o.bench.read, "sum the bytes of the inputs in turns with the calls: the limit of ops that read");
  c.add_option("--rotate", o.rotate_mb,
               "calls take turns on copies of the inputs of this many MB in all, so that no cache holds them");
  c.add_option("--over", o.over, "in a list: time the row of this label in turns with it");
  c.add_option("--over-op", o.over_op, "time this op in turns with it (default: the same op)");
  c.add_option("--over-args", o.over_args, "on this case (default: the same)");
  c.add_option("--over-threads", o.over_threads, "on this many threads");
  c.add_option("--label", o.label, "the row's name in tables");
  c.add_option("--goal", o.goal, "what the row should reach, for tables: a column, >= or <=, and a number");
}

void add_peers(CLI::App& c, Options& o) {
  c.add_option(
       "--peers", o.peers,
       "other libraries in turns with it, as torch,onednn; all: torch, onednn, zentorch, llama.cpp, ik_llama.cpp")
      ->delimiter(',');
  c.add_option("--python", o.python, "the interpreter that has them (default python3)");
}

/// The processes of other libraries, used by all rows of a command.
using Peers = std::vector<std::unique_ptr<bench::Peer>>;

Peers peers_of(const Options& o) {
  std::vector<std::string> names = o.peers;
  if (names == std::vector<std::string>{"all"}) names.assign(std::begin(bench::kPeers), std::end(bench::kPeers));
  Peers peers;
  for (const std::string& name : names) peers.push_back(bench::library_peer(name, o.python));
  return peers;
}

/// Where the rows of all commands go.
struct Output {
  Progress progress{"bench"};
  size_t begun = 0;  // rows
  bool json = false;
  std::ofstream csv, traces;
  nlohmann::ordered_json all = nlohmann::ordered_json::array(), page = all;
  bool failed = false, has_head = false;

  void add(const bench::Row& r, double over_first, const std::string& repro) {
    failed |= !r.check.empty() && r.check != "ok";
    if (csv.is_open()) csv << csv_line(r, over_first, repro) << std::endl;
    page.push_back(to_json(r, over_first));
    page.back()["repro"] = repro;
    page.back()["peak_of"] = r.dots ? "bf16 dots" : "f32 FMA";
    if (json) {
      all.push_back(to_json(r, over_first));
      return;
    }
    if (!std::exchange(has_head, true)) print_head();
    print_row(r, over_first, repro);
  }
};

std::vector<op::Case> rows_of(const op::Op& op, const Options& o) {
  if (!o.args.empty())
    return {{.name = o.label.empty() ? "given" : o.label.c_str(), .args = o.args.c_str(), .candidate = ""}};
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

/// The options that measure the row in the same way again.
std::string same_way(const Options& o, const std::string& op, const std::string& candidate, const std::string& args) {
  std::string text = str("flashinfer bench --op ", op, o.device == "cpu" ? "" : " --device " + o.device,
                         o.bench.cold ? " --cold" : "", candidate.empty() ? "" : " --candidates " + candidate);
  if (o.bench.threads > 0) text += str(" --threads ", o.bench.threads);
  if (o.bench.read) text += " --read";
  if (o.rotate_mb > 0) text += str(" --rotate ", o.rotate_mb);
  if (!o.over_op.empty()) text += " --over-op " + o.over_op;
  if (!o.over_args.empty()) text += str(" --over-args \"", o.over_args, '"');
  if (o.over_threads > 0) text += str(" --over-threads ", o.over_threads);
  return str(text, " --args \"", args, '"');
}

/// The row that is timed in turns with `args`: of the same op or on the same arguments where none are given.
bench::Over over_of(const op::Op& op, const char* args, const Options& o) {
  if (o.over_op.empty() && o.over_args.empty() && o.over_threads == 0) return {};
  const op::Op* const other = o.over_op.empty() ? &op : op::find_op(o.over_op);
  FI_CHECK(other, ValueError, "--over-op: there is no op named '", o.over_op, "'");
  return {.op = other, .args = o.over_args.empty() ? args : o.over_args, .threads = o.over_threads};
}
std::string name_of_over(const Options& o) {
  if (!o.over.empty()) return o.over;
  return o.over_threads > 0 ? str(o.over_threads, " threads") : o.over_op.empty() ? "given" : o.over_op;
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
    options.rotate = static_cast<int64_t>(o.rotate_mb * 1e6);
    options.over = over_of(op, c.args, o);
    bench::Row r;
    try {
      r = bench::run(op, c, options);
    } catch (const ValueError&) {
      if (!all) throw;
      continue;
    }
    any = true;
    r.goal = o.goal;
    if (options.over.op) r.over.name = name_of_over(o);
    const std::string repro = same_way(o, r.op, name, r.args);
    const double median = r.samples.median();
    if (out.traces.is_open()) {
      std::string why;
      const formats::Json line = trace_line(op, c, r, o.bench.device, &why);
      if (why.empty())
        out.traces << formats::dump_json(line) << std::endl;
      else
        print_error("%s %s is not in --trace-out: %s\n", op.name, c.name, why.c_str());
    }
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
  const bool in_turns = o.bench.read || o.rotate_mb > 0 || o.bench.threads > 0 || !o.bench.peers.empty() ||
                        !o.over.empty() || !o.over_op.empty() || !o.over_args.empty() || o.over_threads > 0;
  FI_CHECK(!in_turns || device->type == DeviceType::kCPU, ValueError,
           "--threads, --read, --rotate, --over and --peers are for the CPU, but --device is ", o.device);
  FI_CHECK(o.over.empty() || !o.over_op.empty(), ValueError,
           "--over names a row of a list; use --over-op, --over-args");
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
      out.progress.show(out.begun++, 0, str(op->name, " ", c.name));
      if (o.counts)
        count_row(*op, c, out);
      else
        time_row(*op, c, o, out);
    }
  }
  FI_CHECK(any, ValueError, "op '", o.op, "' has no ",
           o.name.empty() ? "rows for bench" : "case named '" + o.name + "'");
}

/// The options of a line of a list; those of the list are its defaults.
Options parse_line(const std::string& line, const Options& list) {
  Options o;
  o.bench = list.bench;
  CLI::App parser;
  add_options(parser, o);
  parser.parse(line, false);
  return o;
}

/// Takes the op and the arguments of --over from the line that has its label.
void find_over(Options& o, const std::vector<Options>& all) {
  if (o.over.empty()) return;
  const auto other = std::ranges::find(all, o.over, &Options::label);
  FI_CHECK(other != all.end() && !other->args.empty(), ValueError, "--over: no line has --args and the label '", o.over,
           "'");
  o.over_op = other->op;
  o.over_args = other->args;
}

/// The commands of a file, one a line without `flashinfer bench`; empty lines and those that begin with # are left out.
/// A command that fails is reported, and the others run.
void run_list(const Options& list, Output& out) {
  std::ifstream file(list.list);
  FI_CHECK(file, ValueError, "--testlist ", list.list, " cannot be read");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin != std::string::npos && line[begin] != '#') lines.push_back(line.substr(begin));
  }
  std::vector<Options> all;
  const auto each = [&](const std::string& line, const auto& what) {
    try {
      what();
    } catch (const std::exception& e) {
      out.failed = true;
      print_error("[ERROR] %s: %s\n", line.c_str(), e.what());
    }
  };
  for (std::string& line : lines) {
    bool good = false;
    each(line, [&] { all.push_back(parse_line(line, list)), good = true; });
    if (!good) line.clear();
  }
  std::erase(lines, "");
  for (size_t i = 0; i < lines.size(); ++i)
    each(lines[i], [&] {
      find_over(all[i], all);
      run_one(all[i], out);
    });
}

int run(Options o) {
  const Peers peers = peers_of(o);
  for (const auto& p : peers) o.bench.peers.push_back(p.get());
  Output out;
  out.json = o.json;
  if (!o.csv.empty()) {
    out.csv.open(o.csv);
    FI_CHECK(out.csv, ValueError, "--csv ", o.csv, " cannot be written");
    out.csv << csv_head() << "\n";
  }
  if (!o.traces.empty()) {
    out.traces.open(o.traces, std::ios::app);
    FI_CHECK(out.traces, ValueError, "--trace-out ", o.traces, " cannot be written");
  }
  if (o.list.empty())
    run_one(o, out);
  else
    run_list(o, out);
  if (o.json) print("%s\n", out.all.dump(2).c_str());
  if (!o.html.empty()) write_file(o.html, bench_page(std::move(out.page)));
  return out.failed ? 1 : 0;
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<Options>();
  CLI::App* c = app.add_subcommand("bench", "Time an op beside the machine's copy bandwidth and arithmetic peak");
  add_options(*c, *o);
  add_peers(*c, *o);
  c->add_flag("--json", o->json, "print JSON");
  c->add_option("--csv", o->csv, "write the results to this file as well");
  c->add_option("--html", o->html, "write a page with a roofline and the times of the candidates to this file");
  c->add_option("--trace-out", o->traces,
                "append a trace of flashinfer-bench for each row to this file (.jsonl); also runs the reference once");
  c->add_option("--testlist", o->list, "a file of options, one command a line, in place of --op");
  c->callback([o, &exit_code] { exit_code = run(*o); });
}

}  // namespace flashinfer::cli
