// SPDX-License-Identifier: Apache-2.0
// The texts are those of FlashInfer's replay command, which scripts parse. Exit codes are ours: 0 all that was compared
// passed, 1 not, 2 wrong usage or nothing readable.
#include <cstdint>
#include <memory>
#include <optional>

#include "flashinfer/cli/cli.h"
#include "flashinfer/cli/progress.h"
#include "flashinfer/comm/launch.h"
#include "flashinfer/core/check.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/printable.h"
#include "flashinfer/formats/json.h"
#include "flashinfer/replay/replay.h"

namespace flashinfer::cli {
namespace {

using formats::Json;
using replay::CallResult;
using replay::Outcome;

struct Args {
  std::string dir, device;
  bool json = false;
  replay::Options options{.first = 1};
};

enum Colour { kGreen = 32, kRed = 31, kYellow = 33, kCyan = 36 };

void print_line(Colour c, const std::string& text) {
  if (is_terminal())
    print_styled(str("\x1b[", static_cast<int>(c), "m"), text, "\x1b[0m\n");
  else
    print("%s\n", text.c_str());
}

/// A message may quote names of the recording: its further lines are indented, so that none reads as a line of ours.
std::string indented(const std::string& message) { return printable_lines(message, "    "); }

void print_session_line(const CallResult& r, size_t index) {
  const std::string folder = printable(r.folder.filename().string()), message = indented(r.message),
                    head = str("[", index + 1, "] ", printable(r.function), " (", folder, "): ");
  switch (r.outcome) {
    case Outcome::kPassed:
      return print_line(kGreen, head + "✅ Passed" + (message.empty() ? "" : " (" + message + ")"));
    case Outcome::kMismatch: return print_line(kYellow, head + "⚠️  Mismatch: " + message);
    case Outcome::kNeverCompleted: return print_line(kYellow, head + "⚠️  Incomplete: " + message);
    case Outcome::kNotCompared: return print_line(kCyan, head + "➖ Not compared: " + message);
    case Outcome::kUnknownOp: return print_line(kYellow, head + "⚠️  Unknown: " + message);
    case Outcome::kError: break;
  }
  print_line(kRed, str("[", index + 1, "] ", folder, ": ❌ Error: ", message));
}

void print_single_line(const CallResult& r) {
  const std::string message = indented(r.message);
  switch (r.outcome) {
    case Outcome::kPassed:
      return print_line(kGreen, str("✅ Replay passed (", message.empty() ? "outputs matched" : message, ")"));
    case Outcome::kMismatch:
      print_line(kYellow, "⚠️  Replay finished but outputs did not match");
      return print("  %s\n", message.c_str());
    case Outcome::kNotCompared: return print_line(kCyan, "➖ Replay finished, not compared: " + message);
    case Outcome::kNeverCompleted: return print_line(kYellow, "⚠️  Incomplete: " + message);
    case Outcome::kUnknownOp: return print_line(kYellow, str("⚠️  Unknown: ", printable(r.function), ": ", message));
    case Outcome::kError: break;
  }
  print_line(kRed, "❌ " + message);
}

void print_details(const CallResult& r) {
  for (size_t i = 1; i < r.differences.size(); ++i) print("  %s\n", indented(r.differences[i].text).c_str());
  for (const std::string& n : r.notes) print("  note: %s\n", indented(n).c_str());
}

Json to_json(const CallResult& r) {
  Json differences = Json::array();
  for (const auto& d : r.differences)
    differences.push_back({{"key", d.key},
                           {"text", d.text},
                           {"mismatches", d.mismatches},
                           {"elements", d.elements},
                           {"max_abs", d.max_abs},
                           {"max_rel", d.max_rel},
                           {"index", d.index}});
  return {{"folder", r.folder.filename().string()},
          {"function_name", r.function},
          {"sequence", r.sequence},
          {"outcome", replay::name(r.outcome)},
          {"message", r.message},
          {"compared", r.compared},
          {"seconds", r.seconds},
          {"differences", differences},
          {"notes", r.notes}};
}

Json to_json(const replay::Report& report, const std::string& dir) {
  Json calls = Json::array();
  for (const CallResult& r : report.calls) calls.push_back(to_json(r));
  return {{"dir", dir},
          {"passed", report.passed()},
          {"failed", report.failed()},
          {"not_compared", report.not_compared()},
          {"exit_code", report.exit_code()},
          {"notes", report.notes},
          {"calls", calls}};
}

void on_result(const Args& args, bool single, const CallResult& r, size_t index) {
  if (args.json) return;
  single ? print_single_line(r) : print_session_line(r, args.options.first + index);
  print_details(r);
}

void print_summary(const replay::Report& report) {
  for (const std::string& n : report.notes) print("note: %s\n", indented(n).c_str());
  if (report.single) return;
  const std::string more = report.not_compared() > 0 ? str(", ", report.not_compared(), " not compared") : "";
  const std::string text = str("Summary: ", report.passed(), " passed, ", report.failed(), " failed/mismatch", more);
  print("\n");
  print_line(report.exit_code() == 0 ? kGreen : kRed, text);
}

int run(Args args) {
  if (args.dir.empty()) {
    print_error(
        "Usage: flashinfer replay [OPTIONS]\nTry 'flashinfer replay --help' for help.\n\nError: Missing option "
        "'--dir'.\n");
    return 2;
  }
  if (!fs::is_dir(args.dir)) {
    print_line(kRed, "❌ Directory not found: " + args.dir);
    return 2;
  }
  if (!args.device.empty()) {
    args.options.device = parse_device(args.device);
    FI_CHECK(args.options.device.has_value(), ValueError, "--device ", args.device,
             " is none of cpu, cuda, cuda:N, emu");
  }
  if (const comm::Launch launch = comm::launched(); launch.by == "mpirun" || launch.by == "mpiexec") {
    FI_CHECK(launch.local_size == launch.size, ValueError, launch.by, " started ", launch.size, " ranks, of which ",
             launch.local_size, " are on this machine, but a replay needs all on one");
    args.options.process = launch.rank, args.options.processes = launch.size, args.options.job = launch.job;
  }
  const bool single = fs::is_file(args.dir + "/metadata.jsonl");
  if (!args.json) print("Replaying %s from %s...\n", single ? "single dump" : "session", args.dir.c_str());
  args.options.first -= 1;  // counted from 1 where users see it
  try {
    std::optional<Progress> progress(std::in_place, "replay");
    args.options.on_result = [&](const CallResult& r, size_t i, size_t n) {
      on_result(args, single, r, i);
      progress->show(i + 1, n, r.function);
    };
    const replay::Report report = replay::replay(args.dir, args.options);
    progress.reset();
    if (args.json)
      print("%s\n", formats::dump_json(to_json(report, args.dir)).c_str());
    else
      print_summary(report);
    return report.exit_code();
  } catch (const std::exception& e) {
    const auto* ours = dynamic_cast<const Error*>(&e);
    print_line(kRed, "❌ Replay failed: " + indented(ours ? ours->message() : e.what()));
    return 2;
  }
}

}  // namespace

void add_replay(CLI::App& app, int& exit_code) {
  auto args = std::make_shared<Args>();
  replay::Options& o = args->options;
  CLI::App* cmd = app.add_subcommand("replay", "Run recorded calls again and compare their outputs");
  cmd->add_option("--dir", args->dir, "A recording: a session's folder or one call's");
  cmd->add_option("--device", args->device, "Where tensors go: cpu, cuda, cuda:N, emu (default: where they were)");
  cmd->add_option("--rtol", o.rtol, "Relative tolerance of every float output (default: the op's and dtype's)");
  cmd->add_option("--atol", o.atol, "Absolute tolerance of every float output");
  cmd->add_option("--filter", o.filter, "Replay only functions that match this glob");
  cmd->add_option("--first", o.first, "Begin with this call, numbered as the lines are (after --filter)")
      ->check(CLI::Range(size_t{1}, SIZE_MAX));
  cmd->add_option("--count", o.count, "Replay at most so many calls");
  cmd->add_option("--candidate", o.candidate,
                  "Run the candidate of this name, where an op has it (cpu, reference, ...)");
  cmd->add_option("--save", o.save, "Write what each call gives below this folder, as a recording without inputs");
  cmd->add_option("--repeat", o.repeat, "Run each call so many times; all must give the same bits")
      ->check(CLI::Range(1, 1 << 20));
  cmd->add_option("--jobs", o.jobs, "Calls that run at once")->check(CLI::Range(1, 1 << 20));
  cmd->add_flag("--bitwise", o.bitwise, "Every output must have the recorded bits");
  cmd->add_flag("--run-incomplete", o.run_incomplete, "Also run calls that never completed");
  cmd->add_flag("--json", args->json, "Print one JSON document instead of lines");
  cmd->callback([args, &exit_code] { exit_code = run(*args); });
}

}  // namespace flashinfer::cli
