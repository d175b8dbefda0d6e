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

struct Group::State {
  std::string name;
  int rank, size, process = getpid();
  std::vector<Fd> channels{};    // of rank 0: to each rank; of another rank: [0], to rank 0
  std::vector<int> processes{};  // by rank
  std::vector<Fd> ends{};        // by rank: readable when the process has ended; may be invalid
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
  std::string text(int r) const { return process_text(r, processes[static_cast<size_t>(r)]); }

  void connect_root();
  void connect_other();
  void welcome();
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
