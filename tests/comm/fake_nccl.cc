// SPDX-License-Identifier: Apache-2.0
// An NCCL without GPUs, with non-blocking communicators as NCCL documents them: a call is in progress until all ranks
// have made theirs, then the last one moves the bytes. Calls that differ are an error of all.
#include "tests/comm/fake_nccl.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

using namespace flashinfer::comm::nccl;
using fake::Nccl;

namespace {

Nccl& nccl() {
  static Nccl& n = *new Nccl;
  return n;
}

struct Op {
  std::string name;
  const void* in;
  void* out;
  size_t count;
  Type type;
  int peer;
  Handle stream;
};
struct World;
struct Communicator {
  World* world;
  int rank;
  Result state = kInProgress;
  std::string last{};
  size_t made = 0;  // calls
};
struct World {
  std::vector<Communicator*> ranks;                        // null: not there yet, or gone
  std::map<size_t, std::vector<std::vector<Op>>> calls{};  // by number, then by rank; those that not all have made
  std::map<size_t, size_t> arrived{};
  std::vector<std::unique_ptr<Communicator>> owned{};  // those gone too: a rank may still read why
};
std::map<std::string, World*>& worlds() {
  static auto& all = *new std::map<std::string, World*>;
  return all;
}
thread_local int depth = 0;
thread_local std::vector<std::pair<Communicator*, Op>> grouped;

size_t size_of(Type t) {
  return t <= kUint8 ? 1 : t == kFloat16 || t == kBfloat16 ? 2 : t == kInt64 || t == kFloat64 ? 8 : 4;
}
/// What must be the same on all ranks.
std::string text(const Op& o) { return o.name + " " + std::to_string(o.count) + " " + std::to_string(o.type); }
bool is_between_two(const Op& o) { return o.name == "ncclSend" || o.name == "ncclRecv"; }

void run_collective(const std::vector<std::vector<Op>>& all) {
  const size_t ranks = all.size(), n = all[0][0].count;
  const size_t bytes = n * size_of(all[0][0].type);
  const bool gathers = all[0][0].name == "ncclAllGather", scatters = all[0][0].name == "ncclReduceScatter";
  std::vector<std::string> in;  // before anything is written: calls may be in place
  for (const auto& ops : all) in.emplace_back(static_cast<const char*>(ops[0].in), scatters ? ranks * bytes : bytes);
  for (size_t r = 0; r < ranks; ++r) {
    auto* out = static_cast<char*>(all[r][0].out);
    if (gathers) {
      for (size_t s = 0; s < ranks; ++s) std::memcpy(out + s * bytes, in[s].data(), bytes);
      continue;
    }
    for (size_t i = 0; i < n; ++i) {
      float sum = 0;
      for (size_t s = 0; s < ranks; ++s)
        sum += reinterpret_cast<const float*>(in[s].data())[(scatters ? r * n : 0) + i];
      reinterpret_cast<float*>(out)[i] = sum;
    }
  }
}
/// False: a receive without its send, or of another size.
bool run_between_two(const std::vector<std::vector<Op>>& all) {
  std::map<std::pair<size_t, size_t>, std::vector<const Op*>> sends;
  for (size_t r = 0; r < all.size(); ++r)
    for (const Op& o : all[r])
      if (o.name == "ncclSend") sends[{r, static_cast<size_t>(o.peer)}].push_back(&o);
  for (size_t r = 0; r < all.size(); ++r)
    for (const Op& o : all[r]) {
      if (o.name != "ncclRecv") continue;
      auto& from = sends[{static_cast<size_t>(o.peer), r}];
      if (from.empty() || from[0]->count != o.count) return false;
      std::memcpy(o.out, from[0]->in, o.count * size_of(o.type));
      from.erase(from.begin());
    }
  return std::all_of(sends.begin(), sends.end(), [](const auto& s) { return s.second.empty(); });
}
bool run(const std::vector<std::vector<Op>>& all) {
  bool two = false;
  for (const auto& ops : all)
    for (const Op& o : ops) two = two || is_between_two(o);
  if (two) return run_between_two(all);
  for (const auto& ops : all)
    if (ops.size() != 1 || text(ops[0]) != text(all[0][0])) return false;
  run_collective(all);
  return true;
}

Result take(Communicator* c, std::vector<Op> ops) {
  Nccl& n = nccl();
  const std::scoped_lock lock(n.mutex);
  if (c->state != kSuccess) return kInvalidUsage;
  n.calls.resize(std::max(n.calls.size(), c->world->ranks.size()));
  for (const Op& o : ops) n.calls[static_cast<size_t>(c->rank)].push_back(o.name + " " + std::to_string(o.count));
  if (n.alone) {
    for (const Op& o : ops)
      if (n.enqueue(o.stream, o.name + " " + std::to_string(o.count)) != 0) return c->state = kUnhandledCudaError;
    return kSuccess;
  }
  World& w = *c->world;
  const size_t number = c->made++;
  auto& all = w.calls[number];
  all.resize(w.ranks.size());
  all[static_cast<size_t>(c->rank)] = std::move(ops);
  c->state = kInProgress;
  // A rank with an error may have gone, and its buffers with it: the others wait, as for one that never arrives.
  const bool all_well =
      std::ranges::all_of(w.ranks, [](const Communicator* r) { return r && r->state == kInProgress; });
  if (++w.arrived[number] == w.ranks.size() && all_well) {
    const bool ok = run(all);
    for (Communicator* other : w.ranks) {
      if (!other || other->state != kInProgress) continue;  // an error stays
      other->state = ok ? kSuccess : kInvalidUsage;
      if (!ok) other->last = "ranks made different calls";
    }
    w.calls.erase(number);
  }
  if (c->rank == 0 && n.fail_rank_0 != kSuccess)
    c->state = std::exchange(n.fail_rank_0, kSuccess), c->last = "the wire broke";
  return c->state == kSuccess ? kSuccess : kInProgress;
}
Result post(Handle comm, Op op) {
  auto* c = static_cast<Communicator*>(comm);
  if (!depth) return take(c, {std::move(op)});
  grouped.emplace_back(c, std::move(op));
  return kSuccess;
}
}  // namespace

extern "C" {
Nccl* fake_nccl() { return &nccl(); }

Result ncclGetVersion(int* version) {
  *version = nccl().version;
  return kSuccess;
}
Result ncclGetUniqueId(UniqueId* id) {
  static int count = 0;
  const std::scoped_lock lock(nccl().mutex);
  *id = {};
  std::snprintf(id->internal, sizeof id->internal, "world %d", ++count);
  return kSuccess;
}
Result ncclCommInitRankConfig(Handle* comm, int ranks, UniqueId id, int rank, Config* config) {
  if (config->magic != 0xcafebeef || config->size < 24 || config->blocking != 0) return kInvalidArgument;
  const std::scoped_lock lock(nccl().mutex);
  World*& w = worlds()[id.internal];
  if (!w) w = new World{std::vector<Communicator*>(static_cast<size_t>(ranks))};
  w->owned.push_back(std::make_unique<Communicator>(Communicator{w, rank}));
  Communicator* c = w->owned.back().get();
  w->ranks[static_cast<size_t>(rank)] = c;
  *comm = c;
  if (nccl().alone) return c->state = kSuccess;
  if (std::count(w->ranks.begin(), w->ranks.end(), nullptr)) return kInProgress;
  for (Communicator* other : w->ranks) other->state = kSuccess;
  return kInProgress;
}
Result ncclCommGetAsyncError(Handle comm, Result* state) {
  const std::scoped_lock lock(nccl().mutex);
  *state = static_cast<Communicator*>(comm)->state;
  return kSuccess;
}
static void leave(Handle comm) {
  auto* c = static_cast<Communicator*>(comm);
  c->world->ranks[static_cast<size_t>(c->rank)] = nullptr;
}
Result ncclCommAbort(Handle comm) {
  const std::scoped_lock lock(nccl().mutex);
  ++nccl().aborted;
  leave(comm);
  return kSuccess;
}
Result ncclCommFinalize(Handle) {
  const std::scoped_lock lock(nccl().mutex);
  ++nccl().finalised;
  return kSuccess;
}
Result ncclCommDestroy(Handle comm) {
  const std::scoped_lock lock(nccl().mutex);
  leave(comm);
  return kSuccess;
}
const char* ncclGetErrorString(Result r) { return r == kRemoteError ? "remote process exited" : "invalid usage"; }
const char* ncclGetLastError(Handle comm) { return static_cast<Communicator*>(comm)->last.c_str(); }
Result ncclAllReduce(const void* in, void* out, size_t n, Type t, int, Handle c, Handle stream) {
  return post(c, {"ncclAllReduce", in, out, n, t, 0, stream});
}
Result ncclAllGather(const void* in, void* out, size_t n, Type t, Handle c, Handle stream) {
  return post(c, {"ncclAllGather", in, out, n, t, 0, stream});
}
Result ncclReduceScatter(const void* in, void* out, size_t n, Type t, int, Handle c, Handle stream) {
  return post(c, {"ncclReduceScatter", in, out, n, t, 0, stream});
}
Result ncclSend(const void* in, size_t n, Type t, int to, Handle c, Handle stream) {
  return post(c, {"ncclSend", in, nullptr, n, t, to, stream});
}
Result ncclRecv(void* out, size_t n, Type t, int from, Handle c, Handle stream) {
  return post(c, {"ncclRecv", nullptr, out, n, t, from, stream});
}
Result ncclGroupStart() {
  ++depth;
  return kSuccess;
}
Result ncclGroupEnd() {
  if (--depth) return kSuccess;
  auto all = std::exchange(grouped, {});
  if (all.empty()) return kSuccess;
  std::vector<Op> ops;
  for (auto& [c, op] : all) ops.push_back(std::move(op));
  return take(all[0].first, std::move(ops));
}
}
