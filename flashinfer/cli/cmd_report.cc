// SPDX-License-Identifier: Apache-2.0
// `flashinfer report`: a recording as a page, or as a trace for the Perfetto UI.
#include <filesystem>
#include <memory>

#include "flashinfer/cli/cli.h"
#include "flashinfer/cli/report.h"
#include "flashinfer/core/check.h"

namespace flashinfer::cli {
namespace {

struct Args {
  std::string dir, out, perfetto, against, device;
  bool replay = false, no_statistics = false;
  int jobs = 0;
  replay::Options options;
};

std::string folder_name(const std::string& dir) {
  const auto path = std::filesystem::weakly_canonical(dir);
  return path.filename().string();
}

void print_call(const char* what, const SessionFacts& s, int64_t i, const std::string& more = "") {
  if (i < 0) return;
  const CallFacts& c = s.calls[static_cast<size_t>(i)];
  print("%s: call %lld, %s (%s)%s\n", what, static_cast<long long>(i) + 1, c.function.c_str(), c.folder.c_str(),
        more.c_str());
}

void print_first_difference(const SessionFacts& s, const Against& a) {
  if (a.first < 0) return print("Both recordings agree in all %zu calls\n", a.pairs.size());
  const auto [x, y] = a.pairs[static_cast<size_t>(a.first)];
  const auto& d = a.diffs[static_cast<size_t>(a.first)];
  if (x >= 0)
    print_call("First divergent call", s, x,
               y < 0                                      ? ": not in the other recording"
               : d.inputs == replay::Agreement::kDiffers  ? ": its inputs differ"
               : d.inputs == replay::Agreement::kNotKnown ? ""
                                                          : ": its inputs agree");
  else
    print_call("First divergent call, in the other recording only", a.other, y);
}

void report(const Args& args) {
  const replay::Session session = replay::open_session(args.dir);
  ReadOptions read{.statistics = !args.no_statistics && !args.out.empty(), .jobs = args.jobs};
  const SessionFacts facts = read_facts(session, folder_name(args.dir), read);
  if (!args.perfetto.empty()) {
    write_file(args.perfetto, perfetto_trace(facts));
    print("Wrote %s\n", args.perfetto.c_str());
  }
  if (args.out.empty()) return;
  std::optional<replay::Report> replayed;
  if (args.replay) replayed = replay::replay(args.dir, args.options);
  std::optional<Against> against;
  if (!args.against.empty()) {
    const replay::Session other = replay::open_session(args.against);
    against =
        compare(session, other, read_facts(other, folder_name(args.against), read),
                {.rtol = args.options.rtol, .atol = args.options.atol, .bitwise = args.options.bitwise}, args.jobs);
  }
  const auto data = session_data(facts, replayed ? &*replayed : nullptr, against ? &*against : nullptr);
  write_file(args.out, html_page("flashinfer report: " + facts.name, "session", data));
  print("Wrote %s: %zu calls\n", args.out.c_str(), facts.calls.size());
  print_call("First call that never returned", facts, facts.crashed);
  print_call("First error", facts, facts.failed);
  print_call("First NaN or Inf from finite inputs", facts, facts.non_finite);
  if (replayed)
    print("Replay: %lld passed, %lld failed, %lld not compared\n", static_cast<long long>(replayed->passed()),
          static_cast<long long>(replayed->failed()), static_cast<long long>(replayed->not_compared()));
  if (against) print_first_difference(facts, *against);
}

int run(Args& args) {
  FI_CHECK(!args.out.empty() || !args.perfetto.empty(), ValueError, "neither -o nor --perfetto says what to write");
  FI_CHECK(!args.out.empty() || (!args.replay && args.against.empty()), ValueError,
           "--replay and --against are shown in the page, which needs -o");
  if (!args.device.empty()) {
    args.options.device = parse_device(args.device);
    FI_CHECK(args.options.device.has_value(), ValueError, "--device ", args.device,
             " is none of cpu, cuda, cuda:N, emu");
  }
  report(args);
  return 0;
}

}  // namespace

void add_report(CLI::App& app, int& exit_code) {
  auto args = std::make_shared<Args>();
  CLI::App* cmd = app.add_subcommand("report", "Show a recording as an HTML page, or in the Perfetto UI");
  cmd->add_option("--dir", args->dir, "A recording: a session's folder or one call's")->required();
  cmd->add_option("-o,--out", args->out, "The page to write, one file that needs no network");
  cmd->add_option("--perfetto", args->perfetto, "A trace to write, for ui.perfetto.dev or chrome://tracing");
  cmd->add_flag("--replay", args->replay, "Run the calls again and show how their outputs compare");
  cmd->add_option("--against", args->against, "Another recording, shown beside this one call by call");
  cmd->add_option("--device", args->device, "For --replay: cpu, cuda, cuda:N, emu (default: where tensors were)");
  cmd->add_option("--rtol", args->options.rtol, "Relative tolerance of every float (default: the op's and dtype's)");
  cmd->add_option("--atol", args->options.atol, "Absolute tolerance of every float");
  cmd->add_flag("--bitwise", args->options.bitwise, "Equal means the same bits");
  cmd->add_flag("--no-stats", args->no_statistics, "Leave out the statistics: no tensor is read");
  cmd->add_option("--jobs", args->jobs, "Calls that are read at once (default: one a core)")
      ->check(CLI::Range(1, 1 << 20));
  cmd->callback([args, &exit_code] { exit_code = run(*args); });
}

}  // namespace flashinfer::cli
