// SPDX-License-Identifier: Apache-2.0
// From a recording to the facts of a report.
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <map>
#include <mutex>

#include "flashinfer/cli/report.h"
#include "flashinfer/core/check.h"
#include "flashinfer/core/jobs.h"
#include "flashinfer/record/format.h"

namespace flashinfer::cli {
namespace {

using formats::Json;
using replay::integer_of;
using replay::object_of;
using replay::string_of;

constexpr size_t kLongestText = 200;  // bytes of a value or a configuration; a page of many calls stays small

std::string shortened(std::string text) {
  if (text.size() > kLongestText) text = text.substr(0, kLongestText) + " ...";
  return text;
}

double number_of(const Json& j, const char* key, double otherwise) {
  const auto it = j.is_object() ? j.find(key) : j.end();
  return it != j.end() && it->is_number() ? it->get<double>() : otherwise;
}

bool is_output(std::string_view key) {
  return key.starts_with(record::kResult) || key.starts_with(record::kAfterPrefix);
}

/// The argument's name for a key of the recording: "arg_0__2" is element 2 of the first one.
std::string argument_label(const std::string& key, const Json& record) {
  if (key.starts_with(record::kPlanPrefix)) return "plan." + key.substr(std::string_view(record::kPlanPrefix).size());
  if (key.starts_with(record::kKwargPrefix)) return key.substr(std::string_view(record::kKwargPrefix).size());
  if (!key.starts_with(record::kArgPrefix)) return key;
  const size_t begin = std::string_view(record::kArgPrefix).size(), end = std::min(key.find('_', begin), key.size());
  const auto names = record.find(record::kArgNames);
  const auto i = static_cast<size_t>(std::atoll(key.c_str() + begin));
  if (names == record.end() || !names->is_array() || i >= names->size() || !(*names)[i].is_string()) return key;
  return (*names)[i].get<std::string>() + key.substr(end);
}
std::string label(std::string key, const Json& record) {
  const bool after = key.starts_with(record::kAfterPrefix);
  if (after) key = key.substr(std::string_view(record::kAfterPrefix).size());
  return argument_label(key, record) + (after ? " (after)" : "");
}

std::string text_of(const Json& value) {
  if (value.is_string()) return shortened(value.get<std::string>());
  for (const char* key : {record::kRepr, record::kValue, "name"})
    if (value.is_object() && value.contains(key) && value[key].is_string()) return shortened(value[key]);
  return shortened(formats::dump_json(value));
}

Status status_of(const replay::Call& c) {
  const std::string s = string_of(c.record, record::kExecutionStatus);
  if (!c.error.empty()) return Status::kUnreadable;
  if (s == record::kCompleted) return Status::kCompleted;
  if (s == record::kFailed) return Status::kFailed;
  return s == record::kPendingFlush ? Status::kCaptured : Status::kNeverReturned;
}

constexpr int64_t kLatest = int64_t{1} << 61;  // ns, the year 2043: sums and differences of two times stay in 64 bits

/// -1: not recorded, or no time.
int64_t nanoseconds(const Json& record, const char* key) {
  const int64_t ns = integer_of(record, key, -1);
  return ns < 0 || ns > kLatest ? -1 : ns;
}

/// Nanoseconds since the epoch: the clock's time, else the folder's time stamp (local, milliseconds).
int64_t wall_ns(const Json& record) {
  if (const int64_t ns = nanoseconds(record, record::kWallTimeNs); ns >= 0) return ns;
  std::tm t{};
  const std::string stamp = string_of(record, record::kTimestamp);  // 20261121_030143_225
  const char* rest = strptime(stamp.c_str(), "%Y%m%d_%H%M%S", &t);
  if (rest == nullptr) return 0;
  t.tm_isdst = -1;
  const int64_t seconds = std::mktime(&t);
  if (seconds < 0 || seconds > kLatest / 1000000000) return 0;
  return (seconds * 1000 + (*rest == '_' ? std::atoi(rest + 1) : 0)) * 1000000;
}

/// Summaries by element type and checksum: weights are the same in every call.
class Summaries {
 public:
  const std::optional<replay::Summary>* find(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto it = known_.find(key);
    return it == known_.end() ? nullptr : &it->second;  // nodes of a map stay where they are
  }
  void add(const std::string& key, const std::optional<replay::Summary>& s) {
    const std::lock_guard lock(mutex_);
    known_.emplace(key, s);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::optional<replay::Summary>> known_;
};

class Reader {
 public:
  Reader(const replay::Session& session, const replay::Call& call, CallFacts* facts)
      : session_(session), call_(call), record_(call.record), f_(*facts) {}

  void metadata() {
    f_.function = call_.function();
    f_.folder = call_.folder.filename().string();
    f_.status = status_of(call_);
    f_.host = string_of(record_, record::kHost);
    f_.rank = string_of(record_, record::kRank);
    f_.candidate = string_of(record_, record::kBackend);
    const auto config = record_.find(record::kConfig);
    if (config != record_.end() && !config->is_null()) f_.config = text_of(*config);
    f_.process = integer_of(record_, record::kProcessId);
    f_.thread = integer_of(record_, record::kThreadId, f_.process);
    f_.sequence = integer_of(record_, record::kSequence);
    f_.depth = integer_of(record_, record::kDepth);
    f_.process_key = f_.host + ":" + std::to_string(f_.process);
    f_.duration_us = number_of(record_, record::kDurationUs, -1);
    const Json& error = object_of(record_, record::kError);
    if (!error.empty())
      f_.error = string_of(error, record::kErrorType) + ": " + string_of(error, record::kErrorMessage);
    if (!call_.error.empty()) f_.error = call_.error;
    for (const std::string& n : call_.notes) note(n);
    for (const char* side : {record::kInputMetadata, record::kOutputMetadata})
      for (const auto& [key, value] : object_of(record_, side).items())
        if (!value.is_null()) f_.values.emplace_back(label(key, record_), text_of(value));
    for (const auto& [key, details] : object_of(record_, record::kTensorDetails).items()) tensor(key, details);
  }

  void statistics(Summaries& known) {
    for (const char* stem : {record::kInputsStem, record::kOutputsStem}) {
      const bool output = stem == record::kOutputsStem;
      if (complete(output, known)) continue;
      try {
        load(stem, output, known);
      } catch (const Error& e) {
        note(e.message());
      } catch (const std::exception& e) {
        note(e.what());
      }
    }
  }

 private:
  void note(const std::string& text) { f_.notes += (f_.notes.empty() ? "" : "\n") + text; }

  void tensor(const std::string& key, const Json& details) {
    TensorFacts t;
    t.name = label(key, record_);
    t.output = is_output(key);
    t.dtype = string_of(details, record::kDType);
    if (t.dtype.starts_with("torch.")) t.dtype = t.dtype.substr(6);
    t.device = string_of(details, record::kDevice);
    const auto shape = details.is_object() ? details.find(record::kShape) : details.end();
    if (shape != details.end() && shape->is_array())
      for (const Json& n : *shape) t.shape.push_back(n.is_number_integer() ? n.get<int64_t>() : -1);
    const std::string stored = string_of(details, record::kStored), same = string_of(details, record::kSameAs);
    if (stored == record::kStoredNothing) t.note = "workspace, not stored";
    if (stored == record::kStoredPages) t.note = "statistics of the used pages";
    if (!same.empty()) t.note = "same memory as " + label(same, record_);
    const bool meaningless = !t.output && string_of(details, record::kRole) == "out";
    if (meaningless) t.note = "only written by the call";
    const std::string sum = string_of(details, record::kChecksum);
    keys_.push_back({key, sum.empty() ? "" : t.dtype + " " + sum,
                     meaningless || stored == record::kStoredNothing || !same.empty()});
    f_.tensors.push_back(std::move(t));
  }

  /// Whether all of one side's tensors are known without reading their file.
  bool complete(bool output, Summaries& known) {
    bool all = true;
    for (size_t i = 0; i < keys_.size(); ++i) {
      if (f_.tensors[i].output != output || keys_[i].absent) continue;
      const auto* s = keys_[i].content.empty() ? nullptr : known.find(keys_[i].content);
      if (s)
        f_.tensors[i].summary = *s;
      else
        all = false;
    }
    return all;
  }

  void load(const char* stem, bool output, Summaries& known) {
    const auto stored = replay::load_tensors(session_, call_.folder, stem, object_of(record_, record::kTensorDetails));
    for (size_t i = 0; i < keys_.size(); ++i) {
      if (f_.tensors[i].output != output || keys_[i].absent || f_.tensors[i].summary) continue;
      const auto t = std::ranges::find(stored, keys_[i].key, &formats::StoredTensor::key);
      if (t == stored.end()) continue;
      f_.tensors[i].summary = replay::summarize(t->tensor.view());
      if (!keys_[i].content.empty()) known.add(keys_[i].content, f_.tensors[i].summary);
    }
  }

  struct Key {
    std::string key, content;  // of the recording; dtype and checksum
    bool absent;               // nothing of it to read, or no meaning before the call
  };
  const replay::Session& session_;
  const replay::Call& call_;
  const Json& record_;
  CallFacts& f_;
  std::vector<Key> keys_;
};

/// Both clocks at a call's begin, in nanoseconds.
struct Times {
  int64_t wall = 0, start = -1;
};

/// Start times of a process come from the monotonic clock, and the process's place from the wall clock of its first
/// call.
void place_in_time(const std::vector<Times>& times, std::vector<CallFacts>& calls) {
  std::map<std::string, int64_t> offset;
  std::vector<int64_t> at(calls.size());  // a double of today's microseconds has steps of 0.125
  int64_t first = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < calls.size(); ++i) {
    const auto [wall, start] = times[i];
    at[i] = start < 0 ? wall : offset.emplace(calls[i].process_key, wall - start).first->second + start;
    if (wall > 0) first = std::min(first, at[i]);
  }
  for (size_t i = 0; i < calls.size(); ++i)
    calls[i].start_us = at[i] > first ? static_cast<double>(at[i] - first) * 1e-3 : 0;
}

/// What records say of the machine, each line once, in the order of the calls.
class Machine {
 public:
  void add(int64_t call, const Json& record) {
    const std::lock_guard lock(mutex_);
    int64_t at = call * kMost;
    const auto line = [&](const std::string& title, const std::string& value) {
      if (value.empty()) return;
      const auto [it, fresh] = first_.emplace(std::pair(title, value), at);
      if (!fresh) it->second = std::min(it->second, at);
      ++at;
    };
    line("host", string_of(record, record::kHost));
    line("device", string_of(record, record::kDeviceModel));
    line("driver", string_of(record, record::kDriver));
    line("commit", string_of(record, record::kGitCommit));
    for (const auto& [key, value] : object_of(record, record::kVersions).items()) line(key, text_of(value));
  }
  std::vector<std::pair<std::string, std::string>> lines() const {
    std::vector<std::pair<int64_t, std::pair<std::string, std::string>>> order;
    for (const auto& [line, at] : first_) order.emplace_back(at, line);
    std::ranges::sort(order);
    std::vector<std::pair<std::string, std::string>> out;
    for (auto& [at, line] : order)
      if (std::ssize(out) < kMost) out.push_back(std::move(line));
    return out;
  }

 private:
  static constexpr int64_t kMost = 64;
  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, int64_t> first_;
};

}  // namespace

SessionFacts read_facts(const replay::Session& session, const std::string& name, const ReadOptions& options) {
  SessionFacts s;
  s.name = name;
  s.notes = session.notes;
  s.calls.resize(session.calls.size());
  Summaries known;
  Machine machine;
  std::vector<Times> times(session.calls.size());
  for_each_job(static_cast<int64_t>(session.calls.size()), options.jobs, [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    const replay::Call call = session.read(at);
    Reader reader(session, call, &s.calls[at]);
    reader.metadata();
    if (options.statistics) reader.statistics(known);
    times[at] = {wall_ns(call.record), nanoseconds(call.record, record::kStartNs)};
    machine.add(i, call.record);
  });
  s.machine = machine.lines();
  place_in_time(times, s.calls);
  find_first(s);
  return s;
}

}  // namespace flashinfer::cli
