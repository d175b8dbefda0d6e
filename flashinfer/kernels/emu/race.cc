// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/kernels/emu/race.h"

#include <algorithm>
#include <utility>

namespace flashinfer::emu {
namespace {
/// The later of each two clocks. A barrier of n threads takes 2 n of these, of n clocks each: scalar, that is more than
/// its switches from 256 threads on.
#if defined(__x86_64__) && defined(__linux__)
__attribute__((target_clones("avx2", "default")))
#endif
void take_later(int32_t* __restrict to, const int32_t* __restrict from, size_t n) {
  for (size_t i = 0; i < n; ++i) to[i] = std::max(to[i], from[i]);
}
}  // namespace

void PageMap::refine(Page& page, uint8_t to) {
  std::vector<Cell> finer(size_t{4096} >> to);
  for (size_t i = 0; i < finer.size(); ++i) {
    const Cell& from = page.cells[i >> (page.log2 - to)];
    finer[i] = from;
    if (from.more == 0 || i << to == (i >> (page.log2 - to)) << page.log2) continue;
    finer[i].more = 0;
    const MoreUses copy = *more_or_null(from);
    more(finer[i]) = copy;
  }
  cells_ += finer.size() - page.cells.size();
  page.cells.swap(finer);
  page.log2 = to;
}

Page* PageMap::page(uintptr_t at) {
  const uintptr_t key = at >> 12;
  Recent& recent = recent_[key % std::size(recent_)];
  if (recent.key == key) return recent.page;
  auto found = pages_.find(key);
  if (found == pages_.end()) {
    if (pages_.size() >= kMostPages && cells_ >= kMostCells) return nullptr;
    found = pages_.emplace(key, std::make_unique<Page>()).first;
    cells_ += found->second->cells.size();
  }
  recent = {key, found->second.get()};
  return recent.page;
}

MoreUses& PageMap::more(Cell& c) {
  if (c.more == 0) {
    more_.push_back(std::make_unique<MoreUses>());
    c.more = static_cast<uint32_t>(more_.size());
  }
  return *more_[c.more - 1];
}

void PageMap::next_gang(Cell& c, uint32_t gang, bool exact) {
  const uint32_t of = std::exchange(c.gang, gang);
  MoreUses* m = more_or_null(c);
  if (per_gang) {
    c.write.gang = 0, c.flying = 0, c.atomics = false;
    if (m) m->now.clear();
  } else {
    const auto keep = [&](const Use& u) {
      if (u.lanes == 0) return;
      m = &more(c);
      const auto same = [&](const PastUse& p) { return p.kind == u.kind && p.bytes == u.bytes; };
      if (!exact && std::any_of(m->past.begin(), m->past.end(), same)) return;
      m->past.push_back({u, of});
    };
    for (const Use& u : c.use) keep(u);
    if (m)
      for (const Use& u : m->now) keep(u);
    if (m) m->now.clear();
  }
  for (Use& u : c.use) u.lanes = 0;
}

void Clocks::resize(size_t threads) {
  n_ = threads;
  all_.assign(threads * threads, 0);
  for (size_t t = 0; t < threads; ++t) of(t)[t] = 1;
}
void Clocks::join(std::vector<int32_t>& into, size_t t) const {
  into.resize(n_);
  take_later(into.data(), of(t), n_);
}
void Clocks::take(size_t t, const std::vector<int32_t>& from) { take_later(of(t), from.data(), from.size()); }

void join(PastGangs& into, const PastGangs& from) {
  for (const auto& [gang, clock] : from) {
    auto& mine = into[gang];
    if (mine == clock) continue;
    if (!mine) {
      mine = clock;
      continue;
    }
    auto both = std::make_shared<std::vector<int32_t>>(*mine);
    take_later(both->data(), clock->data(), both->size());
    mine = std::move(both);
  }
}

void join(Knowledge& into, const Knowledge& from) {
  into.clock.resize(std::max(into.clock.size(), from.clock.size()));
  take_later(into.clock.data(), from.clock.data(), from.clock.size());
  join(into.past, from.past);
}

}  // namespace flashinfer::emu
