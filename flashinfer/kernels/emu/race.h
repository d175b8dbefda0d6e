// SPDX-License-Identifier: Apache-2.0
// Race detection with vector clocks and a cell for each piece of memory, after FastTrack (Flanagan and Freund, 2009).
// What orders threads: barriers, sync_warp, atomics that acquire or release, fences (order.cc). Shuffles and mma do
// not.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

namespace flashinfer::emu {

/// The last plain write: by thread `thread` of gang `gang` at time `clock` of its own.
struct Touch {
  uint32_t gang = 0;  // 0: none
  int32_t clock = 0;
  uint32_t pc = 0;
  uint32_t thread = 0;
};

enum UseKind : uint8_t {
  kPlainRead,
  kLoadOfSystem,
  kLoadOfGpu,
  kLoadOfBlock,
  kAtomicOfSystem,
  kAtomicOfGpu,
  kAtomicOfBlock
};
/// Reads or atomics of a warp's lanes at one time of theirs.
struct Use {
  int32_t clock = 0;
  uint32_t pc = 0, lanes = 0;  // no lanes: free
  uint16_t first = 0;          // thread of lane 0
  uint8_t kind = kPlainRead;   // UseKind
  uint8_t bytes = 0;           // of an atomic
};
struct PastUse : Use {
  uint32_t gang = 0;
};
/// Uses beyond the two in the cell, and those of earlier gangs.
struct MoreUses {
  std::vector<Use> now;
  std::vector<PastUse> past;
};

/// A granule: the last plain write and all reads and atomics since then that are not ordered before later ones. A cache
/// line.
struct alignas(64) Cell {
  Touch write;
  Use use[2];
  uint32_t gang = 0;     // of the uses
  uint32_t more = 0;     // 1 + index of MoreUses; 0: none
  uint32_t flying = 0;   // copies in flight that read it
  bool atomics = false;  // among the uses
};

/// Cells of 4096 bytes. Granules start at 16 bytes and are split when an access needs finer ones: f32 kernels use 4,
/// bf16 kernels 2.
struct Page {
  uint8_t log2 = 4;
  std::vector<Cell> cells;
  Page() : cells(4096 >> 4) {}
};
class PageMap {
 public:
  explicit PageMap(bool per_gang_) : per_gang(per_gang_) {}
  // 64 MB of memory, and more as long as its cells take 1 GB (256 MB in pieces of 16 bytes); accesses beyond are not
  // checked.
  static constexpr size_t kMostPages = 1 << 14, kMostCells = (size_t{1} << 30) / sizeof(Cell);
  const bool per_gang;  // shared memory: accesses of earlier gangs are dropped
  /// Null when the limit is reached.
  Page* page(uintptr_t at);
  void refine(Page& page, uint8_t to);
  MoreUses& more(Cell& c);
  MoreUses* more_or_null(const Cell& c) { return c.more ? more_[c.more - 1].get() : nullptr; }
  /// Prepares the cell for a gang after the one whose uses it holds. `exact`: all uses of earlier gangs are kept,
  /// because a gang may be ordered after some of them; else one of each kind, which orders nothing.
  void next_gang(Cell& c, uint32_t gang, bool exact);

 private:
  std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages_;
  size_t cells_ = 0;  // of all pages
  std::vector<std::unique_ptr<MoreUses>> more_;
  struct Recent {
    uintptr_t key = ~uintptr_t{0};
    Page* page = nullptr;
  };
  Recent recent_[64];  // by the last bits of the key
};

/// Vector clocks of the threads of a gang. Never reset: time continues from gang to gang.
class Clocks {
 public:
  void resize(size_t threads);
  size_t size() const { return n_; }
  int32_t* of(size_t t) { return all_.data() + t * n_; }
  const int32_t* of(size_t t) const { return all_.data() + t * n_; }
  /// Advances the thread's own clock: later events are distinct from earlier ones.
  void tick(size_t t) { ++of(t)[t]; }
  void join(std::vector<int32_t>& into, size_t t) const;
  void take(size_t t, const std::vector<int32_t>& from);

 private:
  size_t n_ = 0;
  std::vector<int32_t> all_;
};

/// Clocks of the threads of earlier gangs, up to which their accesses are ordered before something.
using PastGangs = std::map<uint32_t, std::shared_ptr<const std::vector<int32_t>>>;
void join(PastGangs& into, const PastGangs& from);

/// What is ordered before a release: accesses of the running gang's threads up to these clocks, and of earlier gangs.
struct Knowledge {
  std::vector<int32_t> clock;  // empty: nothing
  PastGangs past;
  bool empty() const { return clock.empty() && past.empty(); }
};
void join(Knowledge& into, const Knowledge& from);

}  // namespace flashinfer::emu
