// SPDX-License-Identifier: Apache-2.0
// A window whose bytes go through a socket between each two ranks. A frame is a header and the bytes of a part of the
// image; they are written to the image as they come.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <thread>

#include "flashinfer/comm/group_state.h"
#include "flashinfer/comm/tcp.h"
#include "flashinfer/comm/transport.h"
#include "flashinfer/core/check.h"

namespace flashinfer::comm {
namespace {

struct Part {
  uint64_t offset, bytes;
};
/// A frame that is not sent yet, or not whole.
struct Outgoing {
  Part part;
  const std::byte* from;  // null: the copy
  std::string copy{};
  size_t done = 0;  // bytes sent, of header and part
  size_t all() const { return sizeof part + part.bytes; }
  const std::byte* bytes() const { return from ? from : reinterpret_cast<const std::byte*>(copy.data()); }
};
struct Link {
  Fd socket{};
  std::deque<Outgoing> out{};
  Part in{};           // of the frame that comes
  size_t in_done = 0;  // bytes of it, header included, that are there
  std::string closed{};
};

class Tcp : public Transport {
 public:
  Tcp(size_t bytes, std::vector<Fd> sockets) : image_(bytes), links_(sockets.size()) {
    for (size_t r = 0; r < sockets.size(); ++r) links_[r].socket = std::move(sockets[r]);
  }
  /// Reads on for a moment where there is something: a socket that is closed with unread bytes takes back what it sent.
  ~Tcp() override {
    if (process_ != getpid()) return;  // a forked child has the sockets too
    for (Link& l : links_)
      if (l.socket && l.closed.empty()) shutdown(l.socket.get(), SHUT_WR);
    const Deadline deadline = after(0.1);
    while (std::any_of(links_.begin(), links_.end(), [](const Link& l) { return l.socket && l.closed.empty(); }) &&
           std::chrono::steady_clock::now() < deadline) {
      progress();
      sleep();
    }
  }

  std::byte* image() const override { return image_.data(); }
  void put(int rank, size_t offset, size_t bytes) override {
    if (bytes) enqueue(rank, {{offset, bytes}, image_.data() + offset});
  }
  void post(int rank, size_t offset, size_t bytes) override {
    enqueue(rank, {{offset, bytes}, nullptr, {reinterpret_cast<const char*>(image_.data() + offset), bytes}});
  }
  bool sent(int rank) const override {
    const Link& l = links_[static_cast<size_t>(rank)];
    return l.out.empty() || !l.closed.empty();
  }
  std::string why_closed(int rank) const override { return links_[static_cast<size_t>(rank)].closed; }

  void progress() override {
    for (Link& l : links_)
      if (l.socket && l.closed.empty()) send(l), receive(l);
  }
  void sleep() override {
    polls_.clear();
    for (const Link& l : links_)
      if (l.socket && l.closed.empty())
        polls_.push_back({l.socket.get(), static_cast<short>(l.out.empty() ? POLLIN : POLLIN | POLLOUT), 0});
    poll(polls_.data(), polls_.size(), 5);
  }

 private:
  static void close(Link& l, std::string why) {
    l.closed = std::move(why);
    l.out.clear();
  }
  void enqueue(int rank, Outgoing frame) {
    Link& l = links_[static_cast<size_t>(rank)];
    if (l.socket && l.closed.empty()) l.out.push_back(std::move(frame));
  }
  /// Up to kFrames frames in one call of the system, until the socket takes no more.
  static void send(Link& l) {
    constexpr size_t kFrames = 16;
    while (!l.out.empty()) {
      iovec io[2 * kFrames];
      size_t n = 0, frames = std::min(kFrames, l.out.size());
      for (size_t i = 0; i < frames; ++i) {
        Outgoing& f = l.out[i];
        const size_t header = std::min(f.done, sizeof f.part), body = f.done - header;
        if (header < sizeof f.part) io[n++] = {reinterpret_cast<char*>(&f.part) + header, sizeof f.part - header};
        io[n++] = {const_cast<std::byte*>(f.bytes() + body), f.part.bytes - body};
      }
      msghdr message{};
      message.msg_iov = io, message.msg_iovlen = n;
      const ssize_t sent = sendmsg(l.socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      if (sent < 0) return l.out.clear();  // receive() finds out why, after what the rank still sent
      for (auto left = static_cast<size_t>(sent); left;) {
        Outgoing& f = l.out.front();
        const size_t part = std::min(left, f.all() - f.done);
        f.done += part, left -= part;
        if (f.done == f.all()) l.out.pop_front();
      }
    }
  }
  void receive(Link& l) {
    for (;;) {
      const bool header = l.in_done < sizeof l.in;
      char* to = header ? reinterpret_cast<char*>(&l.in) + l.in_done
                        : reinterpret_cast<char*>(image_.data() + l.in.offset) + (l.in_done - sizeof l.in);
      const size_t want = (header ? sizeof l.in : sizeof l.in + l.in.bytes) - l.in_done;
      const ssize_t n = recv(l.socket.get(), to, want, MSG_DONTWAIT);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      if (n <= 0) return close(l, "has ended or left the group");
      l.in_done += static_cast<size_t>(n);
      if (header && l.in_done == sizeof l.in &&
          (l.in.bytes > image_.bytes() || l.in.offset > image_.bytes() - l.in.bytes))
        return close(l, str("sent bytes for ", l.in.offset, " + ", l.in.bytes, " of a window of ", image_.bytes()));
      if (l.in_done == sizeof l.in + l.in.bytes && l.in_done >= sizeof l.in) l.in_done = 0;
    }
  }

  int process_ = getpid();
  Image image_;
  std::vector<Link> links_;  // by rank; that of this rank has no socket
  std::vector<pollfd> polls_{};
};

/// What a rank says first on a connection.
std::string hello(const std::string& token, int rank) {
  std::string bytes;
  append(bytes, token);
  append(bytes, std::to_string(rank));
  return bytes;
}

/// A socket to each rank: this one connects to those before it, and accepts those after it.
std::vector<Fd> connect_all(Group& group, const std::string& what, bool one_machine) {
  const double patience = timeout_seconds();
  const Deadline deadline = after(patience);
  const Invitation own = invite(one_machine);
  const auto addresses = group.exchange(what, own.address.text());
  const auto size = static_cast<size_t>(group.size()), rank = static_cast<size_t>(group.rank());
  std::vector<Fd> sockets(size);
  const auto check = [&](size_t r, const char* what) {
    const std::string gone = group.why_gone(static_cast<int>(r));
    FI_CHECK(gone.empty(), RuntimeError, gone);
    FI_CHECK(std::chrono::steady_clock::now() < deadline, RuntimeError, "rank ", r, " ", what, " within ", patience,
             " s (FLASHINFER_COMM_TIMEOUT_S)");
  };
  for (size_t r = 0; r < rank; ++r) {
    const TcpAddress to = *parse_tcp(addresses[r]);
    for (;;) {
      sockets[r] = connect_tcp(to, deadline);
      Frame taken;  // a rank drops a connection that is slow to say who it is
      if (sockets[r] && send_frame(sockets[r].get(), FrameKind::kData, hello(to.token, group.rank()), {}, deadline) &&
          receive_frame(sockets[r].get(), taken, deadline) == Received::kFrame)
        break;
      check(r, "took no connection");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  for (size_t r = rank + 1; r < size;) {
    if (sockets[r]) {
      ++r;
      continue;
    }
    check(r, "did not connect");
    if (!wait_readable(own.listener.get(), std::min(deadline, after(0.02)))) continue;
    Fd connection = accept_tcp(own.listener.get());
    Frame frame;
    if (!connection || receive_frame(connection.get(), frame, std::min(deadline, after(5))) != Received::kFrame)
      continue;
    for (size_t other = rank + 1; other < size; ++other)
      if (frame.bytes == hello(own.address.token, static_cast<int>(other)) &&
          send_frame(connection.get(), FrameKind::kData, {}, {}, deadline)) {
        sockets[other] = std::move(connection);
        break;
      }
  }
  return sockets;
}
}  // namespace

std::unique_ptr<Transport> connect_by_tcp(Group& group, const std::string& what, bool one_machine, size_t bytes) {
  return std::make_unique<Tcp>(bytes, connect_all(group, what, one_machine));
}

}  // namespace flashinfer::comm
