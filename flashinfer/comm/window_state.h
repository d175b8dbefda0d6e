// SPDX-License-Identifier: Apache-2.0
// What lies in a window's memory, and what a rank knows of it.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "flashinfer/comm/transport.h"
#include "flashinfer/comm/window.h"
#include "flashinfer/core/int_math.h"

namespace flashinfer::comm {

enum class Presence : uint32_t { kThere, kLeft, kFailed };

/// Never 0, which stands for an abandoned phase.
uint64_t hash_of(const Signature& s);

/// Phases whose calls are kept. Phase e is compared before any rank can publish e + 2; the others hold phases that a
/// rank has abandoned one after another.
inline constexpr int kKeptPhases = 4;
inline size_t kept(uint64_t epoch) { return epoch % kKeptPhases; }

/// What the others poll: one cache line, so that a phase costs one transfer of it.
struct alignas(64) Flag {
  /// By kept(): the hash of the phase's signature; 0: abandoned.
  std::atomic<uint64_t> call[kKeptPhases];
  /// The last phase that the rank has published; others sleep on its low word. Behind `call`: a socket may hand over a
  /// part of the flag's bytes, the first ones.
  std::atomic<uint64_t> epoch;
};
static_assert(offsetof(Flag, epoch) > offsetof(Flag, call));
/// The first page of each rank's part. Only its rank writes it, but for `sleepers`.
struct RankPage {
  Flag flag;
  alignas(64) std::atomic<uint32_t> sleepers;  // ranks that sleep, or are about to
  std::atomic<Presence> presence;
  char reason[512];  // of kFailed
  /// By kept(): the calls, for messages, and why they were abandoned.
  alignas(64) Signature signatures[kKeptPhases];
  char abandoned[kKeptPhases][512];
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<Presence>::is_always_lock_free);

struct WindowLayout {
  WindowLayout(int64_t bytes, int ranks)
      : stride(kPage + static_cast<size_t>(round_up(bytes, int64_t{kPage}))),
        total(stride * static_cast<size_t>(ranks)) {}
  static constexpr size_t kPage = 4096;
  size_t stride, total;
};
static_assert(sizeof(RankPage) <= WindowLayout::kPage);

struct Window::State {
  State(std::shared_ptr<Group> group, std::unique_ptr<Transport> transport, int64_t bytes);
  ~State();
  RankPage& page(int rank) const {
    return *reinterpret_cast<RankPage*>(base + layout.stride * static_cast<size_t>(rank));
  }
  RankPage& own() const { return page(group->rank()); }
  /// A part of this rank's page to all others.
  void post(const void* part, size_t n);
  void tell_presence(Presence presence);
  /// Returns when all of `among` have what was put for them, or never will.
  void flush(uint64_t among);
  void check_usable() const;
  /// Throws, now and in later calls of any rank.
  [[noreturn]] void fail(const std::string& reason);
  std::string why_gone(int rank) const;
  /// Throws when a rank of `among` that has not published `epoch` never will.
  void check_others(uint64_t epoch, uint64_t among);
  void wait_for(int rank, uint64_t epoch, uint64_t among);
  /// Returns when all ranks of the last wait have published `epoch`, whatever they called.
  void wait_for_all(uint64_t epoch);
  /// After an abandoned phase: returns when all ranks have reached it.
  void settle();
  void publish(uint64_t hash);

  std::shared_ptr<Group> group;
  int64_t bytes;
  WindowLayout layout;
  std::unique_ptr<Transport> transport;
  std::byte* base;
  bool shared;  // all ranks have one image
  uint64_t epoch = 0;
  uint64_t among = ~uint64_t{0};  // of the last wait
  bool spins;                     // no rank needs the core of another
  bool unmatched = false;         // the last phase ended in an error: others may not have reached it
  int process;
  uint32_t forks;
  std::string failed{};
};

}  // namespace flashinfer::comm
