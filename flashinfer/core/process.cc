// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

extern char** environ;

namespace flashinfer::process {

std::vector<std::string> through_shell(const std::vector<std::string>& argv, const std::string& cwd) {
  std::vector<std::string> words = {"/bin/sh", "-c", "cd -- \"$0\" && exec \"$@\"", cwd};
  words.insert(words.end(), argv.begin(), argv.end());
  return words;
}

namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kMaxOutput = 1 << 20;

double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

/// In the child: stdin from /dev/null, stdout and stderr to `pipe_fd`, a new process group (so that a timeout reaches
/// the compiler's own children), no inherited blocked or ignored signals.
int spawn(std::vector<std::string> argv, const std::string& cwd, int pipe_fd, pid_t* pid) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipe_fd, 1);
  posix_spawn_file_actions_adddup2(&actions, pipe_fd, 2);
  // glibc 2.28, which the wheel runs on, has it not: ENOSYS.
  if (!cwd.empty() && posix_spawn_file_actions_addchdir_np(&actions, cwd.c_str()) != 0) argv = through_shell(argv, cwd);
  std::vector<char*> args;
  for (const std::string& a : argv) args.push_back(const_cast<char*>(a.c_str()));
  args.push_back(nullptr);
  posix_spawnattr_t attr;
  posix_spawnattr_init(&attr);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attr, &none);
  posix_spawnattr_setsigdefault(&attr, &all);
  posix_spawnattr_setpgroup(&attr, 0);
  posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int error = posix_spawnp(pid, args[0], &actions, &attr, args.data(), environ);
  posix_spawnattr_destroy(&attr);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

struct Child {
  pid_t pid = 0;
  bool reaped = false;
  int exit_code = 0;

  /// True when it has ended. `options` as for waitpid.
  bool reap(int options) {
    int status = 0;
    pid_t rc = 0;
    while (!reaped && (rc = ::waitpid(pid, &status, options)) < 0 && errno == EINTR) {
    }
    if (reaped || rc == 0) return reaped;
    reaped = true;
    // No status: the host reaps all children itself (SIGCHLD ignored). The caller checks the program's output files.
    if (rc == pid) exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return true;
  }
};

/// Reads until the output is closed, the child has ended, or the time is up or it is stopped (false). A process that
/// another thread forks meanwhile inherits our end of the pipe, so the end of the output may come late or never.
bool collect(int fd, Child& child, const Options& options, Clock::time_point start, std::string& output) {
  bool reported = !options.on_slow, ended = false;
  char buffer[16384];
  for (;;) {
    const double now = seconds_since(start);
    if (!reported && now >= options.slow_after_seconds) {  // also when this thread was delayed beyond that time
      reported = true;
      options.on_slow();
    }
    if (now >= options.timeout_seconds || (options.stop && options.stop())) return false;
    pollfd p{fd, POLLIN, 0};
    const int ready = ::poll(&p, 1, ended ? 0 : 20);
    if (ready < 0 && errno != EINTR) return true;
    if (ready == 0 && ended) return true;  // all output has been read
    if (ready <= 0) {
      ended = child.reap(WNOHANG);
      continue;
    }
    const ssize_t n = ::read(fd, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    output.append(buffer, std::min(static_cast<size_t>(n), kMaxOutput - std::min(kMaxOutput, output.size())));
  }
}

}  // namespace

Result run(const std::vector<std::string>& argv, const Options& options) {
  Result result;
  const auto start = Clock::now();
  int fds[2];
  if (argv.empty() || ::pipe2(fds, O_CLOEXEC) != 0) {
    result.output = argv.empty() ? "no program given" : std::strerror(errno);
    result.exit_code = 127;
    return result;
  }
  Child child;
  const int error = spawn(argv, options.cwd, fds[1], &child.pid);
  ::close(fds[1]);
  if (error != 0) {
    ::close(fds[0]);
    result.output = argv[0] + ": " + std::strerror(error);
    result.exit_code = 127;
    return result;
  }
  if (!collect(fds[0], child, options, start, result.output)) {
    result.stopped = options.stop && options.stop();
    result.timed_out = !result.stopped;
    ::kill(-child.pid, SIGKILL);
  }
  ::close(fds[0]);
  child.reap(0);
  result.exit_code = child.exit_code;
  result.seconds = seconds_since(start);
  return result;
}

std::string find_executable(const std::string& name, const std::string& search_path,
                            const std::function<bool(const std::string&)>& accept) {
  const auto usable = [&](const std::string& path) {
    struct stat st{};
    return ::stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode) && ::access(path.c_str(), X_OK) == 0 &&
           (!accept || accept(path));
  };
  if (name.empty()) return {};
  if (name.find('/') != std::string::npos) return usable(name) ? name : std::string();
  for (size_t begin = 0; begin < search_path.size();) {
    const size_t end = std::min(search_path.find(':', begin), search_path.size());
    const std::string folder = search_path.substr(begin, end - begin);
    // Relative entries (an empty one means ".") are skipped: a cache key must not depend on the current folder.
    if (!folder.empty() && folder[0] == '/' && usable(folder + "/" + name)) return folder + "/" + name;
    begin = end + 1;
  }
  return {};
}

std::string shell_line(const std::vector<std::string>& argv) {
  constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  std::string line;
  for (const std::string& a : argv) {
    if (!line.empty()) line += ' ';
    if (!a.empty() && a.find_first_not_of(kPlain) == std::string::npos) {
      line += a;
      continue;
    }
    line += '\'';
    for (const char c : a) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

std::vector<std::string> split_words(const std::string& text) {
  std::vector<std::string> words;
  bool open = false;  // inside a word
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        words.back() += c;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      open = false;
    } else {
      if (!open) words.emplace_back();
      open = true;
      if (c == '\'' || c == '"')
        quote = c;
      else
        words.back() += c;
    }
  }
  return words;
}

}  // namespace flashinfer::process
