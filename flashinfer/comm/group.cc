// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/comm/group.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <sstream>
#include <thread>

#include "flashinfer/comm/channel.h"
#include "flashinfer/comm/window.h"
#include "flashinfer/comm/window_state.h"
#include "flashinfer/core/check.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/hex.h"
#include "flashinfer/core/version.h"

namespace flashinfer::comm {
namespace {

/// What a rank says when it connects.
struct Hello {
  int32_t rank, size, process;
  char version[52];
};

Deadline after(double seconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}
std::string process_text(int rank, int process) { return str("rank ", rank, " (process ", process, ")"); }

/// A descriptor that becomes readable when this process ends, whoever waits for it; invalid on kernels before 5.3.
Fd own_process() { return Fd(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0))); }

std::string random_name() {
  uint64_t bits[2];
  FI_CHECK(getrandom(bits, sizeof bits, 0) == sizeof bits, RuntimeError,
           "cannot draw a random name: ", std::strerror(errno));
  return hex(bits[0]) + hex(bits[1]);
}

/// Strings one after another, each behind its length.
void append(std::string& to, std::string_view s) {
  const uint64_t n = s.size();
  to.append(reinterpret_cast<const char*>(&n), sizeof n).append(s);
}
std::string_view take(std::string_view& from) {
  uint64_t n = 0;
  FI_CHECK(from.size() >= sizeof n, RuntimeError, "a message of another rank is cut");
  std::memcpy(&n, from.data(), sizeof n);
  from.remove_prefix(sizeof n);
  FI_CHECK(from.size() >= n, RuntimeError, "a message of another rank is cut");
  const std::string_view s = from.substr(0, n);
  from.remove_prefix(n);
  return s;
}
}  // namespace

double timeout_seconds() { return std::clamp(env::number("FLASHINFER_COMM_TIMEOUT_S"), 0.0, 1e7); }

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
  void add(Fd connection, Deadline deadline);
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

// ---- connecting ----
void Group::State::add(Fd connection, Deadline deadline) {
  Frame frame;
  Hello hello;
  const auto soon = std::min(deadline, after(5));
  if (receive_frame(connection.get(), frame, soon) != Received::kFrame || frame.bytes.size() != sizeof hello) return;
  std::memcpy(&hello, frame.bytes.data(), sizeof hello);
  hello.version[sizeof hello.version - 1] = 0;
  const auto refuse = [&](const std::string& reason) {
    send_frame(connection.get(), FrameKind::kError, reason, {}, after(1));
    fail_all("connect", reason);
  };
  const std::string who = process_text(hello.rank, hello.process);
  if (std::string_view(hello.version) != build::version())
    refuse(str(who, " has flashinfer ", hello.version, ", but rank 0 has ", build::version()));
  if (hello.size != size) refuse(str(who, " expects ", hello.size, " ranks, but rank 0 expects ", size));
  if (hello.rank < 1 || hello.rank >= size) refuse(str(who, " is not one of ranks 1 to ", size - 1));
  const auto r = static_cast<size_t>(hello.rank);
  if (channels[r]) {  // of the same process: it connects a later group of this name, and tries again
    if (processes[r] != hello.process)
      refuse(str("processes ", processes[r], " and ", hello.process, " both are rank ", r));
    return;
  }
  processes[r] = hello.process;
  if (!frame.fds.empty()) ends[r] = std::move(frame.fds[0]);
  channels[r] = std::move(connection);
}

void Group::State::connect_root() {
  const double patience = timeout_seconds();
  const Deadline deadline = after(patience);
  Fd listener;
  while (!(listener = listen_at(name))) {
    if (std::chrono::steady_clock::now() > deadline) fail("connect", "another process is rank 0 of this group");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const auto missing = [&] {
    std::string ranks;
    for (int r = 1; r < size; ++r)
      if (!channels[static_cast<size_t>(r)]) ranks += str(ranks.empty() ? "" : ", ", r);
    return ranks;
  };
  while (!missing().empty()) {
    std::vector<pollfd> wanted{{listener.get(), POLLIN, 0}};
    for (const Fd& c : channels)
      if (c) wanted.push_back({c.get(), POLLIN, 0});
    const int n = poll(wanted.data(), wanted.size(), 20);
    if (n <= 0 && std::chrono::steady_clock::now() > deadline)
      fail_all("connect",
               str("rank ", missing(), " did not connect within ", patience, " s (FLASHINFER_COMM_TIMEOUT_S)"));
    if (n <= 0) continue;
    for (int r = 1; r < size; ++r) {  // ranks say nothing until all are there: readable means ended
      const Fd& c = channels[static_cast<size_t>(r)];
      const auto at = std::find_if(wanted.begin(), wanted.end(), [&](const pollfd& p) { return p.fd == c.get(); });
      if (c && at != wanted.end() && at->revents) fail_all("connect", str(text(r), " has ended"));
    }
    if (wanted[0].revents)
      if (Fd connection = accept_at(listener.get())) add(std::move(connection), deadline);
  }
  welcome();
}
/// Processes and their descriptors, to every rank.
void Group::State::welcome() {
  std::string bytes;
  std::vector<int> fds;
  for (size_t r = 0; r < static_cast<size_t>(size); ++r) {
    append(bytes, str(processes[r]));
    append(bytes, ends[r] ? "1" : "0");
    if (ends[r]) fds.push_back(ends[r].get());
  }
  for (int r = 1; r < size; ++r)
    if (!send_frame(channels[static_cast<size_t>(r)].get(), FrameKind::kData, bytes, fds, after(5)))
      fail_all("connect", str(text(r), " has ended"));
}

void Group::State::connect_other() {
  const double patience = timeout_seconds();
  const Deadline deadline = after(1.2 * patience + 0.2);  // rank 0 gives up first and says who is missing
  Hello hello{rank, size, process, {}};
  std::snprintf(hello.version, sizeof hello.version, "%s", build::version());
  const Fd own = own_process();
  const int fd = own.get();
  Frame frame;
  for (;;) {
    if (std::chrono::steady_clock::now() > deadline)
      fail("connect", str("rank 0 did not connect within ", patience, " s (FLASHINFER_COMM_TIMEOUT_S)"));
    Fd c = connect_to(name);
    const std::string_view bytes(reinterpret_cast<const char*>(&hello), sizeof hello);
    if (c && send_frame(c.get(), FrameKind::kData, bytes, own ? std::span(&fd, 1) : std::span<const int>(), deadline) &&
        receive_frame(c.get(), frame, deadline) == Received::kFrame) {
      channels[0] = std::move(c);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (frame.kind == FrameKind::kError) fail("connect", frame.bytes);
  std::string_view rest = frame.bytes;
  size_t next = 0;
  for (size_t r = 0; r < static_cast<size_t>(size); ++r) {
    processes[r] = std::stoi(std::string(take(rest)));
    if (take(rest) == "1" && next < frame.fds.size()) ends[r] = std::move(frame.fds[next++]);
  }
}

std::shared_ptr<Group> Group::connect(const std::string& name, int rank, int size) {
  FI_CHECK(!name.empty(), ValueError, "the group's name is empty");
  FI_CHECK(size >= 1 && size <= kMaxRanks, ValueError, "size is ", size, ", but must be in [1, ", kMaxRanks, "]");
  FI_CHECK(rank >= 0 && rank < size, ValueError, "rank is ", rank, ", but must be in [0, ", size, ")");
  auto state = std::make_unique<State>(State{.name = name, .rank = rank, .size = size});
  const auto n = static_cast<size_t>(size);
  state->channels.resize(rank == 0 ? n : 1);
  state->processes.resize(n);
  state->ends.resize(n);
  if (rank == 0) {
    state->processes[0] = state->process;
    state->ends[0] = own_process();
    if (size > 1) state->connect_root();
  } else {
    state->connect_other();
  }
  return std::shared_ptr<Group>(new Group(std::move(state)));
}

// ---- messages ----
std::vector<std::string> Group::State::exchange_root(std::string_view what, std::string_view bytes,
                                                     const std::function<Fd()>& make, Fd* made) {
  const double patience = timeout_seconds();
  const Deadline deadline = after(patience);
  std::vector<std::string> all(static_cast<size_t>(size));
  all[0] = bytes;
  std::vector<bool> there(static_cast<size_t>(size));
  there[0] = true;
  for (;;) {
    std::vector<pollfd> wanted;
    std::vector<int> ranks;
    for (int r = 1; r < size; ++r)
      if (!there[static_cast<size_t>(r)])
        wanted.push_back({channels[static_cast<size_t>(r)].get(), POLLIN, 0}), ranks.push_back(r);
    if (wanted.empty()) break;
    const int n = poll(wanted.data(), wanted.size(), 20);
    if (n <= 0 && std::chrono::steady_clock::now() > deadline)
      fail_all(what, str(text(ranks[0]), " did not call it within ", patience, " s (FLASHINFER_COMM_TIMEOUT_S)"));
    for (size_t i = 0; n > 0 && i < wanted.size(); ++i) {
      if (!wanted[i].revents) continue;
      Frame frame;
      if (receive_frame(wanted[i].fd, frame, deadline) != Received::kFrame)
        fail_all(what, str(text(ranks[i]), " has ended or left the group"));
      std::string_view rest = frame.bytes;
      if (const std::string_view theirs = take(rest); theirs != what)
        fail_all(what, str(text(ranks[i]), " calls ", theirs, ", but rank 0 calls ", what));
      all[static_cast<size_t>(ranks[i])] = take(rest);
      there[static_cast<size_t>(ranks[i])] = true;
    }
  }
  Fd fd;
  try {
    if (make) fd = make();
  } catch (const Error& e) {
    fail_all(what, str("rank 0: ", e.message()));
  }
  std::string reply;
  for (const std::string& s : all) append(reply, s);
  const int shared = fd.get();
  for (int r = 1; r < size; ++r)
    if (!send_frame(channels[static_cast<size_t>(r)].get(), FrameKind::kData, reply,
                    fd ? std::span(&shared, 1) : std::span<const int>(), deadline))
      fail_all(what, str(text(r), " has ended or left the group"));
  if (made) *made = std::move(fd);
  return all;
}

std::vector<std::string> Group::State::exchange_other(std::string_view what, std::string_view bytes, Fd* made) {
  const double patience = timeout_seconds();
  const Deadline deadline = after(1.2 * patience + 0.2);  // rank 0 gives up first and says who is missing
  std::string own;
  append(own, what);
  append(own, bytes);
  Frame frame;
  const int socket = channels[0].get();
  // Rank 0 may have said why before it went, so its words are read even when it no longer takes ours.
  send_frame(socket, FrameKind::kData, own, {}, deadline);
  switch (receive_frame(socket, frame, deadline)) {
    case Received::kClosed: fail(what, str(text(0), " has ended or left the group"));
    case Received::kLate:
      fail(what, str(text(0), " did not answer within ", patience, " s (FLASHINFER_COMM_TIMEOUT_S)"));
    case Received::kFrame: break;
  }
  if (frame.kind == FrameKind::kError) fail(what, frame.bytes);
  if (made && !frame.fds.empty()) *made = std::move(frame.fds[0]);
  std::vector<std::string> all;
  std::string_view rest = frame.bytes;
  for (int r = 0; r < size; ++r) all.emplace_back(take(rest));
  return all;
}

Group::Group(std::unique_ptr<State> state) : state_(std::move(state)) {}
Group::~Group() = default;
const std::string& Group::name() const { return state_->name; }
int Group::rank() const { return state_->rank; }
int Group::size() const { return state_->size; }

std::vector<std::string> Group::exchange(std::string_view what, std::string_view bytes) {
  return state_->exchange(what, bytes);
}

std::string Group::why_gone(int rank) const {
  const Fd& end = state_->ends[static_cast<size_t>(rank)];
  pollfd p{end.get(), POLLIN, 0};
  if (!end || rank == state_->rank || poll(&p, 1, 0) <= 0) return {};
  return str(state_->text(rank), " has ended");
}

std::shared_ptr<Group> Group::split(int color, int key) {
  struct Member {
    int color, key, rank;
    std::string name;
  };
  const auto all = exchange("split", str(color, ' ', key, ' ', random_name()));
  std::vector<Member> members;
  for (int r = 0; r < size(); ++r) {
    Member m{0, 0, r, {}};
    std::istringstream(all[static_cast<size_t>(r)]) >> m.color >> m.key >> m.name;
    if (m.color == color) members.push_back(std::move(m));
  }
  std::stable_sort(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.key < b.key; });
  const auto me = std::find_if(members.begin(), members.end(), [&](const Member& m) { return m.rank == rank(); });
  return connect(members[0].name, static_cast<int>(me - members.begin()), static_cast<int>(members.size()));
}

// ---- windows ----
std::shared_ptr<Window> Group::window(int64_t bytes) {
  state_->check_usable();
  FI_CHECK(bytes >= 0 && bytes < int64_t{1} << 46, ValueError, "a window of ", bytes, " bytes is not possible");
  const std::string what = str("window(", bytes, ")");
  const WindowLayout layout(bytes, size());
  Fd memory;
  const auto make = [&] {
    Fd fd(memfd_create("flashinfer-window", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    FI_CHECK(fd && ftruncate(fd.get(), static_cast<off_t>(layout.total)) == 0, RuntimeError, "cannot make ",
             layout.total, " bytes of shared memory: ", std::strerror(errno));
    fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);  // a mapping can never lose its memory
    return fd;
  };
  state_->exchange(what, {}, make, &memory);
  std::unique_ptr<Window::State> w;
  std::string problem;
  try {
    w = std::make_unique<Window::State>(shared_from_this(), memory.get(), bytes);
  } catch (const Error& e) {
    problem = e.message();
  }
  const auto problems = state_->exchange(what, problem);  // all ranks have one, or none has
  for (int r = 0; r < size(); ++r)
    if (!problems[static_cast<size_t>(r)].empty())
      throw RuntimeError(
          str("group '", name(), "', ", what, ": ", state_->text(r), ": ", problems[static_cast<size_t>(r)]));
  return std::shared_ptr<Window>(new Window(std::move(w)));
}

}  // namespace flashinfer::comm
