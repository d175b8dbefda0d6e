// SPDX-License-Identifier: Apache-2.0
// Sockets between hosts: how the ranks of a group find each other by an address, and how two ranks connect.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flashinfer/comm/channel.h"

namespace flashinfer::comm {

/// Where a process listens. As text "tcp://HOST[,HOST...]:PORT[/TOKEN]": the hosts are addresses or names of one
/// machine, tried in turn; an IPv6 address is in brackets. Who connects says the token, which strangers do not know.
struct TcpAddress {
  std::vector<std::string> hosts{};
  int port = 0;
  std::string token{};
  std::string text() const;
};
/// Nothing when the text does not begin with "tcp://". ValueError: it is no such address.
std::optional<TcpAddress> parse_tcp(std::string_view text);

/// Listens at the address's first host that is of this machine, or at all of them when there is none given; port 0: one
/// that is free. An invalid Fd: another process listens at the port. RuntimeError with the errno text for anything
/// else.
Fd listen_tcp(const TcpAddress& at);
int port_of(const Fd& listener);
/// An invalid Fd: no host of the address takes connections. Tries each for at most two seconds.
Fd connect_tcp(const TcpAddress& to, Deadline deadline);
/// The next connection. Invalid: none is waiting.
Fd accept_tcp(int listener);

/// A listener at a free port, and its address with a random token. `local`: for processes of this machine alone. Else
/// for all that reach FLASHINFER_COMM_HOST, or an address of this machine's interfaces when that is empty.
struct Invitation {
  Fd listener;
  TcpAddress address;
};
Invitation invite(bool local);

}  // namespace flashinfer::comm
