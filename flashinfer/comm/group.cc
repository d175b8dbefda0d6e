// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/comm/group.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "flashinfer/comm/group_state.h"
#include "flashinfer/comm/tcp.h"
#include "flashinfer/comm/transport.h"
#include "flashinfer/comm/window.h"
#include "flashinfer/comm/window_state.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/random_name.h"

namespace flashinfer::comm {
double timeout_seconds() { return std::clamp(env::number("FLASHINFER_COMM_TIMEOUT_S"), 0.0, 1e7); }

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

bool Group::one_machine() const { return state_->one_machine; }
std::string Group::why_gone(int rank) const {
  const Fd& end = state_->ends[static_cast<size_t>(rank)];
  pollfd p{end.get(), POLLIN, 0};
  if (rank == state_->rank) return {};
  if (!state_->meeting.local) return state_->why_disconnected(rank);
  if (!end || poll(&p, 1, 0) <= 0) return {};
  return str(state_->text(rank), " has ended");
}
/// Only rank 0 is connected to all.
std::string Group::State::why_disconnected(int other) const {
  if (rank && other) return {};
  pollfd p{channels[static_cast<size_t>(other)].get(), POLLRDHUP, 0};
  if (poll(&p, 1, 0) <= 0 || !(p.revents & (POLLRDHUP | POLLHUP | POLLERR))) return {};
  return str(text(other), " has ended or left the group");
}

std::shared_ptr<Group> Group::split(int color, int key) {
  struct Member {
    int color, key, rank;
    std::string name;
  };
  const bool local = state_->meeting.local;
  const std::string own = local ? random_name() : invite();
  const auto all = exchange("split", str(color, ' ', key, ' ', own));
  std::vector<Member> members;
  for (int r = 0; r < size(); ++r) {
    Member m{0, 0, r, {}};
    std::istringstream(all[static_cast<size_t>(r)]) >> m.color >> m.key >> m.name;
    if (m.color == color) members.push_back(std::move(m));
  }
  std::stable_sort(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.key < b.key; });
  const auto me = std::find_if(members.begin(), members.end(), [&](const Member& m) { return m.rank == rank(); });
  if (!local && me != members.begin()) withdraw(own);
  std::vector<int> processes;
  for (const Member& m : members) processes.push_back(state_->processes[static_cast<size_t>(m.rank)]);
  if (local) expect(members[0].name, processes);
  auto part = connect(members[0].name, static_cast<int>(me - members.begin()), static_cast<int>(members.size()));
  part->state_->by_mpi = state_->by_mpi;
  return part;
}

// ---- windows ----
TransportKind Group::State::kind_of(const std::string& transport) const {
  const std::string& t = transport.empty() ? env::text("FLASHINFER_COMM_TRANSPORT") : transport;
  FI_CHECK(t == "auto" || t == "shm" || t == "tcp" || t == "mpi", ValueError, "transport is '", t,
           "', but must be auto, shm, tcp or mpi");
  if (t == "tcp") return TransportKind::kTcp;
  if (t == "mpi" || (t == "auto" && !one_machine && by_mpi)) return TransportKind::kMpi;
  return t == "shm" || one_machine ? TransportKind::kShared : TransportKind::kTcp;
}

std::unique_ptr<Transport> Group::shared_memory(const std::string& what, const WindowLayout& layout) {
  Fd memory;
  const auto make = [&] {
    Fd fd(memfd_create("flashinfer-window", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    FI_CHECK(fd && ftruncate(fd.get(), static_cast<off_t>(layout.total)) == 0, RuntimeError, "cannot make ",
             layout.total, " bytes of shared memory: ", std::strerror(errno));
    fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);  // a mapping can never lose its memory
    return fd;
  };
  state_->exchange(what, {}, make, &memory);
  return share_memory(memory.get(), layout.total, layout.stride * static_cast<size_t>(rank()), layout.stride);
}

std::shared_ptr<Group> Group::beside() {
  if (state_->meeting.local) return shared_from_this();
  if (!state_->beside) {
    FI_CHECK(state_->one_machine, RuntimeError, "group '", name(),
             "': transport shm needs ranks of one machine and user");
    const std::string unix_name = exchange("window", random_name())[0];
    state_->beside = connect(unix_name, rank(), size());
    state_->beside->state_->name = name();
  }
  return state_->beside;
}

std::shared_ptr<Window> Group::window(int64_t bytes, const std::string& transport) {
  state_->check_usable();
  FI_CHECK(bytes >= 0 && bytes < int64_t{1} << 46, ValueError, "a window of ", bytes, " bytes is not possible");
  const TransportKind kind = state_->kind_of(transport);
  const WindowLayout layout(bytes, size());
  constexpr const char* kNames[] = {"", ", tcp", ", mpi"};
  const std::string what = str("window(", bytes, kNames[static_cast<int>(kind)], ")");
  const auto group = kind == TransportKind::kShared ? beside() : shared_from_this();
  std::unique_ptr<Window::State> w;
  std::string problem;
  try {
    auto made = kind == TransportKind::kShared ? group->shared_memory(what, layout)
                : kind == TransportKind::kTcp  ? connect_by_tcp(*this, what, state_->one_machine, layout.total)
                                               : connect_by_mpi(*this, what, layout.total);
    w = std::make_unique<Window::State>(group, std::move(made), bytes);
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
