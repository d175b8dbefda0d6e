// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/bench/peer.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iterator>

#include "flashinfer/bench/peers_script.h"
#include "flashinfer/core/check.h"

extern char** environ;

namespace flashinfer::bench {
namespace {

// torch.compile of a row may take this long.
constexpr int kAnswerMilliseconds = 300'000;

/// A process that answers lines with lines. A socket in place of pipes: writing to a process that has ended is an
/// error, not SIGPIPE.
class Answers {
 public:
  explicit Answers(const std::vector<std::string>& argv) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
    std::vector<char*> args;
    for (const std::string& a : argv) args.push_back(const_cast<char*>(a.c_str()));
    args.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    if (posix_spawnp(&pid_, args[0], &actions, nullptr, args.data(), environ) != 0) pid_ = 0;
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    socket_ = ends[0];
  }
  ~Answers() {
    if (socket_ >= 0) ::close(socket_);  // the end of its input ends it
    if (pid_ > 0) {
      ::kill(pid_, SIGTERM);
      while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
  }
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;

  /// The next line of the process after it got `line` (empty: nothing is written); empty when it has ended.
  std::string ask(std::string line) {
    if (pid_ == 0) return "";
    if (!line.empty()) line += '\n';
    for (size_t done = 0; done < line.size();) {
      const ssize_t n = ::send(socket_, line.data() + done, line.size() - done, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return "";
      done += static_cast<size_t>(n);
    }
    for (;;) {
      if (const size_t end = read_.find('\n'); end != std::string::npos) {
        const std::string answer = read_.substr(0, end);
        read_.erase(0, end + 1);
        return answer;
      }
      pollfd p{socket_, POLLIN, 0};
      const int ready = ::poll(&p, 1, kAnswerMilliseconds);
      if (ready < 0 && errno == EINTR) continue;
      char buffer[4096];
      const ssize_t n = ready > 0 ? ::read(socket_, buffer, sizeof(buffer)) : 0;
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return "";
      read_.append(buffer, static_cast<size_t>(n));
    }
  }

 private:
  pid_t pid_ = 0;
  int socket_ = -1;
  std::string read_;
};

class LibraryPeer : public Peer {
 public:
  LibraryPeer(const std::string& name, const std::string& python) : name_(name), python_(python) {}

  const std::string& name() const override { return name_; }
  bool prepare(const op::Op& op, const op::Case& c, int threads) override {
    if (!process_) {
      process_ = std::make_unique<Answers>(
          std::vector<std::string>{python_, "-c", kPeersScript, "--answer", name_, std::to_string(threads)});
      installed_ = process_->ask("") == "ready";
    }
    return installed_ && process_->ask(str("row ", op.name, " ", threads, " ", c.args)) == "ready";
  }
  double seconds(int calls) override {
    const std::string answer = process_->ask(str("run ", calls));
    // Its threads spin after a call; they sleep before ours start.
    ::usleep(10'000);
    const double t = std::strtod(answer.c_str(), nullptr);
    FI_CHECK(t > 0, RuntimeError, name_, " answered '", answer, "' in place of a time");
    return t;
  }

 private:
  std::string name_, python_;
  std::unique_ptr<Answers> process_;
  bool installed_ = false;
};

}  // namespace

std::unique_ptr<Peer> library_peer(const std::string& name, const std::string& python) {
  if (std::find(std::begin(kPeers), std::end(kPeers), name) == std::end(kPeers)) {
    std::string all;
    for (const char* p : kPeers) all += str(all.empty() ? "" : ", ", p);
    throw ValueError(str("there is no peer '", name, "', but ", all));
  }
  return std::make_unique<LibraryPeer>(name, python);
}

}  // namespace flashinfer::bench
