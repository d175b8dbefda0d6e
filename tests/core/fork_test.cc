// SPDX-License-Identifier: Apache-2.0
// fork() in a process with threads: ForkMutex and Once.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "flashinfer/core/fork_mutex.h"
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

struct Guarded {
  ForkMutex mutex;
  int values[2] = {};
};

TEST(Fork, MutexesAreFreeInTheChildAndWhatTheyGuardIsWhole) {
  static constinit Guarded all[] = {
      {ForkMutex(ForkLayer::kRecord, 0)}, {ForkMutex(ForkLayer::kRecord, 1)}, {ForkMutex(ForkLayer::kOps)},
      {ForkMutex(ForkLayer::kOps)},       {ForkMutex(ForkLayer::kCore, 2)},
  };
  EXPECT_EQ(in_child([] { return true; }), 0);  // none of them has joined yet
  std::atomic<bool> stop{false};
  std::atomic<int> rounds{0};
  std::thread busy([&] {
    while (!stop.load()) {
      for (Guarded& g : all) {
        const std::lock_guard lock(g.mutex);
        ++g.values[0];
        std::this_thread::sleep_for(20us);
        ++g.values[1];
      }
      ++rounds;
    }
  });
  for (int n = 0; n < 30; ++n) {
    const int before = rounds.load();
    EXPECT_EQ(in_child([&] {
                for (Guarded& g : all) {
                  const std::lock_guard lock(g.mutex);
                  if (g.values[0] != g.values[1]) return false;
                }
                return true;
              }),
              0);
    while (rounds.load() == before) std::this_thread::sleep_for(10us);  // the parent's are free again, too
  }
  stop = true;
  busy.join();
}

/// In another order, fork() would hold what the thread waits for and wait for what the thread holds.
TEST(Fork, TakesMutexesByLayerAndPlaceWhateverJoinedFirst) {
  static constinit ForkMutex first(ForkLayer::kJit, 0), second(ForkLayer::kJit, 1), third(ForkLayer::kOps, 0);
  for (ForkMutex* m : {&third, &first, &second}) m->get();
  ::alarm(60);
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop.load()) {
      const std::lock_guard outer(first);
      std::this_thread::sleep_for(20us);
      const std::lock_guard middle(second);
      std::this_thread::sleep_for(20us);
      const std::lock_guard inner(third);
    }
  });
  for (int n = 0; n < 30; ++n) EXPECT_EQ(in_child([] { return true; }), 0);
  stop = true;
  busy.join();
  ::alarm(0);
}

/// Who holds a mutex may meet another one for the first time, while fork() waits for the one that is held.
TEST(Fork, WaitsForMutexesThatJoinWhileItTakesTheOthers) {
  static constinit ForkMutex outer(ForkLayer::kJit, 0);
  static constinit Guarded inner[] = {
      {ForkMutex(ForkLayer::kRecord, 9)},  // before `outer`: fork() has passed its place
      {ForkMutex(ForkLayer::kJit, 1)},
      {ForkMutex(ForkLayer::kCore, 9)},
  };
  ::alarm(60);
  for (Guarded& g : inner) {
    std::atomic<bool> holds{false};
    std::thread busy([&] {
      {
        const std::lock_guard lock(outer);
        holds = true;
        std::this_thread::sleep_for(20ms);  // fork() waits for `outer` by now
        if (&g != &inner[0]) g.mutex.get();
      }
      const std::lock_guard lock(g.mutex);
      ++g.values[0];
      std::this_thread::sleep_for(20ms);
      ++g.values[1];
    });
    while (!holds.load()) std::this_thread::sleep_for(100us);
    EXPECT_EQ(in_child([&] {
                const std::lock_guard lock(g.mutex);
                return g.values[0] == g.values[1];
              }),
              0);
    busy.join();
  }
  ::alarm(0);
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
