// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/replay/ranks.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <thread>

#include "flashinfer/core/check.h"
#include "flashinfer/core/hex.h"
#include "flashinfer/op/registry.h"
#include "flashinfer/record/format.h"

namespace flashinfer::replay {
namespace {

const Json& group_of(const Call& call) { return object_of(call.record, record::kGroup); }
const Json& workspace_of(const Call& call) { return object_of(group_of(call), record::kGroupWorkspace); }
int64_t rank_of(const Call& call) { return integer_of(group_of(call), record::kRank, -1); }
int64_t size_of(const Call& call) { return integer_of(group_of(call), record::kGroupSize, 0); }
bool makes_workspace(const Call& call) { return call.function().ends_with(".__init__"); }

/// Of the workspace that the call uses or has made; empty: it has none.
std::string id_of(const Call& call) {
  if (!makes_workspace(call)) return string_of(workspace_of(call), record::kStateId);
  return string_of(object_of(call.record, record::kOutputMetadata),
                   str(record::kAfterPrefix, record::kPlanPrefix, record::kStateId).c_str());
}
int64_t number_of(const Call& call) {
  return integer_of(object_of(call.record, record::kInputMetadata),
                    str(record::kKwargPrefix, record::kGroupCall).c_str(), -1);
}

/// The rank of the process that made the call.
int64_t process_rank(const Call& call) {
  const std::string text = string_of(call.record, record::kRank);
  int64_t rank = 0;
  std::from_chars(text.data(), text.data() + text.size(), rank);
  return rank;
}

/// That no running program of this user connects to.
std::string fresh_group() {
  uint64_t bits = 0;
  FI_CHECK(getrandom(&bits, sizeof bits, 0) == sizeof bits, RuntimeError, "cannot draw a random name");
  return str("replay-", getpid(), "-", hex(bits));
}

}  // namespace

bool runs_here(const Call& call, const Options& options) {
  return process_rank(call) % options.processes == options.process;
}

RankCalls::RankCalls(const Session& session, const Options& options) : options_(options) {
  const auto is_collective = [](const CallEntry& c) {
    const op::Op* op = op::find_op(c.function);
    return op && op->is_collective;
  };
  const bool alone = session.single && std::ranges::any_of(session.calls, is_collective);
  const Session all = alone ? open_session(session.root / "..") : Session{};
  const Session& from = alone ? all : session;
  session_.root = from.root, session_.chunks = from.chunks;
  for (size_t i = 0; i < from.calls.size(); ++i)
    if (is_collective(from.calls[i])) calls_.push_back(from.read(i));
  for (size_t i = 0; i < calls_.size(); ++i)
    if (const std::string id = id_of(calls_[i]); !id.empty())
      steps_[{id, calls_[i].function(), number_of(calls_[i])}][rank_of(calls_[i])] = i;
}

CallResult RankCalls::not_run(const Call& call, const std::string& why) const {
  CallRun run(session_, call, options_);
  return guarded(run, [&](CallRun& r) {
    if (r.begin()) r.end(Outcome::kNotCompared, "not run: " + why);
  });
}

CallResult RankCalls::run(const Call& call) {
  const std::lock_guard lock(mutex_);
  const std::string folder = call.folder.filename().string();
  if (const auto it = done_.find(folder); it != done_.end()) {
    CallResult r = std::move(it->second);
    done_.erase(it);
    r.folder = call.folder;
    return r;
  }
  const std::string name = string_of(group_of(call), record::kGroupName);
  if (name.empty())
    return not_run(call, "a collective call needs the other ranks, and its record does not name a group to make again");
  if (id_of(call).empty())
    return not_run(call, makes_workspace(call) ? str("it made no workspace of group '", name, "'")
                                               : str("it uses memory that the ranks of group '", name,
                                                     "' share, which replay does not make"));
  const auto& step = steps_[{id_of(call), call.function(), number_of(call)}];
  std::string missing;
  std::vector<const Call*> calls;
  for (int64_t r = 0; r < size_of(call); ++r)
    if (const auto it = step.find(r); it != step.end())
      calls.push_back(&calls_[it->second]);
    else
      missing += str(missing.empty() ? "" : ", ", r);
  if (!missing.empty() || calls.empty())
    return not_run(call, str("it needs the same call of rank ", missing, " of group '", name, "' (", size_of(call),
                             " ranks), which is not in this recording"));
  CallResult own;
  std::vector<CallResult> results = run_together(calls);
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::string of = calls[i]->folder.filename().string();
    if (!runs_here(*calls[i], options_)) continue;
    if (of == folder)
      own = std::move(results[i]);
    else
      done_[of] = std::move(results[i]);
  }
  own.folder = call.folder;
  return own;
}

op::Object* RankCalls::workspace(int rank, const Call& call, const std::string& group) {
  auto& known = ranks_[static_cast<size_t>(rank)].workspaces;
  if (const auto it = known.find(id_of(call)); it != known.end()) return it->second.get();
  const std::string cls = string_of(workspace_of(call), record::kClass);
  const op::Op* init = op::find_op(cls + ".__init__");
  FI_CHECK(init && init->state, ValueError, "there is no class ", cls);
  auto object = std::make_unique<op::Object>(op::intern_class(cls), init->module, *init->state);
  op::Passed passed;
  passed.positional.emplace_back(op::ObjectValue{object.get(), object->class_name, object->module, object->id});
  for (const auto& [name, value] : object_of(workspace_of(call), record::kMembers).items())
    if (const op::Field* f = op::find_field(*init, name); f && f->role == op::Role::kAttr)
      passed.keyword.emplace_back(name, name == record::kStateGroup ? op::Value(group) : decode(value, {}));
  op::call_values(*init, passed);
  return known.emplace(id_of(call), std::move(object)).first->second.get();
}

bool RankCalls::run_rank(int rank, CallRun& run, const Call& call, int repetition, const std::string& group) {
  Rank& own = ranks_[static_cast<size_t>(rank)];
  Context context;
  context.executor = *own.executor;
  const ContextScope scope(context);
  bool more = false;
  try {
    if (makes_workspace(call)) {
      more = run.once(repetition, {{record::kStateGroup, group}});
    } else {
      op::Object* o = workspace(rank, call, group);
      more = run.once(repetition, {{string_of(workspace_of(call), record::kArgument),
                                    op::ObjectValue{o, o->class_name, o->module, o->id}}});
    }
  } catch (const Error& e) {
    run.end(Outcome::kError, e.message());
  } catch (const std::exception& e) {
    run.end(Outcome::kError, e.what());
  }
  if (!more || options_.processes > 1)
    own.workspaces.erase(id_of(call));  // whoever still waits for this rank gets an error at once
  return more;
}

std::vector<CallResult> RankCalls::run_together(const std::vector<const Call*>& calls) {
  const size_t n = calls.size();
  while (ranks_.size() < n) {
    const int threads = std::max(1, default_executor().threads / static_cast<int>(n));
    ranks_.push_back({make_thread_pool(threads), {}});
  }
  std::vector<CallRun> runs;
  runs.reserve(n);
  for (const Call* c : calls) runs.emplace_back(session_, *c, options_);
  std::vector<char> ready(n);
  for (size_t r = 0; r < n; ++r) {
    try {
      ready[r] = runs[r].begin();
    } catch (const std::exception& e) {
      runs[r].end(Outcome::kError, e.what());
    }
  }
  const auto stuck = std::ranges::find(ready, char{0});
  const auto here = [&](size_t r) { return runs_here(*calls[r], options_); };
  const auto finish = [&] {
    std::vector<CallResult> results(n);
    for (size_t r = 0; r < n; ++r)
      if (here(r)) results[r] = guarded(runs[r], [](CallRun&) {});
    return results;
  };
  if (stuck != ready.end()) {
    for (size_t r = 0; r < n; ++r)
      if (ready[r])
        runs[r].end(Outcome::kNotCompared,
                    str("not run: the call of rank ", stuck - ready.begin(), " of its group cannot run"));
    return finish();
  }
  bool more = true;
  for (int i = 0; more && i < runs[0].repetitions(); ++i) {
    const std::string group = options_.processes == 1 ? fresh_group()
                                                      : str("replay-", options_.job, "-", id_of(*calls[0]), "-",
                                                            calls[0]->function(), "-", number_of(*calls[0]), "-", i);
    std::vector<std::thread> threads;
    for (size_t r = 0; r < n; ++r)
      if (here(r))
        threads.emplace_back([&, r] { ready[r] = run_rank(static_cast<int>(r), runs[r], *calls[r], i, group); });
    for (std::thread& t : threads) t.join();
    more = std::ranges::find(ready, char{0}) == ready.end();
  }
  // The ranks that are left make a new group with the others; several processes do so each time, since one does not
  // know of a failure in another.
  if (!more || options_.processes > 1)
    for (Rank& rank : ranks_) rank.workspaces.erase(id_of(*calls[0]));
  return finish();
}

}  // namespace flashinfer::replay
