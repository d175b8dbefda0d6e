// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/kernels/emu/race.h"

#include <algorithm>
#include <utility>

namespace flashinfer::emu {

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
  page.cells.swap(finer);
  page.log2 = to;
}

Page* PageMap::page(uintptr_t at) {
  const uintptr_t key = at >> 12;
  if (key == last_at_) return last_;
  auto found = pages_.find(key);
  if (found == pages_.end()) {
    if (pages_.size() >= kMostPages) return nullptr;
    found = pages_.emplace(key, std::make_unique<Page>()).first;
  }
  last_at_ = key;
  return last_ = found->second.get();
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
      const auto same = [&](const PastUse& p) { return p.kind == u.kind; };
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
  const int32_t* from = of(t);
  for (size_t i = 0; i < n_; ++i) into[i] = std::max(into[i], from[i]);
}
void Clocks::take(size_t t, const std::vector<int32_t>& from) {
  int32_t* to = of(t);
  for (size_t i = 0; i < from.size(); ++i) to[i] = std::max(to[i], from[i]);
}

void join(PastGangs& into, const PastGangs& from) {
  for (const auto& [gang, clock] : from) {
    auto& mine = into[gang];
    if (mine == clock) continue;
    if (!mine) {
      mine = clock;
      continue;
    }
    auto both = std::make_shared<std::vector<int32_t>>(*mine);
    for (size_t i = 0; i < both->size(); ++i) (*both)[i] = std::max((*both)[i], (*clock)[i]);
    mine = std::move(both);
  }
}

void join(Knowledge& into, const Knowledge& from) {
  into.clock.resize(std::max(into.clock.size(), from.clock.size()));
  for (size_t i = 0; i < from.clock.size(); ++i) into.clock[i] = std::max(into.clock[i], from.clock[i]);
  join(into.past, from.past);
}

}  // namespace flashinfer::emu
