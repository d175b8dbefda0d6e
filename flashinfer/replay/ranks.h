// SPDX-License-Identifier: Apache-2.0
// Collective calls: those that the ranks of a group made together are run again together, each rank in a thread of its
// own with its recorded arguments, over a new group that has a workspace as the recorded one. So one rank's result is
// computed from the inputs that the other ranks recorded. A workspace that is memory (comm/share.h) gets what the
// recorded tensors in it held, at the same places.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "flashinfer/comm/group.h"
#include "flashinfer/core/context.h"
#include "flashinfer/op/object.h"
#include "flashinfer/replay/run_call.h"

namespace flashinfer::replay {

/// Whether this process replays the call (Options::processes).
bool runs_here(const Call& call, const Options& options);

class RankCalls {
 public:
  /// Of one call's folder, the session that it lies in is searched for the other ranks' calls.
  RankCalls(const Session& session, const Options& options);
  /// Runs the call of this rank with those of the others; their results are kept for their own turn. Never throws. Not
  /// compared, with a sentence: a rank's call is not in the recording, or cannot run.
  CallResult run(const Call& call);

 private:
  /// The workspace's id, the op, the call's number: what the calls of one step have in common.
  using Step = std::tuple<std::string, std::string, int64_t>;
  struct Memory {
    std::shared_ptr<comm::Group> group;
    Tensor tensor{};
  };
  struct Rank {
    std::shared_ptr<const Executor> executor;
    std::map<std::string, std::unique_ptr<op::Object>> workspaces;  // by id
    std::map<std::string, Memory> memories;                         // by id
  };
  /// The calls that run with this one, by rank: null of ranks that only share their memory. Returns why there are none.
  std::string find_calls(const Call& call, std::vector<const Call*>& calls) const;
  std::vector<CallResult> run_together(const std::vector<const Call*>& calls);
  /// False: no more repetitions. `run` null: the rank takes no part, but has memory as `call` has.
  bool run_rank(int rank, CallRun* run, const Call& call, int repetition, const std::string& group);
  op::Object* workspace(int rank, const Call& call, const std::string& group);
  const Memory& memory(int rank, const Call& call, const std::string& group);
  static void forget(Rank& rank, const Call& call);
  CallResult not_run(const Call& call, const std::string& why) const;

  const Options& options_;
  Session session_;  // without calls: where tensors are
  std::vector<Call> calls_;
  std::map<Step, std::map<int64_t, size_t>> steps_;  // rank -> index into calls_
  std::mutex mutex_;                                 // one step at a time
  std::map<std::string, CallResult> done_;           // by the call's folder
  std::vector<Rank> ranks_;
};

}  // namespace flashinfer::replay
