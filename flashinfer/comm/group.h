// SPDX-License-Identifier: Apache-2.0
// The processes (or threads) of one machine that make the same collective calls in the same order, as SPMD programs do.
//
// They meet at a socket in the abstract namespace of Unix sockets, named after the group and the user: nothing is left
// in the file system, whatever kills a process. Rank 0 listens; the others stay connected to it, which carries small
// messages (`exchange`) and file descriptors. Tensors go through windows (window.h), which are anonymous shared memory.
//
// A rank that dies is noticed by the others at once (its process descriptor becomes readable, its connection ends), one
// that never arrives after FLASHINFER_COMM_TIMEOUT_S seconds; both are a RuntimeError that names the call, the rank and
// the reason, on every rank. A group that has failed stays failed, because its ranks no longer agree on what comes
// next.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "flashinfer/core/check.h"

namespace flashinfer::comm {

class Window;

/// What ranks of a group throw together: the others know of it already.
struct GroupError : RuntimeError {
  using RuntimeError::RuntimeError;
};

/// Ranks of a group: at most this many.
inline constexpr int kMaxRanks = 64;

class Group : public std::enable_shared_from_this<Group> {
 public:
  /// Connects the `size` ranks that name the same group; returns when all are there. A name stands for one group at a
  /// time; it may be used again as soon as all its ranks are connected. ValueError: a name that is empty, a size
  /// outside [1, 64], a rank outside [0, size). RuntimeError: a rank that does not arrive in time or dies, another size
  /// or version of this library in another rank, two processes of the same rank.
  static std::shared_ptr<Group> connect(const std::string& name, int rank, int size);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  const std::string& name() const;
  int rank() const;
  int size() const;

  /// Collective: every rank's `bytes`, by rank. `what` names the call; ranks that pass different ones get an error that
  /// has both.
  std::vector<std::string> exchange(std::string_view what, std::string_view bytes);
  /// Collective: returns when all ranks have called it.
  void barrier(std::string_view what = "barrier") { exchange(what, {}); }
  /// Collective: the ranks of one color form a group, in the order of (key, rank).
  std::shared_ptr<Group> split(int color, int key);
  /// Collective: `bytes` of shared memory a rank (window.h).
  std::shared_ptr<Window> window(int64_t bytes);

  /// Why the rank can no longer answer ("rank 2 (process 4711) has ended"), or empty.
  std::string why_gone(int rank) const;

 private:
  struct State;
  explicit Group(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Seconds that a rank waits for others: FLASHINFER_COMM_TIMEOUT_S.
double timeout_seconds();

}  // namespace flashinfer::comm
