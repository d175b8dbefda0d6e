// SPDX-License-Identifier: Apache-2.0
// Race detection with vector clocks and FastTrack cells (Flanagan and Freund, 2009). Only barriers, __syncwarp and
// atomics order threads: shuffles and mma do not.
#pragma once
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace flashinfer::emu {

/// One access: thread `thread` of gang `gang` at time `clock` of its own.
struct Touch {
  uint32_t gang = 0;  // 0: none
  int32_t clock = 0;
  uint32_t pc = 0;
  uint16_t thread = 0;
  uint16_t atomic = 0;
};
/// The last write and the last reads of a granule: 64 bytes, a cache line.
struct Cell {
  Touch write, read[3];
};

/// Cells of 4096 bytes. Granules start at 16 bytes and are split when an access needs finer ones: f32 kernels use 4,
/// bf16 kernels 2.
struct Page {
  uint8_t log2 = 4;
  std::vector<Cell> cells;
  Page() : cells(4096 >> 4) {}
  void refine(uint8_t to);
};
class PageMap {
 public:
  explicit PageMap(bool per_gang_) : per_gang(per_gang_) {}
  static constexpr size_t kMostPages = 1 << 14;  // 64 MB of memory; accesses beyond are not checked
  const bool per_gang;                           // shared memory: accesses of earlier gangs are dropped
  /// Null when the limit is reached.
  Page* page(uintptr_t at);
  void clear() { pages_.clear(), last_ = nullptr, last_at_ = ~uintptr_t{0}; }

 private:
  std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages_;
  uintptr_t last_at_ = ~uintptr_t{0};
  Page* last_ = nullptr;
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

}  // namespace flashinfer::emu
