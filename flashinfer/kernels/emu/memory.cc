// SPDX-License-Identifier: Apache-2.0
// Checks every access of a kernel: the owner of the memory, whether the access is allowed, and earlier accesses to it.
#include <algorithm>
#include <cstring>
#include <iomanip>

#include "flashinfer/core/check.h"
#include "flashinfer/core/hex.h"
#include "flashinfer/kernels/emu/machine.h"

namespace flashinfer::emu {
namespace {
const char* verb(uint32_t flags) {
  return flags & kAtomic  ? "atomic"
         : flags & kAsync ? (flags & kWrite ? "cp.async to" : "cp.async from")
         : flags & kWrite ? "write"
                          : "read";
}
}  // namespace

void Machine::access(const void* p, uint32_t bytes, uint32_t flags, const void* pc) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(p);
  preempt();
  if (at - shared_begin_ + 1024 < gang_blocks_ * shared_stride_ + 1024) return shared_access(at, bytes, flags, pc);
  if (!(flags & kWrite)) {
    if (at - reinterpret_cast<uintptr_t>(params_.data()) < params_.size() ||
        at - reinterpret_cast<uintptr_t>(&entry_) < sizeof(entry_))
      return;
    if (lines_.inside(at)) return;  // constants
  } else if (at - reinterpret_cast<uintptr_t>(params_.data()) < params_.size() || lines_.inside(at)) {
    report("constant", str(who(*now_), ": write of ", bytes, " bytes to parameters or constants (%1)"), pc);
    stop();
  }
  global_access(at, bytes, flags, pc);
}

Block* Machine::block_of(uintptr_t at, uint32_t bytes) {
  if (at < shared_begin_) return nullptr;
  const size_t b = (at - shared_begin_) / shared_stride_, offset = (at - shared_begin_) % shared_stride_;
  return b < blocks_.size() && offset + bytes <= launch_.shared_bytes ? &blocks_[b] : nullptr;
}

void Machine::shared_access(uintptr_t at, uint32_t bytes, uint32_t flags, const void* pc) {
  Thread& t = *now_;
  Block* b = block_of(at, bytes);
  const auto place = [&] { return str("shared+", hex(at - reinterpret_cast<uintptr_t>((b ? b : t.of)->shared))); };
  if (b == nullptr || (b != t.of && launch_.cooperative)) {
    report("bounds",
           str(who(t), ": ", verb(flags), " of ", bytes, " bytes at ", place(), ", but the block has ",
               launch_.shared_bytes, " bytes of shared memory (%1)"),
           pc);
    stop();
  }
  if (at % std::min(bytes, 16u) != 0 && !(flags & kUnaligned))
    report("aligned", str(who(t), ": misaligned ", verb(flags), " of ", bytes, " bytes at ", place(), " (%1)"), pc);
  uint8_t* state = b->state + (at - reinterpret_cast<uintptr_t>(b->shared));
  uint8_t seen = 0;
  for (uint32_t i = 0; i < bytes; ++i)
    seen = std::max(seen, state[i] == kInFlight ? uint8_t{2} : state[i] == kUninitialised ? uint8_t{1} : uint8_t{0});
  if (seen == 2)
    report("flight",
           str(who(t), ": ", verb(flags), " of ", bytes, " bytes at ", place(),
               " while a cp.async to it is in flight (%1)"),
           pc);
  else if (seen == 1 && !(flags & kWrite))
    report("uninitialised", str(who(t), ": read of ", bytes, " bytes at ", place(), ", which were never written (%1)"),
           pc);
  if (flags & kWrite) std::memset(state, kInitialised, bytes);
  if (counter_)
    counter_->log(t.warp->log, t.linear % 32, lines_.offset(pc), at - reinterpret_cast<uintptr_t>(b->shared), bytes,
                  true, flags & kWrite);
  if (options_.races) check_race(shared_pages_, at, bytes, flags, pc);
}

void Machine::out_of_bounds(uintptr_t at, uint32_t bytes, uint32_t flags, const Range* before, const Range* after,
                            const void* pc) {
  std::string near = "far from every allocation";
  if (before != nullptr && at < reinterpret_cast<uintptr_t>(before->begin) + before->bytes + 65536)
    near = str(static_cast<int64_t>(at + bytes - reinterpret_cast<uintptr_t>(before->begin) - before->bytes),
               " bytes past the end of an allocation of ", before->bytes, " bytes");
  if (after != nullptr && reinterpret_cast<uintptr_t>(after->begin) - at < 4096)
    near =
        str(reinterpret_cast<uintptr_t>(after->begin) - at, " bytes before an allocation of ", after->bytes, " bytes");
  report("bounds",
         str(who(*now_), ": ", verb(flags), " of ", bytes, " bytes of global memory out of bounds, ", near, " (%1)"),
         pc);
}

void Machine::global_access(uintptr_t at, uint32_t bytes, uint32_t flags, const void* pc) {
  Thread& t = *now_;
  if (!t.depended) {
    report("depend",
           str(who(t), ": ", verb(flags), " of ", bytes,
               " bytes of global memory before depend_wait(), in a launch that may start "
               "before the kernel in front has ended (%1)"),
           pc);
    t.depended = true;
  }
  const auto inside = [&](const Range& r) {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(r.begin);
    return at >= begin && at + bytes <= begin + r.bytes;
  };
  const Range* r = last_range_;
  if (!options_.memory.empty() && (r == nullptr || !inside(*r))) {
    const auto after =
        std::upper_bound(options_.memory.begin(), options_.memory.end(), at,
                         [](uintptr_t x, const Range& y) { return x < reinterpret_cast<uintptr_t>(y.begin); });
    r = after == options_.memory.begin() ? nullptr : &*(after - 1);
    if (r == nullptr || !inside(*r)) {
      out_of_bounds(at, bytes, flags, r, after == options_.memory.end() ? nullptr : &*after, pc);
      stop();  // stop() with no string alive: this stack is never unwound
    }
    last_range_ = r;
  }
  if (at % std::min(bytes, 16u) != 0 && !(flags & kUnaligned)) {
    report("aligned",
           str(who(t), ": misaligned ", verb(flags), " of ", bytes, " bytes of global memory at ", hex(at), " (%1)"),
           pc);
    if (bytes > 8) stop();
  }
  if (counter_) counter_->log(t.warp->log, t.linear % 32, lines_.offset(pc), at, bytes, false, flags & kWrite);
  if (options_.races) check_race(global_pages_, at, bytes, flags, pc);
}

void Machine::check_race(PageMap& map, uintptr_t at, uint32_t bytes, uint32_t flags, const void* pc) {
  Thread& t = *now_;
  const bool write = flags & kWrite, atomic = flags & kAtomic;
  const Touch mine{gang_, clocks_.of(t.index)[t.index], lines_.offset(pc), static_cast<uint16_t>(t.index), atomic};
  const auto known = [&](const Touch& o) {  // no earlier access, or ordered before this one
    if (o.gang == 0 || (o.atomic && atomic)) return true;
    if (o.gang != gang_) return map.per_gang || t.acquired.contains(o.gang);
    return o.thread == t.index || clocks_.of(t.index)[o.thread] >= o.clock;
  };
  const auto report_race = [&](const Touch& o, bool wrote) {
    const std::string other = o.gang == gang_ ? who(*threads_[o.thread]) : "a thread of another block";
    const std::string place = map.per_gang ? str("shared+", hex(at - reinterpret_cast<uintptr_t>(t.of->shared)))
                                           : str("global memory, ", hex(at));
    report("race",
           str("data race at ", place, ": ", verb(flags), " of ", bytes, " bytes by ", who(t), " at %1 and ",
               o.atomic ? "atomic"
               : wrote  ? "write"
                        : "read",
               " by ", other, " at %2, with nothing that orders them"),
           pc, lines_.pc(o.pc));
  };
  for (uintptr_t end = at + bytes; at < end;) {
    const uintptr_t piece = std::min<uintptr_t>(end, (at | 4095) + 1) - at;
    Page* page = map.page(at);
    if (page == nullptr) return;
    const uint8_t fine = static_cast<uint8_t>(__builtin_ctzll(at | piece | 16));
    if (page->log2 > fine) page->refine(fine);
    const size_t first = (at & 4095) >> page->log2, last = ((at & 4095) + piece - 1) >> page->log2;
    for (size_t i = first; i <= last; ++i) {
      Cell& c = page->cells[i];
      if (!known(c.write)) report_race(c.write, true);
      if (write) {
        for (Touch& r : c.read) {
          if (!known(r)) report_race(r, false);
          r.gang = 0;
        }
        c.write = mine;
      } else {
        Touch* slot = nullptr;
        for (Touch& r : c.read)
          if (r.gang == gang_ && r.thread == mine.thread) slot = &r;
        for (Touch& r : c.read)
          if (!slot && (known(r) || (r.gang != gang_ && map.per_gang))) slot = &r;
        if (!slot) slot = &c.read[mine.thread % 3], ++lost_readers_;
        *slot = mine;
      }
    }
    at += piece;
  }
}

void Machine::async_copy(void* target, const void* source, uint32_t bytes, uint32_t from, const void* pc) {
  Thread& t = *now_;
  count(Count::kAsyncCopy, 1);
  if (from > 0) access(source, from, from < bytes ? kAsync | kUnaligned : uint32_t{kAsync}, pc);
  if (reinterpret_cast<uintptr_t>(source) % bytes != 0 && from > 0)
    report("aligned", str(who(t), ": cp.async of ", bytes, " bytes from a misaligned address (%1)"), pc);
  access(target, bytes, kWrite | kAsync, pc);
  Block* b = block_of(reinterpret_cast<uintptr_t>(target), bytes);
  if (b == nullptr) {
    report("bounds", str(who(t), ": the target of cp.async is not in shared memory (%1)"), pc);
    stop();
  }
  std::memset(b->state + (static_cast<char*>(target) - b->shared), kInFlight, bytes);
  std::memset(target, 0xff, bytes);
  t.open.push_back({static_cast<char*>(target), static_cast<const char*>(source), bytes, from, pc});
}

void Machine::async_commit() {
  now_->groups.push_back(std::move(now_->open));
  now_->open.clear();
}

/// The copy happens as late as allowed: source and target must still be valid.
void Machine::land(Thread& t, const AsyncCopy& c, const void*) {
  std::memset(t.of->state + (c.target - t.of->shared), kInitialised, c.bytes);
  if (options_.races) check_race(shared_pages_, reinterpret_cast<uintptr_t>(c.target), c.bytes, kWrite | kAsync, c.pc);
  std::memcpy(c.target, c.source, c.from);
  std::memset(c.target + c.from, 0, c.bytes - c.from);
}

void Machine::async_wait(uint32_t pending, const void* pc) {
  Thread& t = *now_;
  preempt();
  if (pending == ~0u) async_commit(), pending = 0;
  while (t.groups.size() > pending) {
    for (const AsyncCopy& c : t.groups.front()) land(t, c, pc);
    t.groups.erase(t.groups.begin());
  }
}

void Machine::atomic(void* p, uint32_t bytes, void (*apply)(void*, void*), void* operand, const void* pc) {
  Thread& t = *now_;
  count(Count::kAtomic, 1);
  access(p, bytes, kWrite | kAtomic, pc);
  if (options_.races) {
    SyncVariable& v = variables_[reinterpret_cast<uintptr_t>(p)];
    if (v.gang != gang_) v.clock.clear(), v.gang = gang_;
    clocks_.join(v.clock, t.index);
    clocks_.take(t.index, v.clock);
    clocks_.tick(t.index);
    t.acquired.insert(v.gangs.begin(), v.gangs.end());
    v.gangs.insert(gang_);
    v.gangs.insert(t.acquired.begin(), t.acquired.end());
  }
  apply(p, operand);
}

void* Machine::map_shared(const void* p, uint32_t rank, const void* pc) {
  if (launch_.cooperative || rank >= gang_blocks_) {
    report("cluster",
           str(who(*now_), ": block ", rank, " of a cluster of ", launch_.cooperative ? 1 : gang_blocks_, " (%1)"), pc);
    stop();
  }
  const intptr_t offset = static_cast<const char*>(p) - now_->of->shared;
  return blocks_[rank].shared + offset;
}

}  // namespace flashinfer::emu
