// SPDX-License-Identifier: Apache-2.0
// Threads and blocks that end, wait for ever or never end.
#include <algorithm>
#include <map>
#include <utility>

#include "flashinfer/core/check.h"
#include "flashinfer/kernels/emu/machine.h"

namespace flashinfer::emu {

void Machine::thread_ends(Thread& t) {
  t.done = true;
  --live_, --t.of->live, --t.gpu->live;
  steps_ = quiet_ = meetings_ = 0;
  t.warp->live &= ~(1u << (t.linear % 32));
  if (counter_ && t.warp->live == 0) close_log(*t.warp);
  t.groups.push_back(std::move(t.open));
  for (const auto& group : t.groups) {
    if (group.empty()) continue;
    report("async", str(who(t), " returned while its cp.async of %1 was in flight: it was never waited for"),
           group.front().pc);
    break;
  }
  Barrier& b = t.of->barrier[0];
  if (!b.came.empty()) {
    report("exit", str(who(t), " returned while ", b.came.size(), " threads of its block wait at sync_threads (%1)"),
           b.pc);
    if (b.came.size() == t.of->live) release(b);
  }
  for (const Met& m : t.warp->open)
    if (m.mask >> (t.linear % 32) & 1) {
      const int other = __builtin_ctz(m.arrived);
      report("exit", str(who(t), " returned, but lanes of its warp wait for it at %1"), m.pc[other]);
      stop();
    }
  if (t.cluster_arrived)
    report("barrier", str(who(t), " returned without having waited at the cluster's barrier, where it arrived (%1)"),
           t.cluster_at);
  if (t.of->live == 0) block_ends(*t.of);
  if (t.gpu->live == 0 && t.gpu->running + 1 < t.gpu->launches.size()) ended_.push_back(t.gpu);
}

/// Nothing orders an access of another block before the end of this one: it may come after it.
void Machine::block_ends(Block& b) {
  for (uint32_t id = 1; id < std::size(b.barrier); ++id)
    if (const Barrier& x = b.barrier[id]; !x.came.empty())
      report("barrier",
             str("block (", b.id[0], ",", b.id[1], ",", b.id[2], ") ends with ", x.came.size(), " of ", x.threads,
                 " threads at barrier ", id, " (%1): the others never came"),
             x.pc);
  if (!options_.races) return;
  for (const auto& [thread, touch] : b.remote) {
    const auto known = [&, t = thread, clock = touch.clock](const Thread* o) {
      return clocks_.of(o->index)[t] >= clock;
    };
    if (std::any_of(b.threads.begin(), b.threads.end(), known)) continue;
    report(
        "cluster",
        str(who(*threads_[thread]), ": ", verb(touch.flags), " of the shared memory of block (", b.id[0], ",", b.id[1],
            ",", b.id[2], ") (%1), which may have returned: nothing orders the access before the end of that block"),
        touch.pc);
  }
}

/// A thread that only repeats its last few accesses gives way to the others; when all threads do that and write
/// nothing, they never end.
void Machine::repeated(const void* pc) {
  constexpr uint64_t kRepeats = 1024;
  ++quiet_;
  if (++now_->repeats % kRepeats != 0) return;
  if (quiet_ > 64 * kRepeats + 2 * kRepeats * ready_.size())
    too_long("reads the same again and again, and no other thread that can run changes it", pc);
  now_->gives_way = true;
  ready_.push_back(now_);
  leave();
}
/// At a barrier, shuffle, vote, mma, fence or wait. Threads that do nothing else, or only read parameters, never end.
void Machine::met(const void* pc) {
  ++now_->acts;
  read_parameter(pc);
}
void Machine::read_parameter(const void* pc) {
  constexpr uint64_t kMostMeetings = uint64_t{1} << 21;
  if (++meetings_ > kMostMeetings)
    too_long("goes on and on: its block meets, waits or reads parameters, but makes no other access", pc);
}
/// A barrier was passed or a thread has ended. A gang that does that for ever has a limit too.
void Machine::progress() {
  constexpr uint64_t kAllSteps = uint64_t{1} << 28;
  all_steps_ += std::exchange(steps_, 0);
  if (all_steps_ > kAllSteps) too_long("does not end: 2^28 accesses of its blocks", nullptr);
}
void Machine::tick(const void* pc, int ticks) {
  const uint64_t done = switches_ + all_steps_ + steps_;
  if (std::exchange(done_, done) != done) idle_ticks_ = 0;
  if (++idle_ticks_ <= ticks || now_ == nullptr || !lines_.inside(reinterpret_cast<uintptr_t>(pc))) return;
  idle_ticks_ = 0;
  too_long("runs on and on without an access: a loop over registers, or over a plain load that is made once", pc);
}
void Machine::too_long(const char* why, const void* pc) {
  report("endless",
         str(who(*now_), " ", why, " (%1). Blocks run at the same time only in a cluster or a cooperative launch"), pc);
  report_deadlock();
  stop();
}

void Machine::report_deadlock() {
  std::map<std::pair<std::string, const void*>, std::vector<const Thread*>> groups;
  for (const auto& t : threads_)
    if (!t->done && (t->waits_for || ready_.empty()))
      groups[{t->waits_for ? t->waits_for : "nothing", t->waits_at}].push_back(t.get());
  for (const auto& [at, threads] : groups)
    report("deadlock",
           str("deadlock: ", threads.size(), " threads wait for ", at.first, " at %1, the first of them ",
               who(*threads.front())),
           at.second);
}

}  // namespace flashinfer::emu
