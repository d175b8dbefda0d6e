// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/replay/bisect.h"

#include <algorithm>

#include "flashinfer/core/check.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/process.h"
#include "flashinfer/op/registry.h"
#include "flashinfer/record/filter.h"
#include "flashinfer/record/format.h"
#include "flashinfer/replay/compare.h"
#include "flashinfer/replay/save.h"

namespace flashinfer::replay {
namespace {

namespace stdfs = std::filesystem;

constexpr size_t kMostCalls = 64;  // of one process: a start costs about as much as 20 calls of the demo model

/// Removed with all that was saved in it.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(fs::make_temp_dir(env::text("TMPDIR"), "flashinfer-bisect-")) {}
  ~TemporaryFolder() { fs::remove_tree(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  stdfs::path path() const { return path_; }

 private:
  std::string path_;
};

/// The end of what a program printed.
std::string last_lines(const std::string& output) {
  constexpr size_t kMost = 2000;
  return output.size() <= kMost ? output : "..." + output.substr(output.size() - kMost);
}

std::string error_text(const Json& record) {
  const Json& error = object_of(record, record::kError);
  return str(string_of(error, record::kErrorType, "an error"), ": ", string_of(error, record::kErrorMessage));
}

class Bisection {
 public:
  Bisection(const stdfs::path& recording, const Side& good, const Side& bad, const BisectOptions& options)
      : recording_(recording), good_(good), bad_(bad), options_(options), session_(open_session(recording)) {
    if (!options.filter.empty())
      std::erase_if(session_.calls,
                    [&](const CallEntry& c) { return !record::glob_match(options.filter, c.function); });
    report_.calls = session_.calls.size();
  }

  BisectReport run() {
    const size_t n = session_.calls.size();
    size_t count = 1;
    for (size_t begin = 0; begin < n && !report_.first; count = std::min(2 * count, kMostCalls)) {
      const size_t wanted = std::min(begin + count, n);
      const TemporaryFolder saved;
      const Replayed good = replay(good_, saved.path() / "good", begin, wanted),
                     bad = replay(bad_, saved.path() / "bad", begin, wanted);
      const size_t end = std::min(good.end, bad.end);  // what ended a process is judged, what came after it runs again
      for (size_t i = begin; i < end && !report_.first; ++i) judge(i, good, bad);
      begin = end;
      if (options_.on_calls) options_.on_calls(begin, n);
    }
    return std::move(report_);
  }

 private:
  struct Replayed {
    Session session;
    size_t end;               // calls before it were tried
    std::optional<int> exit;  // of the process, when the last of them ended it
  };

  std::vector<std::string> command(const Side& side, const stdfs::path& to, size_t begin, size_t end) const {
    std::vector<std::string> argv = side.command;
    argv.insert(argv.end(), {"replay", "--run-incomplete", "--dir", recording_.string(), "--save", to.string(),
                             "--first", std::to_string(begin + 1), "--count", std::to_string(end - begin)});
    const auto add = [&argv](const char* option, const std::string& value) {
      if (!value.empty()) argv.insert(argv.end(), {option, value});
    };
    add("--device", options_.device);
    add("--filter", options_.filter);
    add("--candidate", side.candidate);
    return argv;
  }

  /// The saved record of a call; an empty one when there is none.
  static Call saved(const stdfs::path& to, const CallEntry& call) {
    Call c;
    c.folder = to / call.folder.filename();
    if (const auto text = fs::read_file((c.folder / record::kMetadataFile).string()))
      c.record = last_record(*text, nullptr);
    return c;
  }

  Replayed replay(const Side& side, const stdfs::path& to, size_t begin, size_t end) const {
    const std::vector<std::string> argv = command(side, to, begin, end);
    const process::Result r = process::run(argv, {.timeout_seconds = 1e9, .stop = options_.stop});
    if (r.stopped) throw RuntimeError("stopped");
    Replayed done{.session = {.root = to}, .end = end, .exit = {}};
    if (r.exit_code == 0 || r.exit_code == 1) return done;
    for (size_t i = begin; i < end && r.exit_code >= 128; ++i) {
      const std::string status = string_of(saved(to, session_.calls[i]).record, record::kExecutionStatus);
      if (status == record::kInputsSaved) {
        done.end = i + 1;
        done.exit = r.exit_code;
        return done;
      }
    }
    throw RuntimeError(str("the ", side.name, " build fails (exit code ", r.exit_code, "): ", process::shell_line(argv),
                           "\n", last_lines(r.output)));
  }

  void differs(size_t i, std::string message, std::vector<Difference> differences = {}) {
    const Call call = session_.read(i);
    CallResult r;
    r.folder = call.folder;
    r.function = call.function();
    r.sequence = static_cast<uint64_t>(integer_of(call.record, record::kSequence));
    r.outcome = Outcome::kMismatch;
    r.message = std::move(message);
    r.differences = std::move(differences);
    report_.first = std::move(r);
    report_.index = i;
  }

  void not_compared(size_t i, const std::string& why, bool one_sided) {
    ++report_.not_compared[str(session_.calls[i].function, ": ", why)];
    report_.one_sided |= one_sided;
  }

  /// What one side's process did with a call, where it has no outputs to compare.
  struct Fate {
    const Side& side;
    bool completed = false, raised = false, ended = false, skipped = false;
    std::string type, text;  // ends "the good one ..."
  };
  static Fate fate_of(const Side& side, const Replayed& r, const Call& call, bool last) {
    const std::string status = string_of(call.record, record::kExecutionStatus);
    Fate f{.side = side};
    f.type = string_of(object_of(call.record, record::kError), record::kErrorType);
    if (status == record::kCompleted) {
      f.completed = true;
      f.text = "returns";
    } else if (r.exit && last) {
      f.ended = true;
      f.text = *r.exit > 128 ? str("ends its process by signal ", *r.exit - 128) : str("ends its process");
    } else if (status == record::kFailed) {
      // A candidate that does not support the call is no difference of results.
      f.skipped = !side.candidate.empty() && f.type == name(ErrorKind::kNotImplementedError);
      f.raised = !f.skipped;
      f.text = "raises " + error_text(call.record);
    } else {
      f.skipped = true;
      f.text = status == kNotRun ? string_of(object_of(call.record, record::kError), record::kErrorMessage)
                                 : "its outputs were not saved";
    }
    return f;
  }

  void judge(size_t i, const Replayed& good, const Replayed& bad) {
    const Call g = saved(good.session.root, session_.calls[i]), b = saved(bad.session.root, session_.calls[i]);
    const Fate of_good = fate_of(good_, good, g, i + 1 == good.end), of_bad = fate_of(bad_, bad, b, i + 1 == bad.end);
    for (const Fate* f : {&of_good, &of_bad}) {
      const Fate& other = f == &of_good ? of_bad : of_good;
      if (f->skipped)
        return not_compared(i, str(f->side.name, ": ", f->text), !other.skipped && f->side.candidate.empty());
    }
    if (of_good.completed && of_bad.completed) return compare(i, good.session, g, bad.session, b);
    if (of_good.ended && of_bad.ended) return not_compared(i, "the call ends both processes", false);
    if (of_good.raised && of_bad.raised && of_good.type == of_bad.type) {
      ++report_.equal;
      return;
    }
    differs(i, str("the bad one ", of_bad.text, ", but the good one ", of_good.text));
  }

  void compare(size_t i, const Session& good, const Call& g, const Session& bad, const Call& b) {
    const Tolerances tolerances{options_.rtol, options_.atol, op::find_op(session_.calls[i].function), options_.bitwise,
                                "comes from the good one"};
    Comparison c = compare_recorded(bad, b, good, g, tolerances);
    if (!c.differences.empty()) {
      std::string message = c.differences[0].text;
      return differs(i, std::move(message), std::move(c.differences));
    }
    if (c.compared == 0) return not_compared(i, "returns nothing and writes nothing", false);
    ++report_.equal;
  }

  const stdfs::path recording_;
  const Side &good_, &bad_;
  const BisectOptions& options_;
  Session session_;
  BisectReport report_;
};

}  // namespace

BisectReport bisect(const stdfs::path& recording, const Side& good, const Side& bad, const BisectOptions& options) {
  return Bisection(recording, good, bad, options).run();
}

std::string why_no_build(const std::vector<std::string>& command, std::string* version) {
  const auto ask = [&command](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), command.begin(), command.end());
    return process::run(arguments, {.timeout_seconds = 60});
  };
  const std::string line = process::shell_line(command);
  const process::Result said = ask({"--version"});
  if (said.timed_out) return str("`", line, " --version` does not return");
  if (!said.ok())
    return str("`", line, " --version` fails (exit code ", said.exit_code, "): ", last_lines(said.output));
  *version = said.output.substr(0, said.output.find('\n'));
  const process::Result help = ask({"replay", "--help"});
  if (!help.ok() || help.output.find("--save") == std::string::npos)
    return str("`", line, "` (version ", *version,
               ") has no `replay --save`: it is no flashinfer of this kind, or one from before bisect");
  return "";
}

}  // namespace flashinfer::replay
