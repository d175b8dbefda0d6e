// SPDX-License-Identifier: Apache-2.0
// The forms of a group's name: a name on this machine, an address of TCP, a file with one.
#include <unistd.h>

#include <map>
#include <mutex>

#include "flashinfer/comm/group_state.h"
#include "flashinfer/comm/tcp.h"
#include "flashinfer/core/fork_mutex.h"
#include "flashinfer/core/fs.h"

namespace flashinfer::comm {
namespace {

constinit ForkMutex g_mutex(ForkLayer::kCore, 101);
/// Listeners of this process's invitations that no group has used yet, by address.
std::map<std::string, Fd>& invitations() {
  static auto* all = new std::map<std::string, Fd>;
  return *all;
}
Fd take_invitation(const std::string& address) {
  const std::scoped_lock lock(g_mutex);
  auto found = invitations().extract(address);
  return found.empty() ? Fd() : std::move(found.mapped());
}

Meeting at_address(const std::string& text, const TcpAddress& address) {
  return {.listen =
              [text, address] {
                Fd invited = take_invitation(text);
                return invited ? std::move(invited) : listen_tcp(address);
              },
          .connect = [address] { return connect_tcp(address, after(5)); },
          .accept = accept_tcp,
          .local = false,
          .token = std::make_shared<std::string>(address.token)};
}

constexpr std::string_view kFile = "file://";
Meeting at_file(const std::string& path) {
  FI_CHECK(path.starts_with('/'), ValueError, "the group's name is '", kFile, path,
           "', but must be file:// and an absolute path");
  const auto token = std::make_shared<std::string>();
  const auto listen = [path, token] {
    const std::string address = Group::invite();
    *token = parse_tcp(address)->token;
    fs::write_atomic(path, address);
    return take_invitation(address);
  };
  const auto connect = [path, token]() -> Fd {
    const auto text = fs::read_file(path);
    const auto address = text ? parse_tcp(*text) : std::nullopt;
    if (!address) return {};
    *token = address->token;
    return connect_tcp(*address, after(5));
  };
  return {.listen = listen, .connect = connect, .accept = accept_tcp, .local = false, .token = token, .done = [path] {
            unlink(path.c_str());
          }};
}
}  // namespace

std::string Group::invite() {
  Invitation i = comm::invite(false);
  std::string address = i.address.text();
  const std::scoped_lock lock(g_mutex);
  invitations()[address] = std::move(i.listener);
  return address;
}
void Group::withdraw(const std::string& address) { take_invitation(address); }

Meeting meeting_of(const std::string& name) {
  if (const auto address = parse_tcp(name)) return at_address(name, *address);
  if (name.starts_with(kFile)) return at_file(name.substr(kFile.size()));
  return {.listen = [name] { return listen_at(name); },
          .connect = [name] { return connect_to(name); },
          .accept = accept_at,
          .local = true};
}

}  // namespace flashinfer::comm
