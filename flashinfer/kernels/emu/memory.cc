// SPDX-License-Identifier: Apache-2.0
// Checks every access of a kernel: the owner of the memory, whether the access is allowed, and earlier accesses to it.
#include <algorithm>
#include <cstring>

#include "flashinfer/core/check.h"
#include "flashinfer/core/hex.h"
#include "flashinfer/kernels/emu/guarded.h"
#include "flashinfer/kernels/emu/machine.h"

namespace flashinfer::emu {

const char* verb(uint32_t flags) {
  return flags & kAtomic   ? "atomic"
         : flags & kAsync  ? (flags & kWrite ? "cp.async to" : "cp.async from")
         : flags & kMatrix ? (flags & kWrite ? "stmatrix" : "ldmatrix")
         : flags & kWrite  ? "write"
                           : "read";
}

void Machine::access(const void* p, uint32_t bytes, uint32_t flags, const void* pc) {
  uintptr_t at = reinterpret_cast<uintptr_t>(p);
  if (unmap(at)) flags |= kMapped;
  const bool shared = at - shared_begin_ + 1024 < shared_bytes_ + 1024;
  if (!shared && read_only(at)) {
    if (!(flags & kWrite)) return read_parameter(pc), preempt();
    report("constant", str(who(*now_), ": write of ", bytes, " bytes to parameters or constants (%1)"), pc);
    stop();
  }
  step(at, pc);
  ++now_->acts;
  if (flags & kWrite) now_->stale_at = nullptr;
  if (flags & kWrite && !(flags & kReadToo)) quiet_ = 0;
  preempt();
  if (shared && !(flags & kGlobal)) return shared_access(at, bytes, flags, pc);
  if (shared) wrong_space(false, pc);
  if (at - stacks().begin() < stacks().bytes()) {
    report("local",
           str(who(*now_), ": ", verb(flags), " of ", bytes,
               " bytes of local memory that is not this thread's: past the end of an array, or an address that another "
               "thread gave (%1)"),
           pc);
    stop();
  }
  if (flags & kMatrix) {
    report("bounds", str(who(*now_), ": ", verb(flags), " of memory that is not shared (%1)"), pc);
    stop();
  }
  global_access(at, bytes, flags, pc);
}

void Machine::array_bounds(int64_t index, const char* type, const void* pc) {
  report("local", str(who(*now_), ": index ", index, " is out of bounds of an array of type ", type, " (%1)"), pc);
  stop();
}

void Machine::object_bounds(const char* type, const void* pc) {
  report("local", str(who(*now_), ": an access of type ", type, " outside the variable that it belongs to (%1)"), pc);
  stop();
}

void Machine::local_bounds(const void* p, uint32_t bytes, uint32_t flags, bool returned, const void* pc) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(p);
  const std::string where =
      returned ? "of a function that has returned" : describe_local(at, bytes, api_table.stack_begin);
  report("local",
         str(who(*now_), ": ", verb(flags), " of ", bytes, " bytes of local memory out of bounds",
             where.empty() ? "" : ", ", where, " (%1)"),
         pc);
  stop();
}

/// Whose shared memory it is; null: that of no block, or of another one at an address that is not mapped.
Block* Machine::block_of(uintptr_t at, uint32_t bytes, uint32_t flags) {
  Block* const own = now_->of;
  const uintptr_t in_own = at - reinterpret_cast<uintptr_t>(own->shared);
  if (in_own < now_->shared_bytes && in_own + bytes <= now_->shared_bytes) return own;
  if (at < shared_begin_ || (shared_memory_.distance() != 0 && !(flags & kMapped))) return nullptr;
  const size_t b = (at - shared_begin_) / shared_stride_, offset = (at - shared_begin_) % shared_stride_;
  return b < blocks_.size() && offset + bytes <= now_->shared_bytes ? &blocks_[b] : nullptr;
}

namespace {
/// Accesses that the compiler does not call unaligned have 1, 2, 4, 8 or 16 bytes.
bool misaligned(uintptr_t at, uint32_t bytes, uint32_t flags) {
  return (at & (std::min(bytes, 16u) - 1)) != 0 && !(flags & kUnaligned);
}
bool all_initialised(const uint8_t* state, uint32_t bytes) {
  constexpr uint64_t kAll = 0x0101010101010101u * kInitialised;
  uint64_t a = kAll, b = kAll;
  switch (bytes) {
    case 16: std::memcpy(&b, state + 8, 8); [[fallthrough]];
    case 8: std::memcpy(&a, state, 8); return a == kAll && b == kAll;
    case 4: std::memcpy(&a, state, 4); return a == kAll;
    case 2: std::memcpy(&a, state, 2); return a == kAll;
    default: return std::all_of(state, state + bytes, [](uint8_t s) { return s == kInitialised; });
  }
}
}  // namespace

void Machine::shared_access(uintptr_t at, uint32_t bytes, uint32_t flags, const void* pc) {
  Thread& t = *now_;
  Block* b = block_of(at, bytes, flags);
  const auto place = [&] { return str("shared+", hex(at - reinterpret_cast<uintptr_t>((b ? b : t.of)->shared))); };
  if (b == nullptr || (b != t.of && launch_.cooperative)) {
    report("bounds",
           str(who(t), ": ", verb(flags), " of ", bytes, " bytes at ", place(), ", but the block has ", t.shared_bytes,
               " bytes of shared memory (%1)"),
           pc);
    stop();
  }
  if (misaligned(at, bytes, flags))
    report("aligned", str(who(t), ": misaligned ", verb(flags), " of ", bytes, " bytes at ", place(), " (%1)"), pc);
  if ((b != t.of || flags & kMapped) && flags & (kMatrix | kAsync)) {
    report("cluster", str(who(t), ": ", verb(flags), " of another block's shared memory: it takes its own alone (%1)"),
           pc);
    stop();
  }
  if (b != t.of) remote_access(*b, flags, pc);
  uint8_t* state = b->state + (at - reinterpret_cast<uintptr_t>(b->shared));
  const auto any = [&](uint8_t of) { return std::find(state, state + bytes, of) != state + bytes; };
  const bool initialised = all_initialised(state, bytes), flying = !initialised && any(kInFlight);
  if (flying)
    report("flight",
           str(who(t), ": ", verb(flags), " of ", bytes, " bytes at ", place(),
               " while a cp.async to it is in flight (%1)"),
           pc);
  else if (!initialised && (!(flags & kWrite) || flags & kReadToo))
    report("uninitialised", str(who(t), ": read of ", bytes, " bytes at ", place(), ", which were never written (%1)"),
           pc);
  if (flags & kWrite && !initialised) std::memset(state, kInitialised, bytes);
  if (counter_)
    counter_->log(t.warp->log, t.linear % 32, lines_.offset(pc), at - reinterpret_cast<uintptr_t>(b->shared), bytes,
                  true, flags & kWrite);
  if (options_.races) check_race(shared_pages_, at, bytes, flags, pc);
}

/// Another block of the cluster: it must have begun before the access and may not end before it.
void Machine::remote_access(Block& b, uint32_t flags, const void* pc) {
  Thread& t = *now_;
  if (b.live == 0) {
    report("cluster",
           str(who(t), ": ", verb(flags), " of the shared memory of block (", b.id[0], ",", b.id[1], ",", b.id[2],
               "), which has returned (%1)"),
           pc);
    stop();
  }
  if (!options_.races) return;
  const int32_t* const known = clocks_.of(t.index);
  const auto begun = [&](const Thread* o) { return known[o->index] >= o->started; };
  if (std::none_of(b.threads.begin(), b.threads.end(), begun))
    report("cluster",
           str(who(t), ": ", verb(flags), " of the shared memory of block (", b.id[0], ",", b.id[1], ",", b.id[2],
               "), which need not have begun: no barrier of the cluster comes before (%1)"),
           pc);
  b.remote[t.index] = {known[t.index], flags, pc};
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
  if (options_.freed)
    for (const Range& r : options_.freed())
      if (at - reinterpret_cast<uintptr_t>(r.begin) < r.bytes)
        near = str("at byte ", at - reinterpret_cast<uintptr_t>(r.begin), " of an allocation of ", r.bytes,
                   " bytes that was freed");
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
  if (r != nullptr && keeps_) undo_.keep(*r, at, bytes);
  if (mode_.undone && undo_.full()) stop();
  if (misaligned(at, bytes, flags)) {
    report("aligned",
           str(who(t), ": misaligned ", verb(flags), " of ", bytes, " bytes of global memory at ", hex(at), " (%1)"),
           pc);
    if (bytes > 8) stop();
  }
  if (r != nullptr && r->written != nullptr) {
    const size_t first = at - reinterpret_cast<uintptr_t>(r->begin);
    const uint8_t* const bits = r->written + first / 8;
    const bool all = bytes == 16 && first % 8 == 0 ? (bits[0] & bits[1]) == 0xff
                     : first % 8 + bytes <= 8      ? (~bits[0] >> first % 8 & ((1u << bytes) - 1)) == 0
                                                   : false;
    if (!all) check_written(*r, at, bytes, flags, pc);
  }
  if (counter_) {
    counter_->log(t.warp->log, t.linear % 32, lines_.offset(pc), at, bytes, false, flags & kWrite);
    if (r != nullptr && r->gpu >= 0 && static_cast<uint32_t>(r->gpu) != t.gpu->id)
      counter_->remote(bytes, flags & kWrite);
  }
  if (options_.races) check_race(global_pages_, at, bytes, flags, pc);
}

/// Bits of `written` for [first, first + bytes) are set or, on a read, must be.
void Machine::check_written(const Range& r, uintptr_t at, uint32_t bytes, uint32_t flags, const void* pc) {
  const size_t first = at - reinterpret_cast<uintptr_t>(r.begin);
  const bool reads = !(flags & kWrite) || flags & kReadToo;
  for (size_t i = first, end = first + bytes; i < end;) {
    const size_t n = std::min(end - i, 8 - i % 8);
    uint8_t& bits = r.written[i / 8];
    const uint8_t mask = static_cast<uint8_t>(((1u << n) - 1) << i % 8);
    if (reads && (bits & mask) != mask) {
      // The host may have written directly. Words of 4 bytes, or what is read of one.
      const uint8_t* const data = static_cast<const uint8_t*>(r.begin);
      for (size_t word = i; word < i + n; word = (word | 3) + 1) {
        bool poison = false;
        for (size_t k = word; k < std::min(i + n, (word | 3) + 1); ++k) {
          if (bits >> k % 8 & 1) continue;
          poison = data[k] == 0xff;
          if (!poison) break;
        }
        if (!poison) continue;
        report("unwritten",
               str(who(*now_), ": ", verb(flags), " of ", bytes, " bytes of global memory at byte ", first,
                   " of an allocation of ", r.bytes, " bytes, which nothing has written (%1)"),
               pc);
        break;
      }
    }
    bits |= mask;
    i += n;
  }
}

void Machine::async_copy(void* target, const void* source, uint32_t bytes, uint32_t from, const void* pc) {
  Thread& t = *now_;
  count(Count::kAsyncCopy, 1);
  if (!options_.async_copy) {
    report("target", "cp.async, which this GPU does not have: it needs sm_80 (%1)", pc);
    stop();
  }
  if (from > bytes) {
    report("bounds", str(who(t), ": cp.async reads ", from, " bytes for ", bytes, " (%1)"), pc);
    stop();
  }
  if (from > 0 && reinterpret_cast<uintptr_t>(source) - shared_begin_ < shared_bytes_) {
    report("bounds", str(who(t), ": the source of cp.async is in shared memory (%1)"), pc);
    stop();
  }
  if (from > 0) access(source, from, from < bytes ? kAsync | kUnaligned : uint32_t{kAsync}, pc);
  if (reinterpret_cast<uintptr_t>(source) % bytes != 0 && from > 0)
    report("aligned", str(who(t), ": cp.async of ", bytes, " bytes from a misaligned address (%1)"), pc);
  access(target, bytes, kWrite | kAsync, pc);
  Block* b = block_of(reinterpret_cast<uintptr_t>(target), bytes, kAsync);
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

/// The copy happens as late as allowed: source and target must still be valid, and both are accesses until here.
void Machine::land(Thread& t, const AsyncCopy& c) {
  std::memset(t.of->state + (c.target - t.of->shared), kInitialised, c.bytes);
  if (options_.races) {
    if (c.from > 0)
      check_race(global_pages_, reinterpret_cast<uintptr_t>(c.source), c.from, kRead | kAsync | kLanding, c.pc);
    check_race(shared_pages_, reinterpret_cast<uintptr_t>(c.target), c.bytes, kWrite | kAsync, c.pc);
  }
  std::memcpy(c.target, c.source, c.from);
  std::memset(c.target + c.from, 0, c.bytes - c.from);
}

void Machine::async_wait(uint32_t pending, const void* pc) {
  Thread& t = *now_;
  preempt();
  met(pc);
  if (pending == ~0u) async_commit(), pending = 0;
  while (t.groups.size() > pending) {
    for (const AsyncCopy& c : t.groups.front()) land(t, c);
    t.groups.erase(t.groups.begin());
  }
}

void Machine::space(const void* p, bool shared, const void* pc) {
  uintptr_t at = reinterpret_cast<uintptr_t>(p);
  const bool mapped = unmap(at);
  if (shared != (!mapped && at - shared_begin_ < shared_bytes_)) wrong_space(shared, pc);
}
void Machine::wrong_space(bool shared, const void* pc) {
  report("space",
         str(who(*now_), ": an address that is taken for one of ", shared ? "shared" : "global",
             " memory, which it is not (%1)"),
         pc);
  stop();
}

void* Machine::map_shared(const void* p, uint32_t rank, const void* pc) {
  if (launch_.cooperative || rank >= gang_blocks_) {
    report("cluster",
           str(who(*now_), ": block ", rank, " of a cluster of ", launch_.cooperative ? 1 : gang_blocks_, " (%1)"), pc);
    stop();
  }
  const intptr_t offset = static_cast<const char*>(p) - now_->of->shared;
  if (offset < 0 || offset > launch_.shared_bytes) {
    report("cluster", str(who(*now_), ": map_shared of an address that is not in the block's shared memory (%1)"), pc);
    stop();
  }
  return blocks_[rank].shared + offset + shared_memory_.distance();
}

}  // namespace flashinfer::emu
