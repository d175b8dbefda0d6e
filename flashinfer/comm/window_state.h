// SPDX-License-Identifier: Apache-2.0
// What lies in a window's memory, and what a rank knows of it.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "flashinfer/comm/window.h"
#include "flashinfer/core/int_math.h"

namespace flashinfer::comm {

enum class Presence : uint32_t { kThere, kLeft, kFailed };

/// The first page of each rank's part. Only its rank writes it, but for `sleepers`.
struct RankPage {
  /// The last phase that the rank has published; others sleep on its low word.
  alignas(64) std::atomic<uint64_t> epoch;
  alignas(64) std::atomic<uint32_t> sleepers;  // ranks that sleep, or are about to
  std::atomic<Presence> presence;
  char reason[512];  // of kFailed
  /// Of the last phases: phase e is compared before any rank can publish e + 2, so two would do.
  alignas(64) Signature signatures[4];
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
  /// Maps the memory and allocates this rank's part of it, from the memory of this process's node. RuntimeError.
  State(std::shared_ptr<Group> group, int memory, int64_t bytes);
  ~State();
  RankPage& page(int rank) const {
    return *reinterpret_cast<RankPage*>(base + layout.stride * static_cast<size_t>(rank));
  }
  /// Throws, now and in later calls of any rank.
  [[noreturn]] void fail(const std::string& reason);
  /// Throws when a rank of `among` that has not published `epoch` never will.
  void check_others(uint64_t epoch, uint64_t among);
  void wait_for(int rank, uint64_t epoch, uint64_t among);

  std::shared_ptr<Group> group;
  int64_t bytes;
  WindowLayout layout;
  std::byte* base = nullptr;
  uint64_t epoch = 0;
  Signature last{};
  int process;
  std::string failed{};
};

}  // namespace flashinfer::comm
