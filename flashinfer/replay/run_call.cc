// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/replay/run_call.h"

#include <algorithm>
#include <chrono>

#include "flashinfer/core/check.h"
#include "flashinfer/jit/jit.h"
#include "flashinfer/op/registry.h"
#include "flashinfer/op/select.h"
#include "flashinfer/record/format.h"
#include "flashinfer/replay/compare.h"

namespace flashinfer::replay {
namespace {

/// Hash of the return value and of all arguments that may have been written.
uint64_t fingerprint(const op::Value& result, const Inputs& inputs, const Json& details) {
  uint64_t h = 0;
  const auto add = [&](const TensorView& v) {
    h = h * 0x9e3779b97f4a7c15u + formats::checksum(TensorView(v.data(), v.dtype(), v.shape(), v.strides()));
  };
  const auto add_all = [&](const auto& self, const op::Value& v) -> void {
    if (v.tensor()) add(*v.tensor());
    if (const auto* t = v.as<op::TupleValue>())
      for (const op::Value& x : t->items) self(self, x);
  };
  add_all(add_all, result);
  for (const auto& [key, tensor] : inputs.tensors)  // except workspaces, whose content is arbitrary
    if (string_of(object_of(details, key.c_str()), record::kStored) != record::kStoredNothing) add(tensor.view());
  return h;
}

}  // namespace

CallRun::CallRun(const Session& session, const Call& call, const Options& options)
    : session_(session), call_(call), options_(options) {
  r_.folder = call.folder;
  r_.function = call.function();
  r_.sequence = static_cast<uint64_t>(integer_of(call.record, record::kSequence));
  r_.notes = call.notes;
  status_ = string_of(call.record, record::kExecutionStatus);
}

bool CallRun::is_incomplete() const { return status_ != record::kCompleted && status_ != record::kFailed; }
int CallRun::repetitions() const { return std::max(1, options_.repeat); }

bool CallRun::begin() {
  const auto no = [this](Outcome outcome, std::string message) {
    end(outcome, std::move(message));
    return false;
  };
  if (!call_.error.empty()) return no(Outcome::kError, call_.error);
  op_ = op::find_op(r_.function);
  if (!op_)
    return no(Outcome::kUnknownOp, str("no op of this name (recorded from module ",
                                       string_of(call_.record, record::kModule, "<unknown>"), ")"));
  const int64_t version = integer_of(call_.record, record::kOpVersion, op_->version);
  if (version != op_->version)
    return no(Outcome::kError, str("recorded with version ", version, " of ", op_->name,
                                   ", but this library has version ", op_->version));
  if (status_ == record::kPendingFlush)
    return no(Outcome::kNeverCompleted,
              "captured into a CUDA graph, and never flushed after a replay (flush_graph_dumps)");
  if (is_incomplete() && !options_.run_incomplete) return no(Outcome::kNeverCompleted, "inputs saved, never completed");
  return true;
}

void CallRun::end(Outcome outcome, std::string message) {
  r_.outcome = outcome;
  r_.message = std::move(message);
}

CallResult CallRun::finish() {
  if (!options_.save.empty() && !(saver_ && saver_->ran()))
    Saver(options_.save, call_).not_run(replay::name(r_.outcome), r_.message);
  return std::move(r_);
}

bool CallRun::once(int repetition, const Setting& setting) {
  Inputs inputs(session_, call_, *op_, options_.device, setting.shared ? &*setting.shared : nullptr);
  for (const auto& [name, value] : setting.replaced) inputs.replace(call_, name, value);
  if (setting.ready) setting.ready();
  op::Value result;
  std::optional<Failure> failure;
  const auto start = std::chrono::steady_clock::now();
  const jit::ForeignSource from_a_file;
  const auto state = inputs.self ? inputs.self->state : nullptr;
  if (!options_.save.empty() && repetition == 0) saver_.emplace(options_.save, call_).started();
  try {
    const auto force = forced();
    result = op::call_values(*op_, inputs.passed);
  } catch (const Error& e) {
    failure = {std::string(flashinfer::name(e.kind())), e.message()};
  } catch (const std::exception& e) {
    failure = {"RuntimeError", e.what()};
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  r_.seconds = repetition == 0 ? seconds : std::min(r_.seconds, seconds);
  if (saver_ && repetition == 0)
    failure ? saver_->failed(failure->kind, failure->message) : saver_->completed(result, inputs, state);
  if (failure || status_ == record::kFailed) {
    judge_failure(failure);
    return false;
  }
  const bool more = judge(result, inputs, repetition);
  if (more && repetition + 1 == repetitions() && is_incomplete())
    end(Outcome::kNeverCompleted, "inputs saved, never completed; it runs to its end now");
  return more;
}

/// Of ops that have the candidate: others (a plan, which only the host makes) choose for themselves.
std::unique_ptr<op::ForceCandidate> CallRun::forced() const {
  const auto named = [this](const op::Candidate& c) { return options_.candidate == c.name; };
  if (options_.candidate.empty() || !std::ranges::any_of(op_->candidates, named)) return nullptr;
  return std::make_unique<op::ForceCandidate>(options_.candidate);
}

/// A call that raised, now or when it was recorded.
void CallRun::judge_failure(const std::optional<Failure>& now) {
  const Json& recorded = object_of(call_.record, record::kError);
  const std::string kind = string_of(recorded, record::kErrorType, "an error");
  if (status_ != record::kFailed) {
    end(Outcome::kError, str("Execution failed: ", now->kind, ": ", now->message));
  } else if (!now) {
    end(Outcome::kMismatch, str("failed with ", kind, " (", string_of(recorded, record::kErrorMessage),
                                ") when recorded, but succeeds now"));
  } else if (now->kind == kind) {
    end(Outcome::kPassed, str("fails as recorded: ", kind));
  } else {
    end(Outcome::kMismatch, str("failed with ", kind, " when recorded, but with ", now->kind, " now: ", now->message));
  }
}
/// Inputs that a captured call had overwritten when they were saved: the recorded run started from other values.
std::string CallRun::overwritten() const {
  std::string keys;
  const auto list = call_.record.find(record::kOverwritten);
  if (list == call_.record.end() || !list->is_array()) return keys;
  for (const Json& key : *list)
    keys += (keys.empty() ? "" : ", ") + (key.is_string() ? key.get<std::string>() : key.dump());
  return keys;
}

bool CallRun::judge(const op::Value& result, const Inputs& inputs, int repetition) {
  if (const std::string keys = overwritten(); !keys.empty()) {
    end(Outcome::kNotCompared, str("recorded after a graph's replay, which had overwritten ", keys));
    return true;
  }
  const Json& details = object_of(call_.record, record::kTensorDetails);
  const auto stored = load_tensors(session_, call_.folder, record::kOutputsStem, details);
  require_outputs(stored);
  const Tolerances tolerances{options_.rtol, options_.atol, op_, options_.bitwise};
  Comparison c =
      compare_outputs(result, inputs.tensors, inputs.self.get(), stored, expected_values(), details, tolerances);
  r_.compared = c.compared;
  r_.max_abs = c.largest.abs, r_.max_rel = c.largest.rel;
  const uint64_t bits = options_.repeat > 1 ? fingerprint(result, inputs, details) : 0;
  if (repetition == 0) {
    first_bits_ = bits;
    r_.notes.insert(r_.notes.end(), c.notes.begin(), c.notes.end());
  } else if (bits != first_bits_ && c.differences.empty()) {
    end(Outcome::kMismatch, str("repetition ", repetition + 1, " gives other bits than the first"));
    return false;
  }
  if (!c.differences.empty()) {
    end(Outcome::kMismatch, c.differences[0].text);
    r_.differences = std::move(c.differences);
    return false;
  }
  if (c.compared > 0)
    end(Outcome::kPassed, "");
  else
    end(Outcome::kNotCompared, nothing_to_compare());
  return true;
}

std::string CallRun::nothing_to_compare() const {
  const std::string lost = string_of(call_.record, record::kOutputsLost);
  return lost.empty() ? "the dump holds no output to compare with" : "its outputs were not saved: " + lost;
}

/// Missing files of recorded outputs are an error, not "nothing to compare".
void CallRun::require_outputs(const std::vector<formats::StoredTensor>& stored) const {
  const Json& info = object_of(call_.record, record::kTensorInfo);
  const auto keys = info.find(record::kOutputTensorKeys);
  if (keys == info.end() || !keys->is_array()) return;
  for (const Json& key : *keys) {
    const bool found = key.is_string() && std::ranges::any_of(stored, [&](const auto& t) { return key == t.key; });
    FI_CHECK(found, ValueError, "the recorded output ", key.is_string() ? key.get<std::string>() : key.dump(),
             " is missing", stored.empty() ? str(" (no ", record::kOutputsStem, ".pt or .safetensors)") : "");
  }
}

/// What a workspace got of its group is not compared: a replay makes a group of its own.
Json CallRun::expected_values() const {
  Json values = object_of(call_.record, record::kOutputMetadata);
  if (op_->is_collective)
    for (const char* member : {record::kStateGroup, record::kStateId})
      values.erase(str(record::kAfterPrefix, record::kPlanPrefix, member));
  return values;
}

CallResult run_call(const Session& session, const Call& call, const Options& options) {
  CallRun run(session, call, options);
  return guarded(run, [](CallRun& r) {
    if (!r.begin()) return;
    for (int i = 0; i < r.repetitions(); ++i)
      if (!r.once(i)) return;
  });
}

}  // namespace flashinfer::replay
