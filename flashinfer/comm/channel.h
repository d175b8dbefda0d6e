// SPDX-License-Identifier: Apache-2.0
// Frames over a Unix socket: bytes and file descriptors, with a deadline.
#pragma once
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace flashinfer::comm {

using Deadline = std::chrono::steady_clock::time_point;

/// A file descriptor that is closed with its owner.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

enum class FrameKind : uint32_t { kData, kError };
struct Frame {
  FrameKind kind = FrameKind::kData;
  std::string bytes{};
  std::vector<Fd> fds{};
};
enum class Received : uint8_t { kFrame, kClosed, kLate };

/// Waits until `fd` can be read, or has ended. False: the deadline passed.
bool wait_readable(int fd, Deadline deadline);
/// False: the other side has closed, or takes nothing before the deadline.
bool send_frame(int socket, FrameKind kind, std::string_view bytes, std::span<const int> fds, Deadline deadline);
/// kClosed also for a stream that is no frame.
Received receive_frame(int socket, Frame& frame, Deadline deadline);

/// Listens at, or connects to, the abstract socket `name` of this user. An invalid Fd when another process listens
/// there already, or none does. RuntimeError with the errno text for anything else.
Fd listen_at(const std::string& name);
Fd connect_to(const std::string& name);
/// The next connection of this user; those of other users are closed. Invalid: none is waiting.
Fd accept_at(int listener);

}  // namespace flashinfer::comm
