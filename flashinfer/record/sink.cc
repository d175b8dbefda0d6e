// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/record/sink.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "flashinfer/formats/file.h"
#include "flashinfer/record/locks.h"

namespace flashinfer::record {
namespace {

std::string with_pid(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "%i") == 0) {
      out += std::to_string(::getpid());
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

int open_log(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0)
    std::fprintf(stderr, "flashinfer: warning: cannot open the log %s: %s; logging to stdout\n", path.c_str(),
                 std::strerror(errno));
  return fd < 0 ? STDOUT_FILENO : fd;
}

}  // namespace

Sink& Sink::open(const std::string& destination) {
  static auto& sinks = *new std::map<std::string, std::unique_ptr<Sink>>;  // calls may log until the process ends
  const std::lock_guard lock(g_sinks_mutex);
  std::unique_ptr<Sink>& sink = sinks[destination];
  if (!sink) {
    const int fd = destination == "stdout"   ? STDOUT_FILENO
                   : destination == "stderr" ? STDERR_FILENO
                                             : open_log(with_pid(destination));
    sink.reset(new Sink(fd));
    rlimit limit{};
    sink->limited_ = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  }
  return *sink;
}

void Sink::write(std::string_view record) {
  if (fd_ == STDOUT_FILENO) std::fflush(stdout);  // keeps the order with the program's own output
  std::optional<formats::FileSizeLimit> limit;
  if (limited_) limit.emplace();
  const int saved = errno;
  while (!record.empty()) {
    const ssize_t n = ::write(fd_, record.data(), record.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    record.remove_prefix(static_cast<size_t>(n));
  }
  errno = saved;
}

void format_local_time(char* text, size_t size, const char* format, time_t seconds) {
  const std::lock_guard lock(g_local_time_mutex);
  tm local;
  localtime_r(&seconds, &local);
  strftime(text, size, format, &local);
}

std::string_view timestamp_prefix() {
  thread_local time_t second = -1;
  thread_local char text[40];
  timespec now;
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  if (now.tv_sec != second) {
    format_local_time(text, sizeof text, "[%Y-%m-%d %H:%M:%S] ", now.tv_sec);
    second = now.tv_sec;
  }
  return {text, 22};
}

}  // namespace flashinfer::record
