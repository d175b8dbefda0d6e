// SPDX-License-Identifier: Apache-2.0
// Compares an access with the earlier ones to the same memory.
#include <algorithm>

#include "flashinfer/core/check.h"
#include "flashinfer/core/hex.h"
#include "flashinfer/kernels/emu/machine.h"
#include "flashinfer/kernels/emu/system.h"

namespace flashinfer::emu {
namespace {

UseKind kind_of(uint32_t flags) {
  if (!(flags & kAtomic)) return kPlainRead;
  if (flags & kWrite)
    return flags & kSystemScope ? kAtomicOfSystem : flags & kBlockScope ? kAtomicOfBlock : kAtomicOfGpu;
  return flags & kSystemScope ? kLoadOfSystem : flags & kBlockScope ? kLoadOfBlock : kLoadOfGpu;
}
bool writes(uint8_t kind) { return kind >= kAtomicOfSystem; }
Scope scope_of(uint8_t kind) {
  return kind == kLoadOfBlock || kind == kAtomicOfBlock ? kScopeOfBlock
         : kind == kLoadOfGpu || kind == kAtomicOfGpu   ? kScopeOfGpu
                                                        : kScopeOfSystem;
}

const char* word_of(uint8_t kind) { return kind == kPlainRead ? "read" : writes(kind) ? "atomic" : "atomic load"; }

}  // namespace

/// The lanes of `u` that are not ordered before the running thread.
uint32_t Machine::unordered(const Use& u) const {
  const int32_t* const known = clocks_.of(now_->index) + u.first;
  uint32_t lanes = 0;
  for (uint32_t left = u.lanes; left != 0; left &= left - 1)
    if (const int lane = __builtin_ctz(left); known[lane] < u.clock) lanes |= 1u << lane;
  return lanes;
}
uint32_t Machine::unordered(const PastUse& u) const {
  const auto found = now_->past.find(u.gang);
  if (found == now_->past.end()) return u.lanes;
  uint32_t lanes = 0;
  for (uint32_t left = u.lanes; left != 0; left &= left - 1)
    if (const uint32_t lane = static_cast<uint32_t>(__builtin_ctz(left)); (*found->second)[u.first + lane] < u.clock)
      lanes |= 1u << lane;
  return lanes;
}
bool Machine::ordered(const Touch& o) const {
  if (o.gang == 0) return true;
  if (o.gang == gang_) return clocks_.of(now_->index)[o.thread] >= o.clock;
  const auto found = now_->past.find(o.gang);
  return found != now_->past.end() && (*found->second)[o.thread] >= o.clock;
}

void Machine::report_race(const PageMap& map, uintptr_t at, uint32_t bytes, uint32_t flags, const void* pc,
                          const char* other_word, const Thread* other, uint32_t other_pc) {
  const std::string place = map.per_gang ? str("shared+", hex(at - reinterpret_cast<uintptr_t>(now_->of->shared)))
                                         : str("global memory, ", hex(at));
  report(
      "race",
      str("data race at ", place, ": ", verb(flags), " of ", bytes, " bytes by ", who(*now_), " at %1 and ", other_word,
          " by ", other ? who(*other) : "a thread of another block", " at %2, with nothing that orders them"),
      pc, lines_.pc(other_pc));
}

/// Keeps the access for those that follow, in place of one that it is ordered after.
void Machine::keep_use(PageMap& map, Cell& c, UseKind kind, uint8_t size, uint32_t lane, uint32_t pc) {
  Thread& t = *now_;
  const uint16_t first = static_cast<uint16_t>(t.index - lane);
  const int32_t clock = clocks_.of(t.index)[t.index];
  const uint32_t bit = 1u << lane;
  MoreUses* const more = map.more_or_null(c);
  const auto each = [&](auto&& f) {
    for (Use& u : c.use)
      if (f(u)) return true;
    if (more)
      for (Use& u : more->now)
        if (f(u)) return true;
    return false;
  };
  const bool merged = each([&](Use& u) {
    if (u.lanes == 0 || u.first != first || u.kind != kind || u.bytes != size) return false;
    if (u.clock == clock) return u.lanes |= bit, true;
    u.lanes &= ~bit;  // an earlier one of this lane
    return false;
  });
  if (merged) return;
  const Use mine{clock, pc, bit, first, kind, size};
  if (each([&](Use& u) {
        return u.lanes == 0 || (u.kind == kind && u.bytes == size && unordered(u) == 0) ? (u = mine, true) : false;
      }))
    return;
  map.more(c).now.push_back(mine);
}

/// Reads and atomics since the last write.
void Machine::check_uses(PageMap& map, const Cell& c, uintptr_t at, uint32_t bytes, uint32_t flags, const void* pc) {
  const bool write = flags & kWrite, plain_write = write && !(flags & kAtomic);
  const UseKind kind = kind_of(flags);
  /// Atomics of two threads see each other when both scopes hold both threads.
  const auto apart = [&](const Use& u) {
    const Scope scope = std::min(scope_of(kind), scope_of(u.kind));
    const Thread& other = *threads_[u.first];
    return scope == kScopeOfBlock ? other.of != now_->of : scope == kScopeOfGpu && other.gpu != now_->gpu;
  };
  const auto conflicts = [&](const Use& u, bool of_gang) {
    if (plain_write) return true;
    if (kind == kPlainRead) return writes(u.kind);
    if (u.kind == kPlainRead) return write;
    if (u.bytes != bytes) return write || writes(u.kind);  // they do not see each other as atomics
    const bool outside = of_gang ? apart(u) : std::min(scope_of(kind), scope_of(u.kind)) == kScopeOfBlock;
    return outside && (write || writes(u.kind));
  };
  const auto check = [&](const Use& u) {
    if (u.lanes == 0 || !conflicts(u, true)) return;
    if (const uint32_t lanes = unordered(u))
      report_race(map, at, bytes, flags, pc, word_of(u.kind),
                  threads_[u.first + static_cast<uint32_t>(__builtin_ctz(lanes))].get(), u.pc);
  };
  for (const Use& u : c.use) check(u);
  if (const MoreUses* const more = map.more_or_null(c)) {
    for (const Use& u : more->now) check(u);
    for (const PastUse& u : more->past)
      if (conflicts(u, false) && unordered(u)) report_race(map, at, bytes, flags, pc, word_of(u.kind), nullptr, u.pc);
  }
}

void Machine::check_cell(PageMap& map, Cell& c, uintptr_t at, uint32_t bytes, uint32_t flags, const void* pc) {
  Thread& t = *now_;
  const bool write = flags & kWrite, plain_write = write && !(flags & kAtomic);
  const UseKind kind = kind_of(flags);
  const uint32_t lane = t.linear % 32;
  const int32_t clock = clocks_.of(t.index)[t.index];
  if (c.gang == gang_ && (flags & ~(kWrite | kUnaligned)) == 0) {  // again, with no synchronisation between: known
    const auto same = [&](const Use& u) {
      return u.clock == clock && u.lanes >> lane & 1 && u.first == t.index - lane && u.kind == kPlainRead;
    };
    if (!write && (same(c.use[0]) || same(c.use[1]))) return;
    const bool unused = (c.use[0].lanes | c.use[1].lanes | c.more | c.flying) == 0;
    if (write && unused && c.write.gang == gang_ && c.write.thread == t.index && c.write.clock == clock) return;
  }
  if (c.gang != gang_) {
    if (c.more == 0 && (c.use[0].lanes | c.use[1].lanes) == 0 && !map.per_gang)
      c.gang = gang_;
    else
      map.next_gang(c, gang_, exact_);
  }
  const bool known = c.write.gang == gang_ ? clocks_.of(t.index)[c.write.thread] >= c.write.clock : ordered(c.write);
  if (!known)
    report_race(map, at, bytes, flags, pc, "write", c.write.gang == gang_ ? threads_[c.write.thread].get() : nullptr,
                c.write.pc);
  if (c.flying != 0 && write) report_source(at, bytes, flags, pc);
  if (kind != kPlainRead || plain_write || c.atomics) check_uses(map, c, at, bytes, flags, pc);
  c.atomics = !plain_write && (c.atomics || kind != kPlainRead);
  if (!plain_write)
    return keep_use(map, c, kind, kind == kPlainRead ? uint8_t{0} : static_cast<uint8_t>(bytes), lane,
                    lines_.offset(pc));
  for (Use& u : c.use) u.lanes = 0;
  if (MoreUses* const more = map.more_or_null(c)) more->now.clear(), more->past.clear();
  c.write = {gang_, clock, lines_.offset(pc), t.index};
}

void Machine::check_race(PageMap& map, uintptr_t at, uint32_t bytes, uint32_t flags, const void* pc) {
  for (uintptr_t end = at + bytes; at < end;) {
    const uintptr_t piece = std::min<uintptr_t>(end, (at | 4095) + 1) - at;
    Page* page = map.page(at);
    if (page == nullptr) return;
    const uint8_t fine = static_cast<uint8_t>(__builtin_ctzll(at | piece | 16));
    if (page->log2 > fine) map.refine(*page, fine);
    const size_t first = (at & 4095) >> page->log2, last = ((at & 4095) + piece - 1) >> page->log2;
    for (size_t i = first; i <= last; ++i) {
      Cell& c = page->cells[i];
      if (flags & kLanding && c.flying != 0) --c.flying;
      check_cell(map, c, at, bytes, flags, pc);
      if (flags & kAsync && !(flags & (kWrite | kLanding))) ++c.flying;
    }
    at += piece;
  }
}

/// A write to what a copy in flight reads.
void Machine::report_source(uintptr_t at, uint32_t bytes, uint32_t flags, const void* pc) {
  const auto reads = [&](const AsyncCopy& c) {
    const uintptr_t from = reinterpret_cast<uintptr_t>(c.source);
    return at < from + c.from && from < at + bytes;
  };
  for (const auto& p : threads_) {
    const AsyncCopy* found = nullptr;
    for (const auto& group : p->groups)
      for (const AsyncCopy& c : group)
        if (reads(c)) found = &c;
    for (const AsyncCopy& c : p->open)
      if (reads(c)) found = &c;
    if (found)
      return report("source",
                    str("data race at global memory, ", hex(at), ": ", verb(flags), " of ", bytes, " bytes by ",
                        who(*now_), " at %1 while the cp.async of ", who(*p), " that reads them (%2) is in flight"),
                    pc, found->pc);
  }
}

}  // namespace flashinfer::emu
