// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/replay/ranks.h"

#include <algorithm>
#include <charconv>
#include <thread>

#include "flashinfer/comm/share.h"
#include "flashinfer/core/check.h"
#include "flashinfer/core/random_name.h"
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
/// An argument that the op takes from the process.
int64_t internal_of(const Call& call, const char* name) {
  return integer_of(object_of(call.record, record::kInputMetadata), str(record::kKwargPrefix, name).c_str(), -1);
}
int64_t number_of(const Call& call) { return internal_of(call, record::kGroupCall); }
bool takes_part(const Call& call, int64_t rank) { return internal_of(call, record::kGroupRanks) >> rank & 1; }
/// The workspace is memory that the ranks share, not an object.
bool uses_memory(const Call& call) { return workspace_of(call).contains(record::kWindowBytes); }
/// It uses what other ranks have sent before, and waits for none.
bool runs_alone(const Call& call) { return uses_memory(call) && number_of(call) < 0; }

/// The rank of the process that made the call.
int64_t process_rank(const Call& call) {
  const std::string text = string_of(call.record, record::kRank);
  int64_t rank = 0;
  std::from_chars(text.data(), text.data() + text.size(), rank);
  return rank;
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
  std::vector<const Call*> calls;
  if (const std::string why = find_calls(call, calls); !why.empty()) return not_run(call, why);
  CallResult own;
  std::vector<CallResult> results = run_together(calls);
  for (size_t i = 0; i < calls.size(); ++i) {
    if (!calls[i] || !runs_here(*calls[i], options_)) continue;
    const std::string of = calls[i]->folder.filename().string();
    if (of == folder)
      own = std::move(results[i]);
    else
      done_[of] = std::move(results[i]);
  }
  own.folder = call.folder;
  return own;
}

std::string RankCalls::find_calls(const Call& call, std::vector<const Call*>& calls) const {
  const std::string name = string_of(group_of(call), record::kGroupName);
  const int64_t size = size_of(call), rank = rank_of(call);
  if (name.empty())
    return "a collective call needs the other ranks, and its record does not name a group to make again";
  if (size < 1 || size > comm::kMaxRanks || rank < 0 || rank >= size)
    return str("its record says rank ", rank, " of ", size, " of group '", name, "'");
  if (id_of(call).empty())
    return makes_workspace(call)
               ? str("it made no workspace of group '", name, "'")
               : str("it uses memory that the ranks of group '", name, "' share, which its record does not describe");
  calls.assign(static_cast<size_t>(size), nullptr);
  if (runs_alone(call)) {
    calls[static_cast<size_t>(rank)] = &call;
    return {};
  }
  static const std::map<int64_t, size_t> none;
  const auto step = steps_.find({id_of(call), call.function(), number_of(call)});
  const auto& of_ranks = step == steps_.end() ? none : step->second;
  std::string missing;
  for (int64_t r = 0; r < size; ++r) {
    if (const auto found = of_ranks.find(r); found != of_ranks.end() && size_of(calls_[found->second]) == size)
      calls[static_cast<size_t>(r)] = &calls_[found->second];
    else if (takes_part(call, r))
      missing += str(missing.empty() ? "" : ", ", r);
  }
  return missing.empty() ? ""
                         : str("it needs the same call of rank ", missing, " of group '", name, "' (", size,
                               " ranks), which is not in this recording");
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

const RankCalls::Memory& RankCalls::memory(int rank, const Call& call, const std::string& group) {
  auto& known = ranks_[static_cast<size_t>(rank)].memories;
  if (const auto it = known.find(id_of(call)); it != known.end()) return it->second;
  const int64_t bytes = integer_of(workspace_of(call), record::kWindowBytes);
  FI_CHECK(bytes > 0, ValueError, "the record says ", bytes, " bytes of memory a rank");
  Memory m{comm::Group::connect(group, rank, static_cast<int>(size_of(call))), {}};
  m.tensor = comm::share(m.group, bytes);
  return known.emplace(id_of(call), std::move(m)).first->second;
}

void RankCalls::forget(Rank& rank, const Call& call) {
  rank.workspaces.erase(id_of(call));
  rank.memories.erase(id_of(call));
}

bool RankCalls::run_rank(int rank, CallRun* run, const Call& call, int repetition, const std::string& group) {
  Rank& own = ranks_[static_cast<size_t>(rank)];
  Context context;
  context.executor = *own.executor;
  const ContextScope scope(context);
  const std::string argument = string_of(workspace_of(call), record::kArgument);
  bool more = false;
  try {
    if (makes_workspace(call)) {
      more = run->once(repetition, {.replaced = {{record::kStateGroup, group}}});
    } else if (uses_memory(call)) {
      const Memory& m = memory(rank, call, group);
      // No call begins to write before all have restored what lay in their memory.
      const auto ready = [&m] { m.group->barrier("replay"); };
      if (!run) {
        ready();
        return true;
      }
      more = run->once(repetition, {.shared = Shared{key_of(call, argument), m.tensor}, .ready = ready});
    } else {
      op::Object* o = workspace(rank, call, group);
      more = run->once(repetition, {.replaced = {{argument, op::ObjectValue{o, o->class_name, o->module, o->id}}}});
    }
  } catch (const std::exception& e) {
    const auto* ours = dynamic_cast<const Error*>(&e);
    if (run) run->end(Outcome::kError, ours ? ours->message() : e.what());
  }
  if (!more || options_.processes > 1) forget(own, call);  // a rank that still waits for this one gets an error at once
  return more;
}

std::vector<CallResult> RankCalls::run_together(const std::vector<const Call*>& calls) {
  const size_t n = calls.size();
  while (ranks_.size() < n) {
    const int threads = std::max(1, default_executor().threads / static_cast<int>(n));
    ranks_.push_back({make_thread_pool(threads), {}, {}});
  }
  const Call& first = **std::ranges::find_if(calls, [](const Call* c) { return c; });
  const auto here = [&](size_t r) { return runs_here(calls[r] ? *calls[r] : first, options_); };
  std::vector<std::unique_ptr<CallRun>> runs(n);  // null: of a rank that only shares its memory
  std::vector<char> ready(n, 1);
  for (size_t r = 0; r < n; ++r) {
    if (!calls[r]) continue;
    runs[r] = std::make_unique<CallRun>(session_, *calls[r], options_);
    try {
      ready[r] = runs[r]->begin();
    } catch (const std::exception& e) {
      runs[r]->end(Outcome::kError, e.what());
      ready[r] = 0;
    }
  }
  const auto finish = [&] {
    std::vector<CallResult> results(n);
    for (size_t r = 0; r < n; ++r)
      if (runs[r] && here(r)) results[r] = guarded(*runs[r], [](CallRun&) {});
    return results;
  };
  if (const auto stuck = std::ranges::find(ready, char{0}); stuck != ready.end()) {
    for (size_t r = 0; r < n; ++r)
      if (runs[r] && ready[r])
        runs[r]->end(Outcome::kNotCompared,
                     str("not run: the call of rank ", stuck - ready.begin(), " of its group cannot run"));
    return finish();
  }
  bool more = true;
  for (int i = 0; more && i < std::max(1, options_.repeat); ++i) {
    const std::string group =
        options_.processes == 1 || runs_alone(first)
            ? "replay-" + random_name()
            : str("replay-", options_.job, "-", id_of(first), "-", first.function(), "-", number_of(first), "-", i);
    std::vector<std::thread> threads;
    for (size_t r = 0; r < n; ++r)
      if (here(r))
        threads.emplace_back([&, r] {
          ready[r] = run_rank(static_cast<int>(r), runs[r].get(), calls[r] ? *calls[r] : first, i, group);
        });
    for (std::thread& t : threads) t.join();
    more = std::ranges::find(ready, char{0}) == ready.end();
  }
  // The ranks that are left make a new group with the others; several processes do so each time, since one does not
  // know of a failure in another.
  if (!more || options_.processes > 1)
    for (Rank& rank : ranks_) forget(rank, first);
  return finish();
}

}  // namespace flashinfer::replay
