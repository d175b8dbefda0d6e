// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/cli/case_jobs.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "flashinfer/core/check.h"

namespace flashinfer::cli {
namespace {

using Counter = std::atomic<uint64_t>;  // of the next part, in memory that all processes share
static_assert(Counter::is_always_lock_free);

/// A part's number and text follow.
struct Header {
  uint64_t part, bytes;
  bool begins;  // no text: the part was begun
};

void write_all(int fd, const void* data, size_t bytes) {
  for (const char* p = static_cast<const char*>(data); bytes > 0;) {
    const ssize_t n = ::write(fd, p, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) ::_exit(1);  // the reader has closed the pipe
    p += n, bytes -= static_cast<size_t>(n);
  }
}

struct Worker {
  pid_t pid = -1;
  int from = -1;
  std::string read;             // not a whole message yet
  std::optional<size_t> begun;  // the part that it is at
};

[[noreturn]] void work(int to, Counter& next, size_t n, const std::function<std::string(size_t)>& part) {
  for (uint64_t i = next++; i < n; i = next++) {
    const Header begins{i, 0, true};
    write_all(to, &begins, sizeof begins);
    const std::string text = part(i);
    const Header ends{i, text.size(), false};
    write_all(to, &ends, sizeof ends);
    write_all(to, text.data(), text.size());
  }
  ::_exit(0);  // the parent's exit handlers are not the child's
}

Worker start(Counter& next, size_t n, const std::function<std::string(size_t)>& part) {
  int ends[2];
  FI_CHECK(::pipe(ends) == 0, RuntimeError, "no pipe to another process: ", std::strerror(errno));
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(ends[0]);
    work(ends[1], next, n, part);
  }
  const int why = errno;
  ::close(ends[1]);
  if (pid < 0) ::close(ends[0]);
  FI_CHECK(pid > 0, RuntimeError, "no process can be started: ", std::strerror(why));
  return {pid, ends[0], {}, {}};
}

/// Takes whole messages off what was read.
void deliver(Worker& w, const std::function<void(size_t, const std::string&)>& done) {
  Header h;
  while (w.read.size() >= sizeof h) {
    std::memcpy(&h, w.read.data(), sizeof h);
    if (w.read.size() < sizeof h + h.bytes) return;
    const std::string text = w.read.substr(sizeof h, h.bytes);
    w.read.erase(0, sizeof h + h.bytes);
    if (h.begins) {
      w.begun = h.part;
    } else {
      w.begun.reset();
      done(h.part, text);
    }
  }
}

}  // namespace

void in_processes(size_t n, int jobs, const std::function<std::string(size_t)>& part,
                  const std::function<void(size_t, const std::string&)>& done,
                  const std::function<void(size_t, int)>& died) {
  void* const shared = ::mmap(nullptr, sizeof(Counter), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  FI_CHECK(shared != MAP_FAILED, RuntimeError, "no memory that processes share: ", std::strerror(errno));
  const std::shared_ptr<void> unmap(shared, [](void* p) { ::munmap(p, sizeof(Counter)); });
  Counter& next = *new (shared) Counter(0);
  std::vector<Worker> workers;
  for (size_t i = 0; i < std::min(n, static_cast<size_t>(std::max(jobs, 1))); ++i)
    workers.push_back(start(next, n, part));
  while (!workers.empty()) {
    std::vector<pollfd> waits;
    for (const Worker& w : workers) waits.push_back({w.from, POLLIN, 0});
    if (::poll(waits.data(), waits.size(), -1) < 0) continue;
    for (size_t i = workers.size(); i-- > 0;) {
      if (waits[i].revents == 0) continue;
      Worker& w = workers[i];
      char piece[4096];
      const ssize_t got = ::read(w.from, piece, sizeof piece);
      if (got < 0) continue;
      w.read.append(piece, static_cast<size_t>(got));
      deliver(w, done);
      if (got > 0) continue;
      int status = 0;
      ::close(w.from);
      while (::waitpid(w.pid, &status, 0) < 0 && errno == EINTR) {
      }
      const std::optional<size_t> at = w.begun;
      workers.erase(workers.begin() + static_cast<std::ptrdiff_t>(i));
      if (!at) continue;
      died(*at, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
      if (next < n) workers.push_back(start(next, n, part));
    }
  }
}

}  // namespace flashinfer::cli
