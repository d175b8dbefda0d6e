// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/comm/group.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "flashinfer/comm/group_state.h"
#include "flashinfer/comm/window.h"
#include "flashinfer/comm/window_state.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/hex.h"

namespace flashinfer::comm {
namespace {
std::string random_name() {
  uint64_t bits[2];
  FI_CHECK(getrandom(bits, sizeof bits, 0) == sizeof bits, RuntimeError,
           "cannot draw a random name: ", std::strerror(errno));
  return hex(bits[0]) + hex(bits[1]);
}
}  // namespace

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
