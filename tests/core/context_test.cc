// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/context.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "flashinfer/core/ordered_ranges.h"
#include "flashinfer/core/thread_pool.h"

namespace flashinfer {
namespace {

class Pool : public testing::TestWithParam<int> {
 protected:
  Pool() : executor_(make_thread_pool(GetParam())) { context_.executor = *executor_; }
  std::shared_ptr<const Executor> executor_;
  Context context_;
};

TEST_P(Pool, EveryTaskRunsExactlyOnce) {
  const ContextScope scope(context_);
  for (const int64_t n : {0, 1, 2, 3, 7, 64, 1000, 100000}) {
    std::vector<std::atomic<int>> ran(static_cast<size_t>(n));
    parallel_for(n, [&](int64_t i) { ran[static_cast<size_t>(i)].fetch_add(1); });
    for (const auto& r : ran) ASSERT_EQ(r.load(), 1) << n;
  }
}

TEST_P(Pool, StretchesRunEveryTaskOnceAndMostlyInOrder) {
  const ContextScope scope(context_);
  const int threads = GetParam();
  for (int64_t n : {0, 1, 2, 3, 8, 9, 1000}) {
    std::vector<std::atomic<int>> ran(static_cast<size_t>(n));
    parallel_for_ordered(n, [&](int64_t i) { ran[static_cast<size_t>(i)].fetch_add(1); });
    for (auto& r : ran) ASSERT_EQ(r.load(), 1) << n;
  }
  // With one thread running, the first range is taken in order and the others are stolen from their ends.
  Context alone = context_;
  alone.executor = {&alone, threads, [](void*, int64_t n, Executor::Task task, void* arg) {
                      for (int64_t i = 0; i < n; ++i) task(arg, i);
                    }};
  const ContextScope inner(alone);
  std::vector<int64_t> order, expected;
  parallel_for_ordered(100, [&](int64_t i) { order.push_back(i); });
  for (int64_t i = 0; i < 100 / threads; ++i) expected.push_back(i);
  for (int t = 1; t < threads; ++t)
    for (int64_t i = int64_t{100} * (t + 1) / threads; --i >= int64_t{100} * t / threads;) expected.push_back(i);
  EXPECT_EQ(order, expected);
}

TEST_P(Pool, ManyShortCallsInARow) {
  const ContextScope scope(context_);
  int64_t expected = 0;
  std::atomic<int64_t> sum{0};
  for (int64_t call = 0; call < 20000; ++call) {
    const int64_t n = 1 + call % 5;
    int64_t plain[5] = {};  // written by the tasks, read after the call: TSan checks the ordering
    parallel_for(n, [&](int64_t i) { plain[i] = call; });
    for (int64_t i = 0; i < n; ++i) sum += plain[i];
    expected += n * call;
  }
  EXPECT_EQ(sum.load(), expected);
}

TEST_P(Pool, WorkersThatSleepWakeUp) {
  const ContextScope scope(context_);
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // longer than workers watch
    std::atomic<int> ran{0};
    parallel_for(8, [&](int64_t) { ran.fetch_add(1); });
    ASSERT_EQ(ran.load(), 8);
  }
}

TEST_P(Pool, TheFirstExceptionComesBackAndThePoolStaysUsable) {
  const ContextScope scope(context_);
  for (int i = 0; i < 50; ++i) {
    EXPECT_THROW(parallel_for(100,
                              [](int64_t t) {
                                if (t % 10 == 3) throw std::out_of_range("task");
                              }),
                 std::out_of_range);
    std::atomic<int> ran{0};
    parallel_for(100, [&](int64_t) { ran.fetch_add(1); });
    ASSERT_EQ(ran.load(), 100);
  }
}

TEST_P(Pool, NestedCallsRunInline) {
  const ContextScope scope(context_);
  std::atomic<int> inner{0}, moved{0};
  parallel_for(16, [&](int64_t) {
    const auto self = std::this_thread::get_id();
    parallel_for(16, [&](int64_t) {
      inner.fetch_add(1);
      if (std::this_thread::get_id() != self) moved.fetch_add(1);
    });
  });
  EXPECT_EQ(inner.load(), 256);
  EXPECT_EQ(moved.load(), 0);
}

TEST_P(Pool, SeveralThreadsMayCallAtOnce) {
  std::atomic<int64_t> total{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t)
    callers.emplace_back([&] {
      const ContextScope scope(context_);
      for (int call = 0; call < 500; ++call) {
        std::vector<int> ran(17);
        parallel_for(17, [&](int64_t i) { ran[static_cast<size_t>(i)] += 1; });
        for (const int r : ran) total += r;
      }
    });
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(total.load(), 4 * 500 * 17);
}

TEST_P(Pool, TasksSeeTheCallersContext) {
  context_.stream = &context_;
  const ContextScope scope(context_);
  std::atomic<int> wrong{0};
  parallel_for(64, [&](int64_t) {
    if (Context::current().stream != &context_) wrong.fetch_add(1);
  });
  EXPECT_EQ(wrong.load(), 0);
}

TEST_P(Pool, WorksInAForkedChildAndStillInTheParent) {
  const ContextScope scope(context_);
  parallel_for(64, [](int64_t) {});  // the parent's workers exist
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<int> ran{0};
    for (int i = 0; i < 100; ++i) parallel_for(64, [&](int64_t) { ran.fetch_add(1); });
    _exit(ran.load() == 6400 ? 7 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  std::atomic<int> ran{0};
  parallel_for(64, [&](int64_t) { ran.fetch_add(1); });
  EXPECT_EQ(ran.load(), 64);
}

INSTANTIATE_TEST_SUITE_P(Threads, Pool, testing::Values(1, 2, 3, 8), testing::PrintToStringParamName());

TEST(ThreadPool, UsesItsThreads) {
  const auto pool = make_thread_pool(3);
  Context context;
  context.executor = *pool;
  const ContextScope scope(context);
  std::mutex mutex;
  std::set<std::thread::id> seen;
  std::atomic<int> inside{0};
  parallel_for(3, [&](int64_t) {
    inside.fetch_add(1);
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (inside.load() < 3 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
    const std::lock_guard lock(mutex);
    seen.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(seen.size(), 3u);  // all three were inside at once
}

TEST(ThreadPool, SleepersWakeOffTheCallersCpu) {
  if (usable_cpus() < 2) GTEST_SKIP() << "needs two CPUs";
  const auto pool = make_thread_pool(2);
  Context context;
  context.executor = *pool;
  const ContextScope scope(context);
  const auto caller = std::this_thread::get_id();
  const auto call = [&] {  // whether the worker may not run where the caller was; the caller may have moved meanwhile
    const int here = sched_getcpu();
    std::atomic<int> inside{0};
    std::atomic<bool> off{false};
    parallel_for(2, [&](int64_t) {
      inside.fetch_add(1);
      const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(5);
      while (inside.load() < 2 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
      cpu_set_t mine;
      if (std::this_thread::get_id() != caller && sched_getaffinity(0, sizeof mine, &mine) == 0)
        off = !CPU_ISSET(here, &mine);
    });
    return off.load();
  };
  call();  // starts the worker
  bool off = false;
  for (int i = 0; i < 500 && !off; ++i) {  // on a busy machine the worker may not get to its sleep, or the caller move
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // it sleeps after 0.1 ms
    off = call();
  }
  EXPECT_TRUE(off);
}

TEST(Executor, AnEnginesOwnThreadsRunTheTasks) {
  struct Engine {
    int calls = 0;
    std::vector<int64_t> order;
  } engine;
  Context context;
  context.executor = {&engine, 4, [](void* self, int64_t n, Executor::Task task, void* arg) {
                        auto& e = *static_cast<Engine*>(self);
                        ++e.calls;
                        for (int64_t i = n - 1; i >= 0; --i) {
                          e.order.push_back(i);
                          task(arg, i);
                        }
                      }};
  const ContextScope scope(context);
  int64_t sum = 0;
  parallel_for(5, [&](int64_t i) { sum += i; });
  EXPECT_EQ(engine.calls, 1);
  EXPECT_EQ(sum, 10);
  EXPECT_EQ(engine.order.front(), 4);
  EXPECT_THROW(parallel_for(5, [](int64_t) { throw std::runtime_error("x"); }), std::runtime_error);
}

TEST(Context, ScopesNestPerThread) {
  EXPECT_EQ(Context::current().stream, nullptr);
  Context a, b;
  a.stream = &a;
  b.stream = &b;
  {
    const ContextScope outer(a);
    {
      const ContextScope inner(b);
      EXPECT_EQ(Context::current().stream, &b);
      std::thread([] { EXPECT_EQ(Context::current().stream, nullptr); }).join();
    }
    EXPECT_EQ(Context::current().stream, &a);
  }
  EXPECT_EQ(Context::current().stream, nullptr);
}

TEST(Cpus, AtLeastOneAndNotMoreThanTheMachine) {
  EXPECT_GE(usable_cpus(), 1);
  EXPECT_LE(usable_cpus(), sysconf(_SC_NPROCESSORS_CONF));
}

}  // namespace
}  // namespace flashinfer
