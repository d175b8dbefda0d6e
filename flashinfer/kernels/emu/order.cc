// SPDX-License-Identifier: Apache-2.0
// Atomics and fences, and what they order: the C++ memory model with the scopes block, GPU and system. A release makes
// what is ordered before it known at the variable; an acquire that follows it there knows it too. A relaxed atomic
// does so only for what a fence before it releases, and for a fence after it.
#include <cstring>

#include "flashinfer/core/check.h"
#include "flashinfer/core/hex.h"
#include "flashinfer/kernels/emu/machine.h"
#include "flashinfer/kernels/emu/system.h"

namespace flashinfer::emu {

Knowledge Machine::known_now(const Thread& t) const {
  const int32_t* const clock = clocks_.of(t.index);
  return {std::vector<int32_t>(clock, clock + clocks_.size()), t.past};
}

void Machine::learn(Thread& t, const Knowledge& k) {
  clocks_.take(t.index, k.clock);
  join(t.past, k.past);
}

void Machine::fence(Scope scope, const void*) {
  if (!options_.races) return;
  Thread& t = *now_;
  for (uint32_t s = 0; s <= scope; ++s) learn(t, t.seen[s]);
  const Knowledge known = known_now(t);
  for (uint32_t s = 0; s <= scope; ++s) t.released[s] = known;
  clocks_.tick(t.index);
}

/// The variable at `p`; what gangs that have ended released there is kept by gang.
Machine::SyncVariable& Machine::variable(const void* p) {
  SyncVariable& v = variables_[reinterpret_cast<uintptr_t>(p)];
  if (v.gang == gang_) return v;
  for (const uint32_t s : {kScopeOfGpu, kScopeOfSystem})
    for (auto& [domain, known] : v.of[s]) {
      if (known.clock.empty()) continue;
      PastGangs ended;
      ended[v.gang] = std::make_shared<const std::vector<int32_t>>(std::move(known.clock));
      join(known.past, ended);
      known.clock.clear();
    }
  v.of[kScopeOfBlock].clear();
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

void Machine::order_by(const void* p, uint32_t order, const void* pc) {
  Thread& t = *now_;
  SyncVariable& v = variable(p);
  const uint32_t scope = order & kOfBlock ? kScopeOfBlock : order & kOfSystem ? kScopeOfSystem : kScopeOfGpu;
  if (order & kStoreOnly) {  // later loads see this value: nothing that was released before it
    if (scope == kScopeOfSystem) check_flag(v, p, pc);
    for (auto& known : v.of) known.clear();
  } else {
    for (uint32_t s = 0; s <= scope; ++s) {
      const auto known = v.of[s].find(domain(t, s));
      if (known == v.of[s].end()) continue;
      if (order & kAcquire)
        learn(t, known->second);
      else
        join(t.seen[s], known->second);
    }
  }
  if (order & kLoadOnly) return;
  const Knowledge all = order & kRelease ? known_now(t) : Knowledge{};
  for (uint32_t s = 0; s <= scope; ++s) {
    const Knowledge& known = order & kRelease ? all : t.released[s];
    if (known.empty()) continue;
    join(v.of[s][domain(t, s)], known);
    if (s > kScopeOfBlock) exact_ = true;
  }
  if (order & (kRelease | kStoreOnly)) clocks_.tick(t.index);
}

void Machine::atomic(void* p, uint32_t bytes, void (*apply)(void*, void*), void* operand, uint32_t order,
                     const void* pc) {
  count(Count::kAtomic, 1);
  const uint32_t does = order & kLoadOnly ? kRead : order & kStoreOnly ? kWrite : kWrite | kReadToo;
  access(p, bytes, does | kAtomic | (order & kOfBlock ? kBlockScope : 0u) | (order & kOfSystem ? kSystemScope : 0u),
         pc);
  if (options_.races) order_by(p, order, pc);
  char before[16];
  std::memcpy(before, p, bytes);
  apply(p, operand);
  if (std::memcmp(before, p, bytes) != 0) quiet_ = 0;
}

}  // namespace flashinfer::emu
