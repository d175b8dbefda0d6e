// SPDX-License-Identifier: Apache-2.0
// How the ranks of a group meet: rank 0 listens at a socket, the others say who they are, and all get descriptors of
// all processes.
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "flashinfer/comm/group_state.h"
#include "flashinfer/comm/mpi.h"
#include "flashinfer/core/fork_mutex.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/version.h"

namespace flashinfer::comm {
namespace {

/// What a rank says when it connects; its token and host follow.
struct Hello {
  int32_t rank, size, process;
  char version[52];
};
std::string host_name() {
  char text[256] = {};
  return gethostname(text, sizeof text - 1) == 0 ? text : "";
}
/// What processes have in common that can share memory: the running kernel, the network's names, the user.
std::string machine() {
  char net[64] = {};
  const ssize_t n = readlink("/proc/self/ns/net", net, sizeof net - 1);
  return str(fs::read_file("/proc/sys/kernel/random/boot_id").value_or(""), " ", n > 0 ? net : "", " ", getuid());
}

/// A descriptor that becomes readable when the process ends; invalid on kernels before 5.3.
Fd end_of(int process) { return Fd(static_cast<int>(syscall(SYS_pidfd_open, process, 0))); }

constinit ForkMutex g_mutex(ForkLayer::kCore, 105);
/// What Group::expect was told, by name.
std::map<std::string, std::vector<Expected>>& expectations() {
  static auto* all = new std::map<std::string, std::vector<Expected>>;
  return *all;
}
std::vector<Expected> take_expected(const std::string& name) {
  const std::scoped_lock lock(g_mutex);
  auto found = expectations().extract(name);
  return found.empty() ? std::vector<Expected>() : std::move(found.mapped());
}
}  // namespace

void Group::expect(const std::string& name, const std::vector<int>& processes) {
  std::vector<Expected> ranks;
  for (const int process : processes) {
    Fd end = end_of(process);
    const bool ended = !end && errno == ESRCH;
    ranks.push_back({process, std::move(end), ended});
  }
  const std::scoped_lock lock(g_mutex);
  expectations()[name] = std::move(ranks);
}
/// Why a rank that is expected will not connect, or empty.
std::string Group::State::why_absent(int other) const {
  if (static_cast<size_t>(other) >= expected.size()) return {};
  const Expected& e = expected[static_cast<size_t>(other)];
  pollfd p{e.end.get(), POLLIN, 0};
  if (!e.ended && (!e.end || poll(&p, 1, 0) <= 0)) return {};
  return str(process_text(other, e.process), " has ended");
}

/// The same error on every rank: those that are connected, `newcomer`, and those that come within some seconds.
void Group::State::refuse(const Fd& listener, const Fd& newcomer, const std::string& reason) {
  int told = 0;
  const auto tell = [&](const Fd& c) {
    if (c) send_frame(c.get(), FrameKind::kError, reason, {}, after(1)), ++told;
  };
  for (const Fd& c : channels) tell(c);
  tell(newcomer);
  for (int r = 1; r < size; ++r) told += !channels[static_cast<size_t>(r)] && !why_absent(r).empty();
  const Deadline deadline = after(std::min(5.0, timeout_seconds()));
  while (told < size - 1 && wait_readable(listener.get(), deadline)) {
    const Fd late = meeting.accept(listener.get());
    Frame hello;
    if (late && receive_frame(late.get(), hello, after(1)) == Received::kFrame) tell(late);
  }
  fail("connect", reason);
}

void Group::State::add(const Fd& listener, Fd connection, Deadline deadline) {
  Frame frame;
  Hello hello;
  const auto soon = std::min(deadline, after(5));
  if (receive_frame(connection.get(), frame, soon) != Received::kFrame || frame.bytes.size() < sizeof hello) return;
  std::memcpy(&hello, frame.bytes.data(), sizeof hello);
  std::string_view rest = std::string_view(frame.bytes).substr(sizeof hello);
  std::string token, host;
  try {
    if (!rest.empty()) token = take(rest), host = take(rest);  // other versions may say less
  } catch (const RuntimeError&) {
    return;  // a stranger, who says something else
  }
  if (token != *meeting.token) return;  // a stranger
  hello.version[sizeof hello.version - 1] = 0;
  const std::string who = process_text(hello.rank, hello.process);
  if (std::string_view(hello.version) != build::version())
    refuse(listener, connection, str(who, " has flashinfer ", hello.version, ", but rank 0 has ", build::version()));
  if (hello.size != size)
    refuse(listener, connection, str(who, " expects ", hello.size, " ranks, but rank 0 expects ", size));
  if (hello.rank < 1 || hello.rank >= size)
    refuse(listener, connection, str(who, " is not one of ranks 1 to ", size - 1));
  const auto r = static_cast<size_t>(hello.rank);
  if (channels[r]) {  // of the same process: it connects a later group of this name, and tries again
    if (processes[r] != hello.process)
      refuse(listener, connection, str("processes ", processes[r], " and ", hello.process, " both are rank ", r));
    return;
  }
  processes[r] = hello.process, hosts[r] = host;
  if (!frame.fds.empty()) ends[r] = std::move(frame.fds[0]);
  channels[r] = std::move(connection);
}

void Group::State::connect_root() {
  const double patience = timeout_seconds();
  const Deadline deadline = after(patience);
  Fd listener;
  while (!(listener = meeting.listen())) {
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
    for (int r = 1; n <= 0 && r < size; ++r)
      if (!channels[static_cast<size_t>(r)])
        if (const std::string why = why_absent(r); !why.empty()) refuse(listener, {}, why);
    if (n <= 0) continue;
    for (int r = 1; r < size; ++r) {  // ranks say nothing until all are there: readable means ended
      const Fd& c = channels[static_cast<size_t>(r)];
      const auto at = std::find_if(wanted.begin(), wanted.end(), [&](const pollfd& p) { return p.fd == c.get(); });
      if (c && at != wanted.end() && at->revents) refuse(listener, {}, str(text(r), " has ended"));
    }
    if (wanted[0].revents)
      if (Fd connection = meeting.accept(listener.get())) add(listener, std::move(connection), deadline);
  }
  if (meeting.done) meeting.done();
  welcome();
}
/// Processes and their descriptors, to every rank.
void Group::State::welcome() {
  std::string bytes;
  std::vector<int> fds;
  for (size_t r = 0; r < static_cast<size_t>(size); ++r) {
    append(bytes, str(processes[r]));
    append(bytes, hosts[r]);
    append(bytes, meeting.local && ends[r] ? "1" : "0");
    if (meeting.local && ends[r]) fds.push_back(ends[r].get());
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
  const Fd own = meeting.local ? end_of(getpid()) : Fd();
  const int fd = own.get();
  Frame frame;
  for (;;) {
    if (std::chrono::steady_clock::now() > deadline)
      fail("connect", str("rank 0 did not connect within ", patience, " s (FLASHINFER_COMM_TIMEOUT_S)"));
    const std::string gone = why_absent(0);  // before the attempt: it may have answered, and then ended
    Fd c = meeting.connect();
    std::string bytes(reinterpret_cast<const char*>(&hello), sizeof hello);
    append(bytes, *meeting.token);
    append(bytes, host_name());
    if (c && send_frame(c.get(), FrameKind::kData, bytes, own ? std::span(&fd, 1) : std::span<const int>(), deadline) &&
        receive_frame(c.get(), frame, deadline) == Received::kFrame) {
      channels[0] = std::move(c);
      break;
    }
    if (!gone.empty()) fail("connect", gone);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (frame.kind == FrameKind::kError) fail("connect", frame.bytes);
  try {
    take_welcome(frame);
  } catch (const std::exception&) {
    fail("connect", "rank 0 answers in a form that this version does not know");
  }
}
void Group::State::take_welcome(Frame& frame) {
  std::string_view rest = frame.bytes;
  size_t next = 0;
  for (size_t r = 0; r < static_cast<size_t>(size); ++r) {
    processes[r] = std::stoi(std::string(take(rest)));
    hosts[r] = take(rest);
    if (take(rest) == "1" && next < frame.fds.size()) ends[r] = std::move(frame.fds[next++]);
  }
}

void Group::State::connect() {
  const auto n = static_cast<size_t>(size);
  channels.resize(rank == 0 ? n : 1);
  processes.resize(n), hosts.resize(n), ends.resize(n);
  if (rank == 0) {
    processes[0] = process, hosts[0] = host_name();
    ends[0] = end_of(getpid());
    if (size > 1)
      connect_root();
    else
      withdraw(name);  // no other rank connects
  } else {
    connect_other();
  }
  if (meeting.local) return;
  const auto machines = exchange("connect", machine());
  one_machine = std::all_of(machines.begin(), machines.end(), [&](const std::string& m) { return m == machines[0]; });
}

std::shared_ptr<Group> Group::connect(const std::string& name, int rank, int size) {
  FI_CHECK(!name.empty(), ValueError, "the group's name is empty");
  FI_CHECK(size >= 1 && size <= kMaxRanks, ValueError, "size is ", size, ", but must be in [1, ", kMaxRanks, "]");
  FI_CHECK(rank >= 0 && rank < size, ValueError, "rank is ", rank, ", but must be in [0, ", size, ")");
  const bool by_mpi = name == kMpiName;
  const std::string address = by_mpi ? mpi::first_rank_says(rank, size, rank == 0 ? Group::invite() : "") : name;
  auto state = std::make_unique<State>(State{.name = name, .rank = rank, .size = size});
  state->meeting = meeting_of(address);
  state->by_mpi = by_mpi;
  state->expected = take_expected(name);
  state->connect();
  state->expected.clear();
  return std::shared_ptr<Group>(new Group(std::move(state)));
}

}  // namespace flashinfer::comm
