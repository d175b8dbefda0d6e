// SPDX-License-Identifier: Apache-2.0
// The processes (or threads) that make the same collective calls in the same order, as SPMD programs do.
//
// Ranks of one machine meet at a socket in the abstract namespace of Unix sockets, named after the group and the user:
// nothing is left in the file system, whatever kills a process. Others meet by TCP. Rank 0 listens; the others stay
// connected to it, which carries small messages (`exchange`). Tensors go through windows (window.h): anonymous shared
// memory, or an image a rank that TCP or MPI carries bytes to.
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

#pragma GCC visibility push(default)

namespace flashinfer::comm {

class Window;

/// What ranks of a group throw together: the others know of it already.
struct GroupError : RuntimeError {
  using RuntimeError::RuntimeError;
};

/// Ranks of a group: at most this many.
inline constexpr int kMaxRanks = 64;

class Transport;
struct WindowLayout;

class Group : public std::enable_shared_from_this<Group> {
 public:
  /// Connects the `size` ranks that name the same group; returns when all are there. A name is one of
  ///   NAME               ranks of one machine and user
  ///   tcp://HOST:PORT    rank 0 listens there; or what invite() returned in rank 0
  ///   file:///PATH       rank 0 writes its address to this file, which all can read, and removes it when all are there
  ///   mpi://             the ranks of MPI_COMM_WORLD (Open MPI), whose rank and size these must be. MPI is initialised
  ///                      unless it is already
  /// It stands for one group at a time; it may be used again as soon as all its ranks are connected. Any process that
  /// reaches a tcp:// port may connect to it: it is for networks of one's own. ValueError: a name that is empty, a size
  /// outside [1, 64], a rank outside [0, size). RuntimeError: a rank that does not arrive in time or dies, another size
  /// or version of this library in another rank, two processes of the same rank.
  static std::shared_ptr<Group> connect(const std::string& name, int rank, int size);
  /// A name at which this process will be rank 0: an address with a random token, at a free port. FLASHINFER_COMM_HOST:
  /// the host in it; default: the addresses of this machine's interfaces.
  static std::string invite();
  /// The processes (of this machine, by rank) that will connect `name`, as this one does next: one that ends before it
  /// is connected is then an error at once, not after the time limit.
  static void expect(const std::string& name, const std::vector<int>& processes);
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
  /// Collective: `bytes` a rank (window.h). `transport`: shm, tcp, mpi, or auto: shared memory if all ranks are of one
  /// machine, else MPI for a group mpi://, else TCP; empty: FLASHINFER_COMM_TRANSPORT. ValueError: another text;
  /// RuntimeError: one that these ranks cannot use, or that differs between them.
  std::shared_ptr<Window> window(int64_t bytes, const std::string& transport = {});

  /// All ranks are processes of one machine and user.
  bool one_machine() const;
  /// Why the rank can no longer answer ("rank 2 (process 4711) has ended"), or empty.
  std::string why_gone(int rank) const;

 private:
  struct State;
  explicit Group(std::unique_ptr<State> state);
  static void withdraw(const std::string& invitation);
  std::shared_ptr<Group> beside();
  std::unique_ptr<Transport> shared_memory(const std::string& what, const WindowLayout& layout);
  std::unique_ptr<State> state_;
};
/// The name of the group of MPI_COMM_WORLD.
inline constexpr const char* kMpiName = "mpi://";

/// Seconds that a rank waits for others: FLASHINFER_COMM_TIMEOUT_S.
double timeout_seconds();

}  // namespace flashinfer::comm

#pragma GCC visibility pop
