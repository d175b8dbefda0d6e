// SPDX-License-Identifier: Apache-2.0
// One recorded call, run again.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "flashinfer/replay/inputs.h"
#include "flashinfer/replay/replay.h"
#include "flashinfer/replay/save.h"
#include "flashinfer/replay/session.h"

namespace flashinfer::replay {

/// What a call gets instead of what was recorded.
struct Setting {
  std::vector<std::pair<std::string, op::Value>> replaced{};  // arguments by name
  std::optional<Shared> shared{};                             // a workspace, and the tensors in it
  std::function<void()> ready{};                              // called when the arguments are there, before the call
};

/// One repetition at a time, for calls that several ranks make together (ranks.h). `call` outlives it.
class CallRun {
 public:
  CallRun(const Session& session, const Call& call, const Options& options);
  /// False: the call cannot run; finish() says why. ValueError and others: a damaged recording.
  bool begin();
  /// False when no more repetitions are needed.
  bool once(int repetition, const Setting& setting = {});
  /// Ends with this outcome and message.
  void end(Outcome outcome, std::string message);
  CallResult finish();
  int repetitions() const;

 private:
  struct Failure {
    std::string kind, message;
  };
  std::unique_ptr<op::ForceCandidate> forced() const;
  void judge_failure(const std::optional<Failure>& now);
  bool judge(const op::Value& result, const Inputs& inputs, int repetition);
  std::string overwritten() const;
  std::string nothing_to_compare() const;
  void require_outputs(const std::vector<formats::StoredTensor>& stored) const;
  Json expected_values() const;
  bool is_incomplete() const;

  const Session& session_;
  const Call& call_;
  const Options& options_;
  const op::Op* op_ = nullptr;
  std::string status_;
  std::optional<Saver> saver_;
  uint64_t first_bits_ = 0;
  CallResult r_;
};

/// f(run), whose errors become the result's outcome and message; then run.finish().
template <class F>
CallResult guarded(CallRun& run, F&& f) {
  try {
    f(run);
  } catch (const Error& e) {
    run.end(Outcome::kError, e.message());
  } catch (const std::exception& e) {
    run.end(Outcome::kError, e.what());
  }
  return run.finish();
}

/// Never throws: errors become the result's outcome and message.
CallResult run_call(const Session& session, const Call& call, const Options& options);

}  // namespace flashinfer::replay
