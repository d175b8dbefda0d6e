// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/kernels/emu/race.h"

#include <algorithm>

namespace flashinfer::emu {

void Page::refine(uint8_t to) {
  std::vector<Cell> finer(size_t{4096} >> to);
  for (size_t i = 0; i < finer.size(); ++i) finer[i] = cells[i >> (log2 - to)];
  cells.swap(finer);
  log2 = to;
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
  for (size_t i = 0; i < n_; ++i) to[i] = std::max(to[i], from[i]);
}

}  // namespace flashinfer::emu
