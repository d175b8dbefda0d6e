// SPDX-License-Identifier: Apache-2.0
// Memory of a group: `bytes` a rank, which every rank can read, and a counter a rank with which one says that what it
// wrote may be read. On one machine it is shared memory. Else each rank has an image of all ranks' memory, and put()
// says which bytes of it the others need.
//
// A collective call is phases of: write to your own memory, put(), publish(), wait(), read the others' memory. Counters
// only grow, so no value in the memory has a meaning and nothing is reset. A rank that has passed wait(e) knows that
// all have published e, hence left the reads of phase e - 1: memory that alternates between two halves needs one phase
// a call.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "flashinfer/comm/group.h"

#pragma GCC visibility push(default)

namespace flashinfer::comm {

/// What a rank does in a phase. All ranks must publish the same; a difference is an error on every rank.
struct Signature {
  static constexpr int kNumbers = 8;
  int64_t number[kNumbers] = {};
  friend bool operator==(const Signature&, const Signature&) = default;
};
/// A call as an error names it: "allreduce_fusion(pattern=1, input=[8, 64] bfloat16)".
using Describe = std::string (*)(const Signature&);

class Window {
 public:
  ~Window();  // tells the others that this rank is gone; their mappings stay valid
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  const Group& group() const;
  int64_t bytes() const;
  /// The memory of a rank, aligned to a page; without shared memory, this rank's image of it.
  std::byte* of(int rank) const;
  std::byte* own() const { return of(group().rank()); }
  /// Whether all ranks map the same memory: then put() does nothing.
  bool is_shared() const;

  /// Bytes [offset, offset + bytes) of of(owner), as this rank wrote them, are there in rank `to` when it has waited
  /// for the phase that this rank publishes next. Until all have published the one after that, they must not change
  /// here.
  void put(int to, int owner, int64_t offset, int64_t bytes);
  /// put() of own() to all other ranks.
  void put_to_all(int64_t offset, int64_t bytes);

  /// The last phase that this rank has published, the same on all ranks between two calls. Waits for the ranks that
  /// have not reached it, if it was abandoned.
  uint64_t phase();
  /// Makes what this rank wrote before visible to all; returns the number of the phase. Ranks take part in the same
  /// phases in the same order, publish the next one after they have waited for the last; one thread of a rank at a
  /// time.
  uint64_t publish(const Signature& call);
  /// Returns when every rank has published phase `epoch`. GroupError: a rank published another call (`describe` names
  /// both), died, left, failed, or did not arrive in time; then the window stays failed, on all ranks. Or a rank has
  /// abandoned the phase; then all go on with the next. Ranks whose bit in `among` is 0 (dead ones, say) are not waited
  /// for.
  void wait(uint64_t epoch, Describe describe, uint64_t among = ~uint64_t{0});
  /// This rank has met an error in a call that the others make or will make: its next phase is one that all others
  /// leave with a GroupError that has the reason. Does not wait for them, but for ranks that lag three phases behind.
  void abandon(const std::string& reason);

 private:
  friend class Group;
  struct State;
  explicit Window(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace flashinfer::comm

#pragma GCC visibility pop
