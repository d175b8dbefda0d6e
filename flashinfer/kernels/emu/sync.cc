// SPDX-License-Identifier: Apache-2.0
// Synchronisation: barriers of a block, a cluster, a grid; warp collectives.
#include <algorithm>

#include "flashinfer/core/check.h"
#include "flashinfer/kernels/emu/machine.h"

namespace flashinfer::emu {
namespace {
const char* name(Meeting k) {
  switch (k) {
    case Meeting::kSync: return "sync_warp";
    case Meeting::kShuffle: return "a shuffle";
    case Meeting::kVote: return "a vote";
    case Meeting::kMma: return "mma";
    case Meeting::kMatrixLoad: return "ldmatrix";
    case Meeting::kMatrixStore: return "stmatrix";
    case Meeting::kElect: return "elect";
  }
  return "?";
}
/// One instruction that all lanes of the warp execute at once (`.aligned`), as sync_threads is; shuffles and votes wait
/// for the lanes of their mask.
bool aligned(Meeting k) { return k == Meeting::kMma || k == Meeting::kMatrixLoad || k == Meeting::kMatrixStore; }
}  // namespace

void Machine::close_log(Warp& w) {
  if (counter_) counter_->close(w.log);
}

/// The same instruction may exist twice in the code (the compiler duplicates paths), so source lines are compared.
void Machine::check_places(const char* what, const void* a, const void* b, const Thread& t) {
  if (a == b || lines_.at(a) == lines_.at(b)) return;
  report("diverged", str("diverged ", what, ": ", who(t), " is at %2, others at %1"), a, b);
}

/// After code that may have left the running thread apart from the other lanes.
void Machine::check_together(const char* what, const void* pc) {
  Thread& t = *now_;
  if (t.apart_at == nullptr) return;
  report("converged",
         str(who(t), " is at ", what,
             " (%1), which is for warps that are together, after code that may have left its lanes apart (%2), "
             "without sync_warp between"),
         pc, std::exchange(t.apart_at, nullptr));
}

void Machine::gather(Barrier& b, Thread& t, const void* pc) {
  if (b.came.empty()) b.pc = pc, b.known.clock.clear(), b.known.past.clear(), b.depended = false;
  b.came.push_back(&t);
  b.depended = b.depended || t.depended;
  if (!options_.races) return;
  clocks_.join(b.known.clock, t.index);
  join(b.known.past, t.past);
  clocks_.tick(t.index);
}

void Machine::release(Barrier& b) {
  for (Thread* w : b.waiting) {
    if (options_.races) learn(*w, b.known);
    w->depended = w->depended || b.depended;
    if (w != now_) wake(w);
  }
  b.waiting.clear();
  b.came.clear();
  progress();
}

/// Who comes to a named barrier must know that its phase before is over, or it might have been counted in that one: two
/// groups of warps that share a barrier, or an arrival that does not wait for the last phase's end.
void Machine::check_phase(Barrier& b, uint32_t id, const void* pc) {
  Thread& t = *now_;
  if (!options_.races || t.barrier_phase[id] + 1 == b.phase) return;
  const int32_t* const known = clocks_.of(t.index);
  for (const auto& [thread, clock] : b.last_came) {
    if (known[thread] >= clock) continue;
    report("phase",
           str(who(t), " comes to barrier ", id, " (%1), but nothing orders it after ", who(*threads_[thread]),
               " in the barrier's phase before (%2): it could be counted in that one"),
           pc, b.last_pc);
    return;
  }
}

/// A barrier counts warps: all lanes of a warp come to the same phase, or it would be counted twice.
void Machine::check_warps(const Barrier& b, uint32_t id, const void* pc) {
  for (const Thread* c : b.came) {
    const auto together = [&](const Thread* o) { return o->warp == c->warp; };
    const auto came = std::count_if(b.came.begin(), b.came.end(), together);
    const auto& lanes = c->warp->lane;
    const auto missing = std::count_if(std::begin(lanes), std::end(lanes), [&](const Thread* o) {
      return o != nullptr && !o->done && std::find(b.came.begin(), b.came.end(), o) == b.came.end();
    });
    if (missing == 0) continue;
    report("barrier",
           str("only ", came, " lanes of the warp of ", who(*c), " come to barrier ", id,
               ", which counts whole warps (%1)"),
           pc);
    return;
  }
}

void Machine::barrier(uint32_t id, uint32_t threads, bool wait, const void* pc) {
  Thread& t = *now_;
  preempt();
  met(pc);
  if (id > 15 || threads % 32 != 0 || (id == 0) != (threads == 0)) {
    report("barrier",
           str("barrier ", id, " for ", threads,
               " threads: ids are 1 to 15 (0 is sync_threads) and threads come in whole warps (%1)"),
           pc);
    stop();
  }
  count(Count::kBarrier, 1);
  // The last lane of the warp to arrive: the others' accesses before the barrier are all in the log.
  if (counter_ && ++t.warp->arrived >= static_cast<uint32_t>(__builtin_popcount(t.warp->live)))
    t.warp->arrived = 0, close_log(*t.warp);
  Barrier& b = t.of->barrier[id];
  if (threads != 0) check_phase(b, id, pc);
  if (b.came.empty()) b.threads = threads;
  if (b.threads != threads)
    report("barrier", str("barrier ", id, " is used for ", b.threads, " threads at %1 and for ", threads, " at %2"),
           b.pc, pc);
  if (id == 0 && !b.came.empty()) check_places("sync_threads", b.pc, pc, t);
  if (id == 0) check_together("sync_threads", pc);
  if (id == 0 && t.of->live < t.of->threads.size() && b.came.empty())
    report("exit",
           str(who(t), " waits at sync_threads (%1), but ", t.of->threads.size() - t.of->live,
               " threads of its block have returned"),
           pc);
  if (std::find(b.came.begin(), b.came.end(), &t) != b.came.end()) {
    report("barrier", str(who(t), " came to barrier ", id, " twice in one phase (%1)"), pc);
    stop();
  }
  gather(b, t, pc);
  if (wait) b.waiting.push_back(&t), t.barrier_phase[id] = b.phase;
  if (b.came.size() == (threads ? threads : t.of->live)) {
    if (threads != 0) check_warps(b, id, pc);
    if (threads != 0 && options_.races) {
      b.last_came.clear(), b.last_pc = b.pc;
      for (const Thread* c : b.came) b.last_came.emplace_back(c->index, b.known.clock[c->index]);
    }
    ++b.phase;
    release(b);
    return;
  }
  if (b.came.size() > threads && threads) {
    report("barrier", str(b.came.size(), " threads came to barrier ", id, ", which is for ", threads, " (%1)"), pc);
    stop();
  }
  if (wait) block_on(id == 0 ? "sync_threads" : "a named barrier", pc);
}

void Machine::meet(Meeting kind, uint32_t mask, void* operand, void (*compute)(void* const*, uint32_t),
                   const void* pc) {
  Thread& t = *now_;
  preempt();
  met(pc);
  Warp& w = *t.warp;
  const uint32_t lane = t.linear % 32, bit = 1u << lane;
  if (!(mask & bit)) {
    report("mask", str(who(t), " (lane ", lane, ") is at ", name(kind), " with a mask that leaves it out (%1)"), pc);
    stop();
  }
  if (mask & ~w.live) {
    report("exit", str(who(t), " is at ", name(kind), " (%1) with lanes that have returned or do not exist"), pc);
    stop();
  }
  if (aligned(kind)) check_together(name(kind), pc);
  size_t i = 0;
  for (; i < w.open.size(); ++i) {
    Met& m = w.open[i];
    if (!(m.mask & mask)) continue;
    if (m.kind != kind || m.mask != mask) {
      report("diverged",
             str("diverged warp: ", who(t), " is at ", name(kind), " (%2), lanes it shares a mask with at ",
                 name(m.kind), " (%1)"),
             m.pc[__builtin_ctz(m.arrived)], pc);
      stop();
    }
    break;
  }
  if (i == w.open.size())
    w.open.push_back({kind, mask, 0, {}, {}});
  else
    check_places(name(kind), w.open[i].pc[__builtin_ctz(w.open[i].arrived)], pc, t);
  Met& m = w.open[i];
  m.arrived |= bit, m.operand[lane] = operand, m.pc[lane] = pc;
  if (m.arrived != mask) {
    block_on(name(kind), pc);
    return;
  }
  if (compute) compute(m.operand, mask);
  if (mask == w.live && kind != Meeting::kMatrixLoad && kind != Meeting::kMatrixStore) close_log(w);
  if (kind == Meeting::kSync && options_.races) {
    joined_.assign(clocks_.size(), 0);
    PastGangs past;
    for (uint32_t j = 0; j < 32; ++j)
      if (mask >> j & 1) clocks_.join(joined_, w.lane[j]->index), join(past, w.lane[j]->past);
    for (uint32_t j = 0; j < 32; ++j)
      if (mask >> j & 1)
        clocks_.take(w.lane[j]->index, joined_), clocks_.tick(w.lane[j]->index), join(w.lane[j]->past, past);
  }
  if (kind == Meeting::kSync) {
    bool depended = false;
    for (uint32_t j = 0; j < 32; ++j) depended = depended || ((mask >> j & 1) && w.lane[j]->depended);
    for (uint32_t j = 0; j < 32; ++j) {
      if (!(mask >> j & 1)) continue;
      w.lane[j]->depended = depended;
      if (mask == w.live) w.lane[j]->apart_at = nullptr;
    }
  }
  w.open.erase(w.open.begin() + static_cast<std::ptrdiff_t>(i));
  for (uint32_t j = 0; j < 32; ++j)
    if ((mask >> j & 1) && j != lane) wake(w.lane[j]);
}

/// cluster_[0] is the phase being gathered, cluster_[1] keeps what the phase before made known.
void Machine::cluster_barrier(bool arrive, bool wait, const void* pc) {
  Thread& t = *now_;
  preempt();
  met(pc);
  Barrier& b = cluster_[0];
  if (arrive) {
    if (t.cluster_arrived) {
      report("barrier", str(who(t), " arrives at the cluster's barrier twice in one phase, with no wait between (%1)"),
             pc);
      stop();
    }
    t.cluster_arrived = true, t.cluster_at = pc;
    gather(b, t, pc);
    t.cluster_phase = b.phase;
    if (b.came.size() == threads_.size()) {
      cluster_[1].known = b.known, cluster_[1].depended = b.depended;
      ++b.phase;
      for (Thread* w : b.waiting) w->cluster_arrived = false;
      release(b);
    }
  }
  if (!wait) return;
  if (!t.cluster_arrived) {
    report("barrier", str(who(t), " waits at the cluster's barrier without having arrived there (%1)"), pc);
    stop();
  }
  if (t.cluster_phase == b.phase) {
    b.waiting.push_back(&t);
    block_on("the cluster's barrier", pc);
    return;
  }
  t.cluster_arrived = false;
  if (options_.races) learn(t, cluster_[1].known);
  t.depended = t.depended || cluster_[1].depended;
}

/// The word of a grid's barrier: one for all blocks, changed by nothing else; its top bit flips with each phase.
void Machine::check_counter(uint32_t* counter, const void* pc) {
  Gpu& gpu = *now_->gpu;
  access(counter, sizeof(*counter), kWrite | kReadToo | kAtomic, pc);
  if (gpu.grid_counter == nullptr) gpu.grid_counter = counter;
  if (counter != gpu.grid_counter)
    report("barrier", str(who(*now_), " comes to the grid's barrier with another counter than other blocks (%1)"), pc);
  else if ((*counter & 0x7fffffffu) != 0)
    report("barrier",
           str(who(*now_), " comes to the grid's barrier with a counter of ", *counter,
               ", which must be 0 before its first use and be changed by nothing else (%1)"),
           pc);
}

void Machine::grid_barrier(uint32_t* counter, const void* pc) {
  Thread& t = *now_;
  preempt();
  met(pc);
  if (!launch_.cooperative) {
    report("barrier", "a barrier of the whole grid in a launch that is not cooperative (%1)", pc);
    stop();
  }
  if (t.linear == 0) check_counter(counter, pc);
  Barrier& grid = t.gpu->grid;
  gather(grid, t, pc);
  grid.waiting.push_back(&t);
  if (grid.came.size() == t.gpu->threads)
    *t.gpu->grid_counter ^= 0x80000000u, release(grid);
  else
    block_on("the grid's barrier", pc);
}

}  // namespace flashinfer::emu
