// SPDX-License-Identifier: Apache-2.0
// Destinations of log records. A record is one write; logging never throws and never stops a call.
#pragma once
#include <time.h>

#include <string>
#include <string_view>

namespace flashinfer::record {

class Sink {
 public:
  /// The destination of this name ("stdout", "stderr", a path with %i for the process id). Sinks live as long as the
  /// process; a file that cannot be opened warns once on stderr and is replaced by stdout.
  static Sink& open(const std::string& destination);
  void write(std::string_view record);

 private:
  explicit Sink(int fd) : fd_(fd) {}
  int fd_;
  bool limited_ = false;  // RLIMIT_FSIZE is set, so SIGXFSZ must be blocked
};

/// strftime() of local time. Prevents a fork while libc's own lock is held: in a child it would stay locked.
void format_local_time(char* text, size_t size, const char* format, time_t seconds);

/// "[2026-11-21 02:57:24] ", 22 characters of local time, updated when the second changes.
std::string_view timestamp_prefix();

inline constexpr std::string_view kDoubleRuler =
    "================================================================================\n";
inline constexpr std::string_view kRuler =
    "--------------------------------------------------------------------------------\n";

}  // namespace flashinfer::record
