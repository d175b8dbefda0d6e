// SPDX-License-Identifier: Apache-2.0
// Atomics and fences, and what they order: the C++ memory model with the scopes block, GPU and system. A release makes
// what is ordered before it known at the variable; an acquire that follows it there knows it too. A relaxed atomic
// does so only for what a fence before it releases, and for a fence after it.
#include <algorithm>
#include <cstring>

#include "flashinfer/core/check.h"
#include "flashinfer/core/hex.h"
#include "flashinfer/kernels/emu/machine.h"
#include "flashinfer/kernels/emu/system.h"

namespace flashinfer::emu {

namespace {
uint32_t scope_of_order(uint32_t order) {
  return order & kOfBlock ? kScopeOfBlock : order & kOfSystem ? kScopeOfSystem : kScopeOfGpu;
}
}  // namespace

Knowledge Machine::known_now(const Thread& t) const {
  const int32_t* const clock = clocks_.of(t.index);
  return {std::vector<int32_t>(clock, clock + clocks_.size()), t.past};
}

void Machine::learn(Thread& t, const Knowledge& k) {
  clocks_.take(t.index, k.clock);
  join(t.past, k.past);
}

void Machine::fence(Scope scope, const void* pc) {
  met(pc);
  if (!options_.races) return;
  Thread& t = *now_;
  for (uint32_t s = 0; s <= scope; ++s) learn(t, t.seen[s]);
  const Knowledge known = known_now(t);
  for (uint32_t s = 0; s <= scope; ++s) t.released[s] = known;
  clocks_.tick(t.index);
}

/// What a gang that has ended released is kept by gang, but what only its blocks see.
void Machine::end_gang(Released (&of)[kScopes], uint32_t gang) {
  for (const uint32_t s : {kScopeOfGpu, kScopeOfSystem})
    for (auto& [domain, known] : of[s]) {
      if (known.clock.empty()) continue;
      PastGangs ended;
      ended[gang] = std::make_shared<const std::vector<int32_t>>(std::move(known.clock));
      join(known.past, ended);
      known.clock.clear();
    }
  of[kScopeOfBlock].clear();
}

/// The variable at `p`. In shared memory each gang has its own.
Machine::SyncVariable& Machine::variable(const void* p) {
  uintptr_t at = reinterpret_cast<uintptr_t>(p);
  unmap(at);
  SyncVariable& v = variables_[at];
  if (v.gang == gang_) return v;
  if (at - shared_begin_ < shared_bytes_) {
    v = {};
  } else {
    end_gang(v.of, v.gang), end_gang(v.of_before, v.gang);
    v.seen.clear();
  }
  v.gang = gang_;
  return v;
}

/// Whom a scope of that thread holds.
uint32_t Machine::domain(const Thread& t, uint32_t scope) {
  return scope == kScopeOfBlock ? t.of->linear : scope == kScopeOfGpu ? t.gpu->id : 0;
}

/// Two stores to a flag that nothing orders: the waiter may never see one of them.
void Machine::check_flag(SyncVariable& v, const void* p, const void* pc) {
  Thread& t = *now_;
  if (!ordered(v.store))
    report("flag",
           str(who(t), " stores to the flag at ", hex(reinterpret_cast<uintptr_t>(p)), " at %1, and ",
               v.store.gang == gang_ ? who(*threads_[v.store.thread]) : "a thread of another block",
               " at %2, with nothing that orders them: one of the stores may be lost"),
           pc, lines_.pc(v.store.pc));
  v.store = {gang_, clocks_.of(t.index)[t.index], lines_.offset(pc), t.index};
}

/// Knowledge from what was released at a variable: at once, or at the next fence.
void Machine::acquire(const Released (&of)[kScopes], uint32_t scope, uint32_t order) {
  Thread& t = *now_;
  for (uint32_t s = 0; s <= scope; ++s) {
    const auto known = of[s].find(domain(t, s));
    if (known == of[s].end()) continue;
    if (order & kLoadOnly && !t.poll.learned) {
      t.poll.learned = true, t.poll.known = known_now(t);
      std::copy_n(t.seen, std::size(t.seen), t.poll.seen);
    }
    if (order & kAcquire)
      learn(t, known->second);
    else
      join(t.seen[s], known->second);
  }
}

bool Machine::learns_from(const SyncVariable& v, uint32_t scope) const {
  for (uint32_t s = 0; s <= scope; ++s)
    if (v.of[s].contains(domain(*now_, s))) return true;
  return false;
}

void Machine::order_by(const void* p, uint32_t order, const void* pc) {
  SyncVariable& v = variable(p);
  const uint32_t scope = scope_of_order(order);
  if (order & kStoreOnly) {  // later loads see this value: nothing that was released before it
    if (scope == kScopeOfSystem) check_flag(v, p, pc);
    for (auto& known : v.of) known.clear();
  } else {
    acquire(v.of, scope, order);
  }
  if (!(order & kLoadOnly)) release_at(v, order);
}

/// What the running thread knows, or what a fence of it has released, becomes known at the variable.
void Machine::release_at(SyncVariable& v, uint32_t order) {
  Thread& t = *now_;
  const Knowledge all = order & kRelease ? known_now(t) : Knowledge{};
  for (uint32_t s = 0; s <= scope_of_order(order); ++s) {
    const Knowledge& known = order & kRelease ? all : t.released[s];
    if (known.empty()) continue;
    join(v.of[s][domain(t, s)], known);
    if (s > kScopeOfBlock) exact_ = true;
  }
  if (order & (kRelease | kStoreOnly)) clocks_.tick(t.index);
}

/// Whether a load gives the value before the last change. It does so once to each thread that the change is not ordered
/// before: a loop that waits comes again, and what does not wait is seen whatever the schedule.
bool Machine::may_be_stale(SyncVariable& v, const void* p, const void* pc) {
  Thread& t = *now_;
  if (v.change.gang == 0 || ordered(v.change)) return false;
  if (v.seen.insert(t.index).second) {
    t.stale_at = p, t.stale_pc = pc;
    return true;
  }
  // Again, without a write in between: it waits. For a thread of a block of which it knows nothing?
  if (t.stale_at == p && t.stale_pc == pc && v.change.gang != gang_ && !t.past.contains(v.change.gang))
    report("waits",
           str(who(t),
               " waits (%1) for what a thread of another block stores (%2), which need not have begun: blocks run at "
               "the same time only in a cluster or a cooperative launch"),
           pc, lines_.pc(v.change.pc));
  return false;
}

/// A thread that loads again at once, as one that waits does, might have come late and have seen only the later value:
/// it forgets what the earlier one made known.
void Machine::poll(const void* p, const void* pc) {
  Thread& t = *now_;
  Poll& last = t.poll;
  if (last.at == p && last.pc == pc && last.acts + 1 == t.acts) {
    if (last.learned) {
      std::copy(last.known.clock.begin(), last.known.clock.end(), clocks_.of(t.index));
      t.past = last.known.past;
      std::copy_n(last.seen, std::size(last.seen), t.seen);
    }
  } else {
    last.learned = false;
  }
  last.at = p, last.pc = pc, last.acts = t.acts;
}

/// Before a change that `order` describes, of the value `before`.
void Machine::keep_before(SyncVariable& v, const char* before, uint32_t bytes, uint32_t order, const void* pc) {
  for (uint32_t s = 0; s < kScopes; ++s) {
    if (order & kStoreOnly)
      v.of_before[s] = std::move(v.of[s]);
    else
      v.of_before[s] = v.of[s];
  }
  std::memcpy(v.before, before, bytes);
  v.seen.clear();
  v.change = {gang_, clocks_.of(now_->index)[now_->index], lines_.offset(pc), now_->index};
}

void Machine::atomic(void* p, uint32_t bytes, void (*apply)(void*, void*), void* operand, uint32_t order,
                     const void* pc) {
  count(Count::kAtomic, 1);
  const uint32_t does = order & kLoadOnly ? kRead : order & kStoreOnly ? kWrite : kWrite | kReadToo;
  access(p, bytes, does | kAtomic | (order & kOfBlock ? kBlockScope : 0u) | (order & kOfSystem ? kSystemScope : 0u),
         pc);
  if (!options_.races) return apply(p, operand);
  SyncVariable& v = variable(p);
  if (order & kLoadOnly) poll(p, pc);
  // Of an atomic that reads and writes, too, when it leaves the earlier value: it may have come before the change.
  char earlier[8];
  std::memcpy(earlier, v.before, sizeof earlier);
  const auto leaves = [&] { return apply(earlier, operand), std::memcmp(earlier, v.before, bytes) == 0; };
  if (!(order & kStoreOnly) && v.change.gang != 0 && leaves() && may_be_stale(v, p, pc)) {
    quiet_ = 0;  // the next load is of another value
    acquire(v.of_before, scope_of_order(order), order);
    if (!(order & (kLoadOnly | kMayFail))) release_at(v, order);
    return;
  }
  if (!(order & (kLoadOnly | kStoreOnly)) && v.change.gang != 0 && !ordered(v.change) &&
      learns_from(v, scope_of_order(order)))
    chose_an_order_ = true;
  char before[8];
  std::memcpy(before, p, bytes);
  apply(p, operand);
  const bool changed = std::memcmp(before, p, bytes) != 0;
  if (changed) quiet_ = 0;
  if (order & kMayFail && !changed) order = (order & ~uint32_t{kRelease}) | kLoadOnly;
  if (changed || order & kStoreOnly)
    keep_before(v, before, bytes, order, pc);
  else
    v.seen.insert(now_->index);
  order_by(p, order, pc);
}

}  // namespace flashinfer::emu
