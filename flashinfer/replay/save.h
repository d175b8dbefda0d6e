// SPDX-License-Identifier: Apache-2.0
// What a replayed call gives, written as a recording without inputs: <folder>/<name of the call's folder>/ with
// metadata.jsonl and outputs.pt, which compare_recorded() reads. The outputs are those that the recorder writes, but of
// a pool whose used pages were recorded always these alone.
#pragma once
#include <string>

#include "flashinfer/replay/inputs.h"

namespace flashinfer::replay {

/// `execution_status` of a call that did not come to run; `error` says why, its type is the outcome's name.
inline constexpr const char* kNotRun = "not_run";

class Saver {
 public:
  /// RuntimeError: the folder cannot be made.
  Saver(const std::filesystem::path& folder, const Call& call);

  /// Each of them replaces metadata.jsonl by a record of that status. started: inputs_saved, so that a call which ends
  /// the process is known.
  void started();
  void completed(const op::Value& result, const Inputs& inputs, const std::shared_ptr<const void>& state_before);
  void failed(const std::string& type, const std::string& message);
  void not_run(const std::string& outcome, const std::string& message);
  bool ran() const { return ran_; }

 private:
  void write(const char* status, const Json& more);

  std::filesystem::path folder_;
  const Call& call_;
  bool ran_ = false;
};

}  // namespace flashinfer::replay
