// SPDX-License-Identifier: Apache-2.0
// What a rank knows of its group, for group.cc (messages, windows) and connect.cc.
#pragma once
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "flashinfer/comm/channel.h"
#include "flashinfer/comm/group.h"
#include "flashinfer/core/check.h"

namespace flashinfer::comm {

inline Deadline after(double seconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}
inline std::string process_text(int rank, int process) { return str("rank ", rank, " (process ", process, ")"); }

/// Strings one after another, each behind its length.
inline void append(std::string& to, std::string_view s) {
  const uint64_t n = s.size();
  to.append(reinterpret_cast<const char*>(&n), sizeof n).append(s);
}
inline std::string_view take(std::string_view& from) {
  uint64_t n = 0;
  FI_CHECK(from.size() >= sizeof n, RuntimeError, "a message of another rank is cut");
  std::memcpy(&n, from.data(), sizeof n);
  from.remove_prefix(sizeof n);
  FI_CHECK(from.size() >= n, RuntimeError, "a message of another rank is cut");
  const std::string_view s = from.substr(0, n);
  from.remove_prefix(n);
  return s;
}

/// Where the ranks of a group find rank 0.
struct Meeting {
  std::function<Fd()> listen, connect;  // invalid: another process listens, none does yet
  Fd (*accept)(int listener);
  bool local;                                                            // a Unix socket, which carries descriptors
  std::shared_ptr<std::string> token = std::make_shared<std::string>();  // that the others know
  std::function<void()> done{};                                          // rank 0: all are there
};
/// Of a group's name (Group::connect).
Meeting meeting_of(const std::string& name);

/// A rank that is going to connect.
struct Expected {
  int process = 0;
  Fd end{};            // readable when it has ended; may be invalid
  bool ended = false;  // before `end` was made
};

enum class TransportKind : uint8_t { kShared, kTcp, kMpi };

struct Group::State {
  std::string name;
  int rank, size, process = getpid();
  Meeting meeting{};
  bool by_mpi = false;               // the ranks are those of MPI_COMM_WORLD
  bool one_machine = true;           // and of one user
  std::shared_ptr<Group> beside{};   // the same ranks at a Unix socket, for shared memory
  std::vector<std::string> hosts{};  // by rank; empty: all met at a Unix socket
  std::vector<Fd> channels{};        // of rank 0: to each rank; of another rank: [0], to rank 0
  std::vector<int> processes{};      // by rank
  std::vector<Fd> ends{};            // by rank: readable when the process has ended; may be invalid
  std::vector<Expected> expected{};  // by rank; empty: not known
  std::string failed{};

  [[noreturn]] void fail(std::string_view what, const std::string& reason) {
    failed = str(what, ": ", reason);
    throw RuntimeError(str("group '", name, "', rank ", rank, ": ", failed));
  }
  /// Rank 0: the same error on every rank.
  [[noreturn]] void fail_all(std::string_view what, const std::string& reason) {
    for (const Fd& c : channels)
      if (c) send_frame(c.get(), FrameKind::kError, reason, {}, after(1));
    fail(what, reason);
  }
  void check_usable() const {
    FI_CHECK(process == getpid(), RuntimeError, "group '", name, "' was connected by process ", process,
             ": a forked child connects a group of its own");
    FI_CHECK(failed.empty(), RuntimeError, "group '", name, "', rank ", rank, ": failed before: ", failed);
  }
  std::string text(int r) const {
    const auto i = static_cast<size_t>(r);
    return process_text(r, processes[i]) + (meeting.local || hosts[i].empty() ? "" : " of " + hosts[i]);
  }

  TransportKind kind_of(const std::string& transport) const;
  std::string why_disconnected(int other) const;
  std::string why_absent(int other) const;

  void connect();
  void connect_root();
  void connect_other();
  void welcome();
  void take_welcome(Frame& frame);
  void add(const Fd& listener, Fd connection, Deadline deadline);
  [[noreturn]] void refuse(const Fd& listener, const Fd& newcomer, const std::string& reason);
  std::vector<std::string> exchange_root(std::string_view what, std::string_view bytes, const std::function<Fd()>& make,
                                         Fd* made);
  std::vector<std::string> exchange_other(std::string_view what, std::string_view bytes, Fd* made);
  std::vector<std::string> exchange(std::string_view what, std::string_view bytes, const std::function<Fd()>& make = {},
                                    Fd* made = nullptr) {
    check_usable();
    if (rank == 0) return exchange_root(what, bytes, make, made);
    return exchange_other(what, bytes, made);
  }
};

}  // namespace flashinfer::comm
