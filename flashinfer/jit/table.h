// SPDX-License-Identifier: Apache-2.0
// The lookup on the launch path: config -> kernel. One hash of the config's bytes and one probe of an open-addressing
// table that readers use without a lock; entries are never changed or freed once published (a kernel lives as long as
// the process).
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <type_traits>

#pragma GCC visibility push(default)

namespace flashinfer::jit {

struct Loaded;

namespace detail {

/// Hashes two words to one with the multiply-and-fold of wyhash: full avalanche for a few cycles.
inline uint64_t fold(uint64_t a, uint64_t b) {
  __extension__ using u128 = unsigned __int128;
  const u128 product = static_cast<u128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

template <class Config>
uint64_t hash_bytes(const Config& config) {
  constexpr uint64_t kA = 0x9e3779b97f4a7c15u, kB = 0xd1b54a32d192ed03u;
  constexpr size_t kWords = sizeof(Config) / 8, kRest = sizeof(Config) % 8;
  const char* bytes = reinterpret_cast<const char*>(&config);
  uint64_t h = kA ^ sizeof(Config);
  for (size_t i = 0; i < kWords; ++i) {
    uint64_t word;
    std::memcpy(&word, bytes + 8 * i, 8);
    h = fold(h ^ word, kB);
  }
  if constexpr (kRest != 0) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + 8 * kWords, kRest);
    h = fold(h ^ word, kB);
  }
  return h;
}

/// All tables share this lock for writing, which is rare.
std::mutex& table_mutex();
/// Empties all tables; returns the number of hits of their lookups.
void forget_tables();
uint64_t count_memory_hits();

/// Common part of the tables of all Config types: membership in the list that reset() empties. Constant-initialised,
/// never destroyed.
class TableBase {
 public:
  constexpr explicit TableBase(void (*forget)(TableBase*)) : forget_(forget) {}
  TableBase(const TableBase&) = delete;
  TableBase& operator=(const TableBase&) = delete;

 protected:
  friend void forget_tables();
  friend uint64_t count_memory_hits();
  void (*forget_)(TableBase*);
  TableBase* next_ = nullptr;
  bool listed_ = false;
  /// Updated by relaxed load and store without a locked add, which would cost as much as the lookup: exact while one
  /// thread launches, a lower bound otherwise.
  mutable std::atomic<uint64_t> hits_{0};
};

/// Adds the table to the list of all tables, once. Requires the lock.
void enlist(TableBase* table, bool& listed, TableBase*& next);

template <class Config>
class Table : public TableBase {
 public:
  constexpr Table() : TableBase([](TableBase* t) { static_cast<Table*>(t)->forget(); }) {}

  const Loaded* find(const Config& config, uint64_t hash) const {
    const Slots* slots = slots_.load(std::memory_order_acquire);
    if (slots == nullptr) return nullptr;
    for (uint64_t i = hash;; ++i) {
      const Node* node = slots->node[i & slots->mask].load(std::memory_order_acquire);
      if (node == nullptr) return nullptr;
      if (std::memcmp(&node->config, &config, sizeof(Config)) == 0) {
        hits_.store(hits_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        return node->loaded;
      }
    }
  }

  /// `loaded` must live as long as the process. The second insertion of a config is ignored.
  void insert(const Config& config, uint64_t hash, const Loaded* loaded) {
    const std::lock_guard lock(table_mutex());
    enlist(this, listed_, next_);
    const Slots* slots = slots_.load(std::memory_order_relaxed);
    if (slots == nullptr || 2 * (count_ + 1) > slots->mask + 1) slots = grow(slots);
    for (uint64_t i = hash;; ++i) {
      std::atomic<const Node*>& slot = slots->node[i & slots->mask];
      const Node* node = slot.load(std::memory_order_relaxed);
      if (node != nullptr && std::memcmp(&node->config, &config, sizeof(Config)) == 0) return;
      if (node != nullptr) continue;
      slot.store(new Node{config, loaded, hash}, std::memory_order_release);
      ++count_;
      return;
    }
  }

 private:
  struct Node {
    Config config;
    const Loaded* loaded;
    uint64_t hash;
  };
  struct Slots {
    uint64_t mask;
    std::atomic<const Node*>* node;
    const Slots*
        older;  // outgrown or dropped arrays stay: a reader may still use one. Together at most twice the last.
  };

  const Slots* grow(const Slots* old) {
    const uint64_t capacity = old == nullptr ? 16 : 2 * (old->mask + 1);
    auto* slots = new Slots{capacity - 1, new std::atomic<const Node*>[capacity] {}, old};
    for (uint64_t k = 0; old != nullptr && k <= old->mask; ++k) {
      const Node* node = old->node[k].load(std::memory_order_relaxed);
      if (node == nullptr) continue;
      uint64_t i = node->hash;
      while (slots->node[i & slots->mask].load(std::memory_order_relaxed) != nullptr) ++i;
      slots->node[i & slots->mask].store(node, std::memory_order_relaxed);
    }
    slots_.store(slots, std::memory_order_release);
    return slots;
  }

  /// Requires the lock. The old array stays reachable for leak checkers.
  void forget() {
    const Slots* old = slots_.load(std::memory_order_relaxed);
    if (old == nullptr) return;
    slots_.store(new Slots{15, new std::atomic<const Node*>[16]{}, old}, std::memory_order_release);
    count_ = 0;
  }

  std::atomic<const Slots*> slots_{nullptr};
  uint64_t count_ = 0;
};

}  // namespace detail
}  // namespace flashinfer::jit

#pragma GCC visibility pop
