// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "flashinfer/cli/report.h"
#include "flashinfer/core/printable.h"

namespace flashinfer::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string shape_text(const TensorFacts& t) {
  std::string s = t.dtype + " [";
  for (size_t i = 0; i < t.shape.size(); ++i) s += (i ? ", " : "") + std::to_string(t.shape[i]);
  return s + "] " + t.device;
}

Json args_of(const CallFacts& c) {
  Json args = {{"status", name(c.status)}, {"sequence", c.sequence}, {"folder", printable(c.folder)}};
  if (!c.candidate.empty()) args["candidate"] = printable(c.candidate);
  if (!c.config.empty()) args["config"] = printable(c.config);
  if (!c.error.empty()) args["error"] = printable(c.error);
  for (const TensorFacts& t : c.tensors) args[printable((t.output ? "-> " : "") + t.name)] = printable(shape_text(t));
  for (const auto& [key, value] : c.values) args[printable(key)] = printable(value);
  return args;
}

/// Process numbers of the trace: those recorded, or others where hosts share one.
std::map<std::string, int64_t> process_numbers(const SessionFacts& facts) {
  std::map<std::string, int64_t> numbers;
  std::map<int64_t, std::string> taken;
  for (const CallFacts& c : facts.calls) {
    if (numbers.contains(c.process_key)) continue;
    int64_t n = c.process;
    while (taken.contains(n)) n = (n & 0x7fffffff) + 1;
    taken[n] = c.process_key;
    numbers[c.process_key] = n;
  }
  return numbers;
}

Json named(const char* what, int64_t process, int64_t thread, const std::string& text) {
  return {{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", {{"name", printable(text)}}}};
}

}  // namespace

std::string perfetto_trace(const SessionFacts& facts) {
  std::vector<size_t> order(facts.calls.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return facts.calls[i].start_us; });
  const auto numbers = process_numbers(facts);
  std::string out = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
  bool first = true;
  const auto add = [&](const Json& event) {
    if (!std::exchange(first, false)) out += ",\n";
    out += event.dump(-1, ' ', true, Json::error_handler_t::replace);
  };
  std::map<std::pair<int64_t, int64_t>, bool> threads;
  for (const CallFacts& c : facts.calls) {
    const int64_t process = numbers.at(c.process_key);
    if (!std::exchange(threads[{process, -1}], true))
      add(named("process_name", process, 0,
                c.host + " process " + std::to_string(c.process) + (c.rank.empty() ? "" : " rank " + c.rank)));
    if (!std::exchange(threads[{process, c.thread}], true))
      add(named("thread_name", process, c.thread, "thread " + std::to_string(c.thread)));
  }
  for (const size_t i : order) {
    const CallFacts& c = facts.calls[i];
    Json event = {{"name", printable(c.function)}, {"cat", name(c.status)}};
    event["ph"] =
        c.status == Status::kNeverReturned ? "B" : "X";  // a slice without an end: shown up to the end of the trace
    event["ts"] = std::round(c.start_us * 1e3) / 1e3;
    if (c.status != Status::kNeverReturned) event["dur"] = std::max(0.0, c.duration_us);
    event["pid"] = numbers.at(c.process_key);
    event["tid"] = c.thread;
    event["args"] = args_of(c);
    add(event);
  }
  return out + "\n]}\n";
}

}  // namespace flashinfer::cli
