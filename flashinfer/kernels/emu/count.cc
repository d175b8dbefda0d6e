// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/kernels/emu/count.h"

#include "flashinfer/core/int_math.h"

#include <algorithm>
#include <sstream>
#include <utility>

namespace flashinfer::emu {

void Counter::log(WarpLog& log, uint32_t lane, uint32_t pc, uintptr_t at, uint32_t bytes, bool shared, bool write) {
  log.list.push_back({pc, bytes, at, 0, static_cast<uint8_t>(lane), shared, write});
}

void Counter::close(WarpLog& log) {
  std::vector<Logged>& list = log.list;
  if (list.empty()) return;
  const auto instruction = [](const Logged& a) {
    return uint64_t{a.pc} << 2 | (a.shared ? 2u : 0u) | (a.write ? 1u : 0u);
  };
  // By instruction and lane, in the order of execution: the n-th executions of all lanes belong together.
  std::stable_sort(list.begin(), list.end(), [&](const Logged& a, const Logged& b) {
    return instruction(a) != instruction(b) ? instruction(a) < instruction(b) : a.lane < b.lane;
  });
  for (size_t i = 1; i < list.size(); ++i)
    if (instruction(list[i]) == instruction(list[i - 1]) && list[i].lane == list[i - 1].lane)
      list[i].nth = list[i - 1].nth + 1;
  const auto key = [&](const Logged& a) { return std::pair(instruction(a), a.nth); };
  std::stable_sort(list.begin(), list.end(), [&](const Logged& a, const Logged& b) { return key(a) < key(b); });
  for (size_t i = 0, j; i < list.size(); i = j) {
    for (j = i + 1; j < list.size() && key(list[j]) == key(list[i]);) ++j;
    request(list.data() + i, list.data() + j);
  }
  list.clear();
}

namespace {
/// Distinct units of 2^shift bytes touched by the accesses of [first, last), ascending.
template <class Keep>
const std::vector<uintptr_t>& units_of(const Logged* first, const Logged* last, int shift, Keep keep) {
  static std::vector<uintptr_t> units;  // one run at a time
  units.clear();
  for (const Logged* a = first; a != last; ++a)
    if (keep(*a))
      for (uintptr_t u = a->at >> shift; u <= (a->at + a->bytes - 1) >> shift; ++u)
        if (units.empty() || units.back() != u) units.push_back(u);
  std::sort(units.begin(), units.end());
  units.erase(std::unique(units.begin(), units.end()), units.end());
  return units;
}
}  // namespace

/// Global memory moves sectors of 32 bytes. Shared memory has 32 banks of 4 bytes: in one pass each bank delivers one
/// word (to any number of lanes); wide accesses are split into phases of 128 bytes: 32 lanes of up to 4 bytes, 16 of 8,
/// 8 of 16.
void Counter::request(const Logged* first, const Logged* last) {
  Line& line = lines_[{first->pc, first->shared}];
  ++line.requests;
  line.shared = first->shared, line.write = first->write;
  uint64_t bytes = 0, units = 0, least = 0;
  for (const Logged* a = first; a != last; ++a) bytes += a->bytes;
  if (!first->shared) {
    const auto all = [](const Logged&) { return true; };
    const int fine =
        first->bytes % 4 == 0 && first->at % 4 == 0 ? 2 : 0;  // distinct bytes, by words where accesses are words
    least = ceil_div(units_of(first, last, fine, all).size() << fine, 32);
    units = units_of(first, last, 5, all).size();
    ++counts_.global_requests;
    (first->write ? counts_.global_store_bytes : counts_.global_load_bytes) += bytes;
    (first->write ? counts_.global_store_sectors : counts_.global_load_sectors) += units;
    (first->write ? counts_.least_store_sectors : counts_.least_load_sectors) += least;
  } else {
    const uint32_t lanes = first->bytes >= 16 ? 8 : first->bytes >= 8 ? 16 : 32;
    for (uint32_t phase = 0; phase < 32 / lanes; ++phase) {
      const auto& words = units_of(first, last, 2, [&](const Logged& a) { return a.lane / lanes == phase; });
      uint32_t bank[32] = {}, worst = 0;
      for (const uintptr_t w : words) worst = std::max(worst, ++bank[w % 32]);
      units += worst, least += ceil_div(words.size(), 32);
    }
    ++counts_.shared_requests;
    (first->write ? counts_.shared_store_bytes : counts_.shared_load_bytes) += bytes;
    counts_.shared_passes += units;
    counts_.least_shared_passes += least;
  }
  line.units += units;
  line.least += least;
}

Counts Counter::result(Lines& lines) const {
  Counts c = counts_;
  const auto warps = [&](Count what) { return lanes_[static_cast<uint32_t>(what)] / 32; };
  c.mma = warps(Count::kMma), c.matrix = warps(Count::kMatrix), c.shuffles = warps(Count::kShuffle),
  c.votes = warps(Count::kVote);
  c.barriers = warps(Count::kBarrier), c.async_copies = warps(Count::kAsyncCopy), c.atomics = warps(Count::kAtomic);
  c.special = warps(Count::kSpecial);
  std::vector<const void*> pcs;
  for (const auto& [key, line] : lines_) pcs.push_back(lines.pc(key.first));
  lines.load(pcs);
  for (const auto& [key, line] : lines_)
    c.lines.push_back({lines.at(lines.pc(key.first)), line.requests, line.units, line.least, line.shared, line.write});
  std::stable_sort(c.lines.begin(), c.lines.end(),
                   [](const LineCount& a, const LineCount& b) { return a.units > b.units; });
  return c;
}

std::string Counts::text() const {
  std::ostringstream s;
  s << "global: " << global_requests << " requests, loads " << global_load_bytes << " bytes in " << global_load_sectors
    << " sectors (least " << least_load_sectors << "), stores " << global_store_bytes << " bytes in "
    << global_store_sectors << " sectors (least " << least_store_sectors << ")\nshared: " << shared_requests
    << " requests, " << shared_load_bytes << " bytes read, " << shared_store_bytes << " written, " << shared_passes
    << " passes, of them " << bank_conflicts() << " for bank conflicts\nwarp instructions: mma " << mma
    << ", ldmatrix and stmatrix " << matrix << ", shuffles " << shuffles << ", votes " << votes << ", barriers "
    << barriers << ", cp.async " << async_copies << ", atomics " << atomics << ", special functions " << special
    << "\n";
  for (const LineCount& l : lines)
    s << "  " << (l.shared ? "shared " : "global ") << (l.write ? "write " : "read  ") << l.requests << " requests, "
      << l.units << (l.shared ? " passes" : " sectors") << " (least " << l.least << ") at " << l.where << "\n";
  return s.str();
}

}  // namespace flashinfer::emu
