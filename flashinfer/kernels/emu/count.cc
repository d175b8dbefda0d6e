// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/kernels/emu/count.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <tuple>

namespace flashinfer::emu {

void Counter::log(WarpLog& log, uint32_t lane, uint32_t pc, uintptr_t at, uint32_t bytes, bool shared, bool write) {
  const uint32_t nth = log.nth[uint64_t{pc} << 8 | lane << 2 | (shared ? 2u : 0u) | (write ? 1u : 0u)]++;
  log.list.push_back({pc, bytes, at, nth, static_cast<uint8_t>(lane), shared, write});
}

void Counter::close(WarpLog& log) {
  if (log.list.empty()) return;
  const auto key = [](const Logged& a) { return std::tuple(a.pc, a.shared, a.write, a.nth); };
  std::stable_sort(log.list.begin(), log.list.end(),
                   [&](const Logged& a, const Logged& b) { return std::tuple(key(a), a.lane) < std::tuple(key(b), b.lane); });
  for (size_t i = 0, j; i < log.list.size(); i = j) {
    for (j = i + 1; j < log.list.size() && key(log.list[j]) == key(log.list[i]);) ++j;
    request(log.list.data() + i, log.list.data() + j);
  }
  log.list.clear();
  log.nth.clear();
}

/// Global memory moves sectors of 32 bytes. Shared memory has 32 banks of 4 bytes: a pass serves each bank one word (any number of
/// lanes); wide accesses are taken in phases of 128 bytes: 32 lanes of up to 4 bytes, 16 of 8, 8 of 16.
void Counter::request(const Logged* first, const Logged* last) {
  Line& line = lines_[{first->pc, first->shared}];
  ++line.requests;
  line.shared = first->shared, line.write = first->write;
  uint64_t bytes = 0;
  for (const Logged* a = first; a != last; ++a) bytes += a->bytes;
  uint64_t units = 0, least = 0;
  if (!first->shared) {
    std::set<uintptr_t> sectors, pieces;  // pieces: distinct 4-byte words
    for (const Logged* a = first; a != last; ++a) {
      for (uintptr_t s = a->at / 32; s <= (a->at + a->bytes - 1) / 32; ++s) sectors.insert(s);
      for (uintptr_t s = a->at; s < a->at + a->bytes; ++s) pieces.insert(s);
    }
    units = sectors.size(), least = (pieces.size() + 31) / 32;
    ++counts_.global_requests;
    (first->write ? counts_.global_store_bytes : counts_.global_load_bytes) += bytes;
    (first->write ? counts_.global_store_sectors : counts_.global_load_sectors) += units;
    (first->write ? counts_.least_store_sectors : counts_.least_load_sectors) += least;
  } else {
    const uint32_t lanes = first->bytes >= 16 ? 8 : first->bytes >= 8 ? 16 : 32;
    for (uint32_t phase = 0; phase < 32 / lanes; ++phase) {
      std::set<uintptr_t> words[32], all;
      for (const Logged* a = first; a != last; ++a) {
        if (a->lane / lanes != phase) continue;
        for (uintptr_t w = a->at / 4; w <= (a->at + a->bytes - 1) / 4; ++w) words[w % 32].insert(w), all.insert(w);
      }
      size_t worst = 0;
      for (const auto& bank : words) worst = std::max(worst, bank.size());
      units += worst, least += (all.size() + 31) / 32;
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
  c.mma = warps(Count::kMma), c.matrix = warps(Count::kMatrix), c.shuffles = warps(Count::kShuffle), c.votes = warps(Count::kVote);
  c.barriers = warps(Count::kBarrier), c.async_copies = warps(Count::kAsyncCopy), c.atomics = warps(Count::kAtomic);
  c.special = warps(Count::kSpecial);
  std::vector<const void*> pcs;
  for (const auto& [key, line] : lines_) pcs.push_back(lines.pc(key.first));
  lines.load(pcs);
  for (const auto& [key, line] : lines_)
    c.lines.push_back({lines.at(lines.pc(key.first)), line.requests, line.units, line.least, line.shared, line.write});
  std::stable_sort(c.lines.begin(), c.lines.end(), [](const LineCount& a, const LineCount& b) { return a.units > b.units; });
  return c;
}

std::string Counts::text() const {
  std::ostringstream s;
  s << "global: " << global_requests << " requests, loads " << global_load_bytes << " bytes in " << global_load_sectors << " sectors (least "
    << least_load_sectors << "), stores " << global_store_bytes << " bytes in " << global_store_sectors << " sectors (least "
    << least_store_sectors << ")\nshared: " << shared_requests << " requests, " << shared_load_bytes << " bytes read, " << shared_store_bytes
    << " written, " << shared_passes << " passes, of them " << bank_conflicts() << " for bank conflicts\nwarp instructions: mma " << mma
    << ", ldmatrix and stmatrix " << matrix << ", shuffles " << shuffles << ", votes " << votes << ", barriers " << barriers << ", cp.async "
    << async_copies << ", atomics " << atomics << ", special functions " << special << "\n";
  for (const LineCount& l : lines)
    s << "  " << (l.shared ? "shared " : "global ") << (l.write ? "write " : "read  ") << l.requests << " requests, " << l.units
      << (l.shared ? " passes" : " sectors") << " (least " << l.least << ") at " << l.where << "\n";
  return s.str();
}

}  // namespace flashinfer::emu
