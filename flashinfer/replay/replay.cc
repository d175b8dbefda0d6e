// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/replay/replay.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <set>
#include <vector>

#include "flashinfer/core/check.h"
#include "flashinfer/core/context.h"
#include "flashinfer/core/jobs.h"
#include "flashinfer/op/registry.h"
#include "flashinfer/record/filter.h"
#include "flashinfer/replay/ranks.h"
#include "flashinfer/replay/run_call.h"

namespace flashinfer::replay {
namespace {

bool is_collective(const Call& call) {
  const op::Op* op = op::find_op(call.function());
  return op && op->is_collective;
}

/// Runs calls, several at a time, and reports them in order.
class Runner {
 public:
  Runner(const Session& session, RankCalls& ranks, const Options& options, Report* report)
      : session_(session), ranks_(ranks), options_(options), report_(report) {
    report_->calls.resize(session.calls.size());
    done_.resize(session.calls.size());
  }

  void run() {
    // Several processes make their collective calls in the same order.
    const int wanted = options_.processes > 1 ? 1 : options_.jobs;
    const int jobs = std::clamp(wanted, 1, static_cast<int>(std::max<size_t>(1, session_.calls.size())));
    const auto n = static_cast<int64_t>(session_.calls.size());
    const auto one = [this](int64_t i) { run_one(static_cast<size_t>(i)); };
    if (jobs == 1) {  // in the caller's context; an error of on_result ends it at once
      for (int64_t i = 0; i < n; ++i) one(i);
      return;
    }
    const int threads = std::max(1, default_executor().threads / jobs);
    for_each_job(n, jobs, one, [threads](const std::function<void()>& loop) {
      const auto executor = make_thread_pool(threads);
      Context context;
      context.executor = *executor;
      const ContextScope scope(context);
      loop();
    });
  }

 private:
  void run_one(size_t i) {
    const Call call = session_.read(i);
    CallResult r = is_collective(call) ? ranks_.run(call) : run_call(session_, call, options_);
    std::lock_guard lock(mutex_);
    report_->calls[i] = std::move(r);
    done_[i] = true;
    for (; reported_ < done_.size() && done_[reported_]; ++reported_)
      if (options_.on_result) options_.on_result(report_->calls[reported_], reported_, done_.size());
  }

  const Session& session_;
  RankCalls& ranks_;
  const Options& options_;
  Report* report_;
  std::mutex mutex_;
  std::vector<char> done_;
  size_t reported_ = 0;
};

/// Drops the calls that other processes replay.
void keep_own(Session& session, const Options& options) {
  std::vector<CallEntry> own;
  for (size_t i = 0; i < session.calls.size(); ++i)
    if (runs_here(session.read(i), options)) own.push_back(session.calls[i]);
  session.calls = std::move(own);
}

bool has_candidate(const op::Op& op, const std::string& name) {
  return std::ranges::any_of(op.candidates, [&](const op::Candidate& c) { return name == c.name; });
}

void check_candidate(const Session& session, const std::string& name) {
  std::set<std::string> known;
  for (const CallEntry& call : session.calls)
    if (const op::Op* op = op::find_op(call.function)) {
      if (has_candidate(*op, name)) return;
      for (const op::Candidate& c : op->candidates) known.insert(c.name);
    }
  std::string names;
  for (const std::string& n : known) names += (names.empty() ? "" : ", ") + n;
  throw ValueError(str("no recorded op has a candidate named ", name, "; there are ", names.empty() ? "none" : names));
}

}  // namespace

const char* name(Outcome o) {
  switch (o) {
    case Outcome::kPassed: return "passed";
    case Outcome::kMismatch: return "mismatch";
    case Outcome::kError: return "error";
    case Outcome::kNeverCompleted: return "never_completed";
    case Outcome::kNotCompared: return "not_compared";
    case Outcome::kUnknownOp: return "unknown_op";
  }
  return "error";
}

int64_t Report::count(Outcome o) const { return std::ranges::count(calls, o, &CallResult::outcome); }

Report replay(const std::filesystem::path& folder, const Options& options) {
  Session session = open_session(folder);
  Report report;
  report.single = session.single;
  report.notes = session.notes;
  RankCalls ranks(session, options);  // all of them, whatever is selected below
  if (!options.filter.empty())
    std::erase_if(session.calls, [&](const CallEntry& c) { return !record::glob_match(options.filter, c.function); });
  if (options.processes > 1 && !session.single) keep_own(session, options);
  if (!options.candidate.empty()) check_candidate(session, options.candidate);
  const auto begin = session.calls.begin();
  const size_t first = std::min(options.first, session.calls.size()),
               count = std::min(options.count, session.calls.size() - first);
  session.calls.erase(begin + static_cast<std::ptrdiff_t>(first + count), session.calls.end());
  session.calls.erase(begin, begin + static_cast<std::ptrdiff_t>(first));
  Runner(session, ranks, options, &report).run();
  return report;
}

}  // namespace flashinfer::replay
