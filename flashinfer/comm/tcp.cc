// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/comm/tcp.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <memory>

#include "flashinfer/comm/group.h"
#include "flashinfer/core/check.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/random_name.h"

namespace flashinfer::comm {
namespace {

constexpr std::string_view kScheme = "tcp://";

using Resolved = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;
/// Null: there is no such host. An empty host: all addresses of this machine, of IPv4.
Resolved resolve(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (host.empty() ? AI_PASSIVE : 0);
  if (host.empty()) hints.ai_family = AF_INET;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
    found = nullptr;
  return {found, freeaddrinfo};
}
Fd new_socket(const addrinfo& a) {
  Fd fd(socket(a.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  FI_CHECK(fd, RuntimeError, "cannot make a socket: ", std::strerror(errno));
  return fd;
}
void set(const Fd& fd, int level, int option, int value) { setsockopt(fd.get(), level, option, &value, sizeof value); }
/// Small messages go at once, and a machine that vanished is noticed.
void tune(const Fd& fd) {
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

Fd connect_one(const addrinfo& a, Deadline deadline) {
  Fd fd = new_socket(a);
  if (connect(fd.get(), a.ai_addr, a.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return {};
    pollfd p{fd.get(), POLLOUT, 0};
    const auto left = deadline - std::chrono::steady_clock::now();
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
    if (poll(&p, 1, static_cast<int>(std::clamp<int64_t>(ms, 0, 2000))) <= 0) return {};
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error) return {};
  }
  // A port of the ephemeral range may connect to itself, when nothing listens there yet.
  sockaddr_storage own{}, other{};
  socklen_t n = sizeof own, m = sizeof other;
  if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &n) == 0 &&
      getpeername(fd.get(), reinterpret_cast<sockaddr*>(&other), &m) == 0 && n == m && !std::memcmp(&own, &other, n))
    return {};
  tune(fd);
  return fd;
}

/// Addresses of the interfaces that are up, those of IPv4 first.
std::vector<std::string> own_addresses() {
  if (const std::string set = env::text("FLASHINFER_COMM_HOST"); !set.empty()) return {set};
  std::vector<std::string> found;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {"127.0.0.1"};
  for (const ifaddrs* i = all; i; i = i->ifa_next) {
    if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET) continue;
    if (!(i->ifa_flags & IFF_UP) || i->ifa_flags & IFF_LOOPBACK) continue;
    char text[INET_ADDRSTRLEN];
    const auto* a = reinterpret_cast<const sockaddr_in*>(i->ifa_addr);
    if (inet_ntop(AF_INET, &a->sin_addr, text, sizeof text)) found.emplace_back(text);
  }
  freeifaddrs(all);
  found.emplace_back("127.0.0.1");  // for processes of this machine
  return found;
}
}  // namespace

std::string TcpAddress::text() const {
  std::string out(kScheme);
  for (const std::string& h : hosts) {
    if (&h != &hosts[0]) out += ',';
    out += h.find(':') == h.npos ? h : "[" + h + "]";
  }
  return out + str(":", port) + (token.empty() ? "" : "/" + token);
}

std::optional<TcpAddress> parse_tcp(std::string_view text) {
  if (!text.starts_with(kScheme)) return {};
  const std::string whole(text);
  const auto check = [&](bool ok) {
    FI_CHECK(ok, ValueError, "the group's name is '", whole, "', but must be tcp://HOST:PORT");
  };
  text.remove_prefix(kScheme.size());
  TcpAddress a;
  if (const size_t slash = text.find('/'); slash != text.npos) {
    a.token = text.substr(slash + 1);
    text = text.substr(0, slash);
  }
  const size_t colon = text.rfind(':');
  check(colon != text.npos && a.token.size() <= 64);
  const std::string_view port = text.substr(colon + 1);
  const auto r = std::from_chars(port.data(), port.data() + port.size(), a.port);
  check(r.ec == std::errc() && r.ptr == port.data() + port.size() && a.port > 0 && a.port < 65536);
  for (std::string_view hosts = text.substr(0, colon); !hosts.empty();) {
    const size_t comma = std::min(hosts.find(','), hosts.size());
    std::string_view host = hosts.substr(0, comma);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    check(!host.empty());
    a.hosts.emplace_back(host);
    hosts.remove_prefix(std::min(comma + 1, hosts.size()));
  }
  check(!a.hosts.empty());
  return a;
}

Fd listen_tcp(const TcpAddress& at) {
  std::vector<std::string> hosts = at.hosts;
  if (hosts.empty()) hosts.emplace_back();
  int problem = EADDRNOTAVAIL;
  for (const std::string& host : hosts) {
    const Resolved found = resolve(host, at.port);
    for (const addrinfo* a = found.get(); a; a = a->ai_next) {
      Fd fd = new_socket(*a);
      set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
      if (bind(fd.get(), a->ai_addr, a->ai_addrlen) == 0 && listen(fd.get(), kMaxRanks) == 0) return fd;
      problem = errno;
      if (problem == EADDRINUSE) return {};
    }
  }
  throw RuntimeError(str("cannot listen at ", at.text(), ": ", std::strerror(problem)));
}

int port_of(const Fd& listener) {
  sockaddr_storage a{};
  socklen_t size = sizeof a;
  FI_CHECK(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&a), &size) == 0, RuntimeError,
           "cannot read a socket's port: ", std::strerror(errno));
  return ntohs(a.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(a).sin6_port
                                       : reinterpret_cast<const sockaddr_in&>(a).sin_port);
}

Fd connect_tcp(const TcpAddress& to, Deadline deadline) {
  for (const std::string& host : to.hosts) {
    const Resolved found = resolve(host, to.port);
    for (const addrinfo* a = found.get(); a; a = a->ai_next)
      if (Fd fd = connect_one(*a, deadline)) return fd;
  }
  return {};
}

Fd accept_tcp(int listener) {
  Fd fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd) tune(fd);
  return fd;
}

Invitation invite(bool local) {
  Invitation i{.listener = {}, .address = {.token = random_name()}};
  if (local) i.address.hosts = {"127.0.0.1"};
  i.listener = listen_tcp(i.address);
  FI_CHECK(i.listener, RuntimeError, "cannot listen at a free port");
  i.address.port = port_of(i.listener);
  if (!local) i.address.hosts = own_addresses();
  return i;
}

}  // namespace flashinfer::comm
