// SPDX-License-Identifier: Apache-2.0
// The texts are those of FlashInfer's replay command, which scripts parse. Exit codes are ours: 0 all that was compared
// passed, 1 not, 2 wrong usage or nothing readable.
#include <chrono>
#include <memory>
#include <thread>

#include "flashinfer/cli/cli.h"
#include "flashinfer/core/check.h"
#include "flashinfer/core/fs.h"
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
  replay::Options options;
};

enum Colour { kGreen = 32, kRed = 31, kYellow = 33, kCyan = 36 };

std::string colour(Colour c, const std::string& text) {
  return is_terminal() ? str("\x1b[", static_cast<int>(c), "m", text, "\x1b[0m") : text;
}

std::string session_line(const CallResult& r, size_t index) {
  const std::string folder = r.folder.filename().string(),
                    head = str("[", index + 1, "] ", r.function, " (", folder, "): ");
  const std::string why = r.message.empty() ? "" : " (" + r.message + ")";
  switch (r.outcome) {
    case Outcome::kPassed: return colour(kGreen, head + "✅ Passed" + why);
    case Outcome::kMismatch: return colour(kYellow, head + "⚠️  Mismatch: " + r.message);
    case Outcome::kNeverCompleted: return colour(kYellow, head + "⚠️  Incomplete: " + r.message);
    case Outcome::kNotCompared: return colour(kCyan, head + "➖ Not compared: " + r.message);
    case Outcome::kUnknownOp: return colour(kYellow, head + "⚠️  Unknown: " + r.message);
    case Outcome::kError: break;
  }
  return colour(kRed, str("[", index + 1, "] ", folder, ": ❌ Error: ", r.message));
}

std::string single_line(const CallResult& r) {
  switch (r.outcome) {
    case Outcome::kPassed:
      return colour(kGreen, str("✅ Replay passed (", r.message.empty() ? "outputs matched" : r.message, ")"));
    case Outcome::kMismatch:
      return colour(kYellow, "⚠️  Replay finished but outputs did not match") + "\n  " + r.message;
    case Outcome::kNotCompared: return colour(kCyan, "➖ Replay finished, not compared: " + r.message);
    case Outcome::kNeverCompleted: return colour(kYellow, "⚠️  Incomplete: " + r.message);
    case Outcome::kUnknownOp: return colour(kYellow, str("⚠️  Unknown: ", r.function, ": ", r.message));
    case Outcome::kError: break;
  }
  return colour(kRed, "❌ " + r.message);
}

void print_details(const CallResult& r) {
  for (size_t i = 1; i < r.differences.size(); ++i) print("  %s\n", r.differences[i].text.c_str());
  for (const std::string& n : r.notes) print("  note: %s\n", n.c_str());
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

/// One line on stderr every second while no results are printed.
void show_progress(size_t done, size_t total) {
  static auto last = std::chrono::steady_clock::now();
  const auto now = std::chrono::steady_clock::now();
  if (now - last < std::chrono::seconds(1)) return;
  last = now;
  print_error("replayed %zu of %zu\n", done, total);
}

void on_result(const Args& args, bool single, const CallResult& r, size_t index, size_t total) {
  if (args.json) return show_progress(index + 1, total);
  print("%s\n", (single ? single_line(r) : session_line(r, index)).c_str());
  print_details(r);
}

void print_summary(const replay::Report& report) {
  for (const std::string& n : report.notes) print("note: %s\n", n.c_str());
  if (report.single) return;
  const std::string more = report.not_compared() > 0 ? str(", ", report.not_compared(), " not compared") : "";
  const std::string text = str("Summary: ", report.passed(), " passed, ", report.failed(), " failed/mismatch", more);
  print("\n%s\n", colour(report.exit_code() == 0 ? kGreen : kRed, text).c_str());
}

int run(Args args) {
  if (args.dir.empty()) {
    print_error(
        "Usage: flashinfer replay [OPTIONS]\nTry 'flashinfer replay --help' for help.\n\nError: Missing option "
        "'--dir'.\n");
    return 2;
  }
  if (!fs::is_dir(args.dir)) {
    print("%s\n", colour(kRed, "❌ Directory not found: " + args.dir).c_str());
    return 2;
  }
  if (!args.device.empty()) {
    args.options.device = parse_device(args.device);
    FI_CHECK(args.options.device.has_value(), ValueError, "--device ", args.device,
             " is none of cpu, cuda, cuda:N, emu");
  }
  const bool single = fs::is_file(args.dir + "/metadata.jsonl");
  if (!args.json) print("Replaying %s from %s...\n", single ? "single dump" : "session", args.dir.c_str());
  args.options.on_result = [&](const CallResult& r, size_t i, size_t n) { on_result(args, single, r, i, n); };
  try {
    const replay::Report report = replay::replay(args.dir, args.options);
    if (args.json)
      print("%s\n", formats::dump_json(to_json(report, args.dir)).c_str());
    else
      print_summary(report);
    return report.exit_code();
  } catch (const std::exception& e) {
    const auto* ours = dynamic_cast<const Error*>(&e);
    print("%s\n", colour(kRed, str("❌ Replay failed: ", ours ? ours->message() : e.what())).c_str());
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
  cmd->add_option("--repeat", o.repeat, "Run each call so many times; all must give the same bits")
      ->check(CLI::Range(1, 1 << 20));
  cmd->add_option("--jobs", o.jobs, "Calls that run at once")->check(CLI::Range(1, 1 << 20));
  cmd->add_flag("--bitwise", o.bitwise, "Every output must have the recorded bits");
  cmd->add_flag("--run-incomplete", o.run_incomplete, "Also run calls that never completed");
  cmd->add_flag("--json", args->json, "Print one JSON document instead of lines");
  cmd->callback([args, &exit_code] { exit_code = run(*args); });
}

}  // namespace flashinfer::cli
