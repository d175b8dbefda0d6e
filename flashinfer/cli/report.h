// SPDX-License-Identifier: Apache-2.0
// `flashinfer report`: what a recording says of each call, and how it is shown.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "flashinfer/replay/diff.h"
#include "flashinfer/replay/replay.h"
#include "flashinfer/replay/summary.h"

namespace flashinfer::cli {

struct TensorFacts {
  std::string name;  // of the argument: "input", "out (after)", "plan.indptr", "result"
  bool output = false;
  std::string dtype, device, note;
  std::vector<int64_t> shape;
  std::optional<replay::Summary> summary;
};

enum class Status : uint8_t { kCompleted, kFailed, kNeverReturned, kCaptured, kUnreadable };
/// "completed", "failed", "never returned", "captured", "unreadable".
const char* name(Status s);

struct CallFacts {
  std::string function, folder, host, rank, candidate, config, error, notes;
  Status status = Status::kUnreadable;
  int64_t process = 0, thread = 0, sequence = 0, depth = 0;
  std::string process_key;  // "<host>:<pid>"
  double start_us = 0;      // since the session's first call; processes of one host are on one clock
  double duration_us = -1;  // -1: not recorded
  std::vector<TensorFacts> tensors;
  std::vector<std::pair<std::string, std::string>> values;  // arguments and results that are no tensors, as text
  bool non_finite() const;                                  // an output has a NaN or an Inf, and no input has
};

struct SessionFacts {
  std::string name;
  std::vector<std::pair<std::string, std::string>> machine;
  std::vector<CallFacts> calls;  // in the recording's order
  std::vector<std::string> notes;
  int64_t crashed = -1;     // the first call that never returned; of nested ones the innermost
  int64_t failed = -1;      // the first that raised an error
  int64_t non_finite = -1;  // the first with NaN or Inf in an output but in no input
};

struct ReadOptions {
  bool statistics = true;
  int jobs = 0;  // files read at once; 0: one a core
};
/// Tensors are read one call at a time by each job, and equal content (by its checksum) once. A file that cannot be
/// read becomes a note of its call.
SessionFacts read_facts(const replay::Session& session, const std::string& name, const ReadOptions& options);

/// Sets crashed, failed and non_finite.
void find_first(SessionFacts& s);

struct Against {
  SessionFacts other;
  std::vector<replay::Pair> pairs;
  std::vector<replay::CallDiff> diffs;  // of each pair; of a call that only one recording has, empty
  int64_t first = -1;                   // the first pair that diverges
};
Against compare(const replay::Session& session, const replay::Session& other, SessionFacts facts_of_other,
                const replay::Tolerances& tolerances, int jobs);

/// The page's data; flashinfer/cli/report/session.js describes its form.
nlohmann::ordered_json session_data(const SessionFacts& facts, const replay::Report* replayed, const Against* against);
/// Chrome's trace-event format, which the Perfetto UI opens: a track for each thread, a slice for each call.
std::string perfetto_trace(const SessionFacts& facts);

/// A page without references to other files. `script` is "session" or "bench"; `title` is plain text.
std::string html_page(const std::string& title, const std::string& script, const nlohmann::ordered_json& data);
/// Replaces the file `path` when all of `text` is written.
void write_file(const std::string& path, const std::string& text);

}  // namespace flashinfer::cli
