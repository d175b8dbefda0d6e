// SPDX-License-Identifier: Apache-2.0
// `flashinfer bisect`: the first call of a recording that two builds, or two candidates, compute differently, exported
// alone. Exit codes: replay/bisect.h; also 2 for wrong usage, 128 + the signal that ended it.
#include <csignal>
#include <memory>

#include "flashinfer/cli/cli.h"
#include "flashinfer/cli/progress.h"
#include "flashinfer/core/check.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/printable.h"
#include "flashinfer/core/process.h"
#include "flashinfer/formats/json.h"
#include "flashinfer/replay/bisect.h"

namespace flashinfer::cli {
namespace {

using formats::Json;

struct Args {
  std::string dir, good, bad, good_candidate, bad_candidate, out;
  bool json = false;
  replay::BisectOptions options;
};

volatile std::sig_atomic_t g_signal = 0;

/// While it lives, signals that ask the program to end are noted instead, so that neither the temporary folder nor a
/// build's process stays.
class NotedSignals {
 public:
  NotedSignals() {
    g_signal = 0;
    struct sigaction note{};
    note.sa_handler = [](int signal) { g_signal = signal; };
    for (size_t i = 0; i < std::size(kSignals); ++i) {
      ::sigaction(kSignals[i], &note, &before_[i]);
      if (before_[i].sa_handler == SIG_IGN) ::sigaction(kSignals[i], &before_[i], nullptr);
    }
  }
  ~NotedSignals() {
    for (size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  }
  NotedSignals(const NotedSignals&) = delete;
  NotedSignals& operator=(const NotedSignals&) = delete;

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before_[std::size(kSignals)];
};

bool is_program(const std::string& path) { return !process::find_executable(path, "").empty(); }

/// The command of a build: `build` itself, or the one in its folder, or beside its library.
std::string program_of(const std::string& option, const std::string& build) {
  const bool folder = fs::is_dir(build), library = build.find(".so") != std::string::npos;
  FI_CHECK(folder || fs::is_file(build), ValueError, option, " ", build, " is neither a folder nor a file");
  if (!folder && !library) {
    FI_CHECK(is_program("./" + build) || is_program(build), ValueError, option, " ", build,
             " is no program; name a build's folder, its flashinfer command or its library");
    return fs::canonical(build);
  }
  std::string at = fs::canonical(build);
  std::string looked;
  for (int up = 0; up < (library ? 4 : 1); ++up) {
    if (library) at = at.substr(0, at.rfind('/'));
    for (const char* name : {"/bin/flashinfer", "/flashinfer"}) {
      if (is_program(at + name)) return at + name;
      looked += (looked.empty() ? "" : ", ") + at + name;
    }
  }
  throw ValueError(str(option, " ", build, " has no flashinfer command (looked for ", looked,
                       "); `cmake --build <folder> --target flashinfer_cli` makes it"));
}

/// The command that runs this build.
std::vector<std::string> this_build() {
  for (const Section& s : host_sections())
    for (const auto& [key, value] : s.lines)
      if (key == "executable") return {value, "-m", "flashinfer"};  // Python runs the command
  return {program_of("this build:", fs::object_of(reinterpret_cast<const void*>(&this_build)))};
}

replay::Side side(const char* name, const std::string& build, const std::string& candidate) {
  replay::Side s{name, {}, candidate};
  s.command = build.empty() ? this_build() : std::vector<std::string>{program_of(str("--", name), build)};
  std::string version;
  const std::string why = replay::why_no_build(s.command, &version);
  FI_CHECK(why.empty(), ValueError, "--", name, ": ", why);
  print_error("%s: %s (version %s)%s%s\n", name, process::shell_line(s.command).c_str(), version.c_str(),
              candidate.empty() ? "" : ", candidate ", candidate.c_str());
  return s;
}

Json to_json(const replay::BisectReport& r, const std::string& out) {
  Json first;
  if (r.first)
    first = {{"index", r.index + 1},
             {"folder", r.first->folder.filename().string()},
             {"function_name", r.first->function},
             {"sequence", r.first->sequence},
             {"message", r.first->message},
             {"reproducer", out}};
  return {{"calls", r.calls},
          {"equal", r.equal},
          {"first", first},
          {"not_compared", r.not_compared},
          {"exit_code", r.exit_code()}};
}

void print_report(const replay::BisectReport& r, const std::string& out, const replay::Side& bad) {
  for (const auto& [text, calls] : r.not_compared)
    print("➖ Not compared (%d call%s): %s\n", calls, calls == 1 ? "" : "s", printable_lines(text, "    ").c_str());
  if (!r.first) {
    print("%lld of %zu calls compared, %s\n", static_cast<long long>(r.equal), r.calls,
          r.equal > 0 ? "all equal" : "so nothing is known");
    return;
  }
  const replay::CallResult& f = *r.first;
  print("First difference: [%zu] %s (%s), after %lld equal calls\n  %s\n", r.index + 1, printable(f.function).c_str(),
        printable(f.folder.filename().string()).c_str(), static_cast<long long>(r.equal),
        printable_lines(f.message, "    ").c_str());
  for (size_t i = 1; i < f.differences.size(); ++i)
    print("  %s\n", printable_lines(f.differences[i].text, "    ").c_str());
  std::vector<std::string> again = bad.command;
  again.insert(again.end(), {"replay", "--dir", out});
  if (!bad.candidate.empty()) again.insert(again.end(), {"--candidate", bad.candidate});
  print("Exported to %s: %s\n", out.c_str(), process::shell_line(again).c_str());
}

int run(const Args& a) {
  FI_CHECK(!a.good.empty() || !a.bad.empty() || a.good_candidate != a.bad_candidate, ValueError,
           "bisect compares two: name --good and --bad (builds), or --good-candidate and --bad-candidate");
  const replay::Side good = side("good", a.good, a.good_candidate), bad = side("bad", a.bad, a.bad_candidate);
  FI_CHECK(good.command != bad.command || a.good_candidate != a.bad_candidate, ValueError,
           "--good and --bad are the same build: ", process::shell_line(good.command));
  FI_CHECK(a.out.empty() || !std::filesystem::exists(a.out), ValueError, "--out ", a.out, " exists");
  replay::BisectOptions options = a.options;
  std::optional<Progress> progress(std::in_place, "bisect");
  options.on_calls = [&](size_t done, size_t total) { progress->show(done, total); };
  options.stop = [] { return g_signal != 0; };
  replay::BisectReport r;
  try {
    const NotedSignals noted;
    r = replay::bisect(a.dir, good, bad, options);
  } catch (const Error&) {
    if (g_signal == 0) throw;
    progress.reset();
    print_error("flashinfer bisect: stopped by signal %d\n", static_cast<int>(g_signal));
    return 128 + g_signal;
  }
  progress.reset();
  std::string out = a.out;
  if (r.first) {
    for (int i = 1; out.empty() || (a.out.empty() && std::filesystem::exists(out)); ++i)
      out = str("bisect-", r.first->folder.filename().string(), i == 1 ? "" : "-" + std::to_string(i));
    for (const std::string& p : replay::export_session(r.first->folder, out)) print_error("❌ %s\n", p.c_str());
  }
  if (a.json)
    print("%s\n", formats::dump_json(to_json(r, out)).c_str());
  else
    print_report(r, out, bad);
  return r.exit_code();
}

}  // namespace

void add_bisect(CLI::App& app, int& exit_code) {
  auto a = std::make_shared<Args>();
  replay::BisectOptions& o = a->options;
  CLI::App* c = app.add_subcommand(
      "bisect", "Find the first recorded call that two builds, or two candidates, compute differently, and export it");
  c->add_option("--dir", a->dir, "A recording: a session's folder or one call's")->required();
  c->add_option("--good", a->good, "A build: its folder, flashinfer command or library (default: this build)");
  c->add_option("--bad", a->bad, "The build to compare with it (default: this build)");
  c->add_option("--good-candidate", a->good_candidate, "Candidate of the good side, where an op has it");
  c->add_option("--bad-candidate", a->bad_candidate, "Candidate of the bad side, where an op has it");
  c->add_option("--device", o.device, "Where tensors go: cpu, cuda, cuda:N, emu (default: where they were)");
  c->add_option("--rtol", o.rtol, "Relative tolerance of every float output (default: the op's and dtype's)");
  c->add_option("--atol", o.atol, "Absolute tolerance of every float output");
  c->add_flag("--bitwise", o.bitwise, "Every output must have the same bits");
  c->add_option("--filter", o.filter, "Only functions that match this glob");
  c->add_option("--out", a->out, "The folder to export the call to (default: bisect-<the call's folder>)");
  c->add_flag("--json", a->json, "Print one JSON document instead of lines");
  c->callback([a, &exit_code] { exit_code = run(*a); });
}

}  // namespace flashinfer::cli
