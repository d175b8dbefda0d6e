// SPDX-License-Identifier: Apache-2.0
// fork() in a process with threads: ForkLock and Once.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "flashinfer/core/fork_lock.h"
#include "flashinfer/core/once.h"

namespace flashinfer {
namespace {

using namespace std::chrono_literals;

/// Exit status of a child that does `f`: 0 when it returns true, SIGALRM's when it waits.
template <class F>
int in_child(F f) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    ::_exit(f() ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(Fork, ForkLocksAreFreeInTheChildAndWhatTheyGuardIsWhole) {
  constexpr int kLocks = static_cast<int>(ForkLock::kCount);
  std::atomic<bool> stop{false};
  std::atomic<int> rounds{0};
  int guarded[kLocks][2] = {};
  std::thread busy([&] {
    while (!stop.load()) {
      for (int i = 0; i < kLocks; ++i) {
        const std::lock_guard lock(fork_lock(static_cast<ForkLock>(i)));
        ++guarded[i][0];
        std::this_thread::sleep_for(20us);
        ++guarded[i][1];
      }
      ++rounds;
    }
  });
  for (int n = 0; n < 30; ++n) {
    const int before = rounds.load();
    EXPECT_EQ(in_child([&] {
                for (int i = 0; i < kLocks; ++i) {
                  const std::lock_guard lock(fork_lock(static_cast<ForkLock>(i)));
                  if (guarded[i][0] != guarded[i][1]) return false;
                }
                return true;
              }),
              0);
    while (rounds.load() == before) std::this_thread::sleep_for(10us);  // the parent's are free again, too
  }
  stop = true;
  busy.join();
}

TEST(Fork, AChildMakesItsOwnOfWhatAnotherThreadWasMaking) {
  static constinit Once<int> once;
  std::atomic<bool> inside{false}, go_on{false};
  std::thread making([&] {
    once.get([&] {
      inside = true;
      while (!go_on.load()) std::this_thread::sleep_for(100us);
      return 1;
    });
  });
  while (!inside.load()) std::this_thread::sleep_for(100us);
  EXPECT_EQ(in_child([] { return once.get([] { return 2; }) == 2 && once.get([] { return 3; }) == 2; }), 0);
  go_on = true;
  making.join();
  EXPECT_EQ(once.get([] { return 3; }), 1);
}

}  // namespace
}  // namespace flashinfer
