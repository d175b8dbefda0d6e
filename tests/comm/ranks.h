// SPDX-License-Identifier: Apache-2.0
// Runs a test's ranks: as threads of this process, or as processes of their own, which may be killed.
#pragma once
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "flashinfer/core/env.h"
#include "gtest/gtest.h"

#define EXPECT_HAS(text, part) EXPECT_PRED_FORMAT2(testing::IsSubstring, std::string(part), std::string(text))

namespace flashinfer {

/// A name that no other test, run or process uses.
inline std::string fresh_name() {
  static int count = 0;
  return "test-" + std::to_string(getpid()) + "-" + std::to_string(++count);
}

/// How long ranks wait for others, while it lives.
class Timeout {
 public:
  explicit Timeout(const char* seconds) {
    setenv("FLASHINFER_COMM_TIMEOUT_S", seconds, 1);
    env::reload();
  }
  ~Timeout() {
    unsetenv("FLASHINFER_COMM_TIMEOUT_S");
    env::reload();
  }
};

/// What a rank threw; empty: nothing.
using Outcome = std::string;
template <class F>
Outcome outcome_of(F&& f) {
  try {
    f();
    return {};
  } catch (const std::exception& e) {
    return e.what();
  }
}

inline std::vector<Outcome> run_threads(int ranks, const std::function<void(int rank)>& f) {
  std::vector<Outcome> outcomes(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] { outcomes[static_cast<size_t>(r)] = outcome_of([&] { f(r); }); });
  for (auto& t : threads) t.join();
  return outcomes;
}

/// A child process that runs f; what it threw comes back through a pipe.
class Process {
 public:
  explicit Process(const std::function<void()>& f) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("pipe");
    id_ = fork();
    if (id_ == 0) {
      close(ends[0]);
      const Outcome outcome = outcome_of(f);
      const ssize_t n = write(ends[1], outcome.data(), outcome.size());
      _exit(n == static_cast<ssize_t>(outcome.size()) ? 0 : 1);
    }
    close(ends[1]);
    out_ = ends[0];
  }
  Process(Process&& other) noexcept : id_(std::exchange(other.id_, -1)), out_(std::exchange(other.out_, -1)) {}
  ~Process() {
    if (id_ > 0) {
      kill();
      wait();
    }
  }
  void kill() const { ::kill(id_, SIGKILL); }
  pid_t id() const { return id_; }
  /// What it threw; "killed" when a signal ended it.
  Outcome wait() {
    Outcome outcome;
    char part[512];
    for (ssize_t n; (n = read(out_, part, sizeof part)) > 0;) outcome.append(part, static_cast<size_t>(n));
    close(out_);
    int status = 0;
    waitpid(std::exchange(id_, -1), &status, 0);
    return WIFSIGNALED(status) ? "killed" : outcome;
  }

 private:
  pid_t id_ = -1;
  int out_ = -1;
};

/// Counts ranks that are processes, in memory that they share with the test.
class Arrivals {
 public:
  Arrivals() {
    void* at = mmap(nullptr, sizeof *count_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::runtime_error("mmap");
    count_ = new (at) std::atomic<int>(0);
  }
  Arrivals(const Arrivals&) = delete;
  ~Arrivals() { munmap(count_, sizeof *count_); }
  void arrive() const { count_->fetch_add(1); }
  /// Returns when n have arrived, or after a minute: then a rank has an outcome that the test looks at.
  void wait_for(int n) const {
    for (int ms = 0; count_->load() < n && ms < 60'000; ++ms) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  std::atomic<int>* count_;
};

inline std::vector<Outcome> run_processes(int ranks, const std::function<void(int rank)>& f) {
  std::vector<Process> processes;
  for (int r = 0; r < ranks; ++r) processes.emplace_back([&f, r] { f(r); });
  std::vector<Outcome> outcomes;
  for (auto& p : processes) outcomes.push_back(p.wait());
  return outcomes;
}

}  // namespace flashinfer
