// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/comm/channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "flashinfer/comm/group.h"
#include "flashinfer/core/check.h"

namespace flashinfer::comm {
namespace {

constexpr uint32_t kMagic = 0x46493143;  // "C1IF"
constexpr uint64_t kMaxBytes = uint64_t{1} << 32;
struct Header {
  uint32_t magic, kind;
  uint64_t bytes, fds;
};
/// Room for the descriptors of one frame.
struct Ancillary {
  alignas(cmsghdr) char bytes[CMSG_SPACE(sizeof(int) * kMaxRanks)];
};

/// Milliseconds for poll(), rounded up; 0 when the deadline has passed.
int milliseconds_until(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}
bool wait_for(int fd, short events, Deadline deadline) {
  for (;;) {
    pollfd p{fd, events, 0};
    const int timeout = milliseconds_until(deadline), n = poll(&p, 1, timeout);
    if (n > 0) return true;
    if (n == 0 && !milliseconds_until(deadline)) return false;
    if (n < 0 && errno != EINTR) return true;  // the call that follows says what is wrong
  }
}

bool send_all(int socket, msghdr message, size_t bytes, Deadline deadline) {
  iovec io = *message.msg_iov;
  message.msg_iov = &io;
  while (bytes) {
    const ssize_t n = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (!wait_for(socket, POLLOUT, deadline)) return false;
    } else if (n < 0 && errno != EINTR) {
      return false;
    } else if (n > 0) {  // the descriptors went with the first byte
      message.msg_control = nullptr, message.msg_controllen = 0;
      io.iov_base = static_cast<char*>(io.iov_base) + n, io.iov_len -= static_cast<size_t>(n);
      bytes -= static_cast<size_t>(n);
    }
  }
  return true;
}

void take_descriptors(const msghdr& message, std::vector<Fd>& fds) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(const_cast<msghdr*>(&message), c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < n; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      fds.emplace_back(fd);
    }
  }
}
Received receive_all(int socket, void* to, size_t bytes, std::vector<Fd>* fds, Deadline deadline) {
  auto* at = static_cast<char*>(to);
  while (bytes) {
    iovec io{at, bytes};
    Ancillary ancillary;
    msghdr message{};
    message.msg_iov = &io, message.msg_iovlen = 1;
    if (fds) message.msg_control = ancillary.bytes, message.msg_controllen = sizeof ancillary.bytes;
    const ssize_t n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n == 0) return Received::kClosed;
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) return Received::kClosed;
      if (!wait_for(socket, POLLIN, deadline)) return Received::kLate;
      continue;
    }
    if (fds) take_descriptors(message, *fds);
    at += n, bytes -= static_cast<size_t>(n);
  }
  return Received::kFrame;
}

/// The abstract address: a zero byte, then the name, which needs no file and ends with its socket.
socklen_t address_of(const std::string& name, sockaddr_un& address) {
  const std::string path = str("flashinfer-", getuid(), "-", name);
  FI_CHECK(path.size() < sizeof address.sun_path, ValueError, "the group's name has ", name.size(),
           " bytes, but at most ", sizeof address.sun_path - 1 - (path.size() - name.size()), " are possible");
  address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, path.data(), path.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + path.size());
}
Fd new_socket() {
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  FI_CHECK(fd, RuntimeError, "cannot make a socket: ", std::strerror(errno));
  return fd;
}
}  // namespace

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

bool wait_readable(int fd, Deadline deadline) { return wait_for(fd, POLLIN, deadline); }

bool send_frame(int socket, FrameKind kind, std::string_view bytes, std::span<const int> fds, Deadline deadline) {
  Header header{kMagic, static_cast<uint32_t>(kind), bytes.size(), fds.size()};
  iovec io{&header, sizeof header};
  msghdr message{};
  message.msg_iov = &io, message.msg_iovlen = 1;
  Ancillary ancillary;
  if (!fds.empty()) {
    message.msg_control = ancillary.bytes, message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(c), fds.data(), fds.size_bytes());
  }
  if (!send_all(socket, message, sizeof header, deadline)) return false;
  io = {const_cast<char*>(bytes.data()), bytes.size()};
  message.msg_control = nullptr, message.msg_controllen = 0;
  return send_all(socket, message, bytes.size(), deadline);
}

Received receive_frame(int socket, Frame& frame, Deadline deadline) {
  frame = {};
  Header header;
  if (const Received r = receive_all(socket, &header, sizeof header, &frame.fds, deadline); r != Received::kFrame)
    return r;
  if (header.magic != kMagic || header.bytes > kMaxBytes || header.fds != frame.fds.size()) return Received::kClosed;
  frame.kind = static_cast<FrameKind>(header.kind);
  frame.bytes.resize(header.bytes);
  return receive_all(socket, frame.bytes.data(), header.bytes, nullptr, deadline);
}

Fd listen_at(const std::string& name) {
  sockaddr_un address;
  const socklen_t size = address_of(name, address);
  Fd fd = new_socket();
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    FI_CHECK(errno == EADDRINUSE, RuntimeError, "cannot bind a socket: ", std::strerror(errno));
    return {};
  }
  FI_CHECK(listen(fd.get(), kMaxRanks) == 0, RuntimeError, "cannot listen at a socket: ", std::strerror(errno));
  fcntl(fd.get(), F_SETFL, O_NONBLOCK);
  return fd;
}

Fd connect_to(const std::string& name) {
  sockaddr_un address;
  const socklen_t size = address_of(name, address);
  Fd fd = new_socket();
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0) return fd;
  FI_CHECK(errno == ECONNREFUSED || errno == EINTR || errno == EAGAIN, RuntimeError,
           "cannot connect to a socket: ", std::strerror(errno));
  return {};
}

Fd accept_at(int listener) {
  Fd fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd) return fd;
  ucred peer{};  // abstract sockets have no permissions
  socklen_t size = sizeof peer;
  if (getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != getuid()) return {};
  return fd;
}

}  // namespace flashinfer::comm
