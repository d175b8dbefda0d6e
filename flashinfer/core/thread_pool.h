// SPDX-License-Identifier: Apache-2.0
// The library's own executor. A decode step makes about 330 parallel calls of 10-50 us each, and waking a sleeping
// thread costs 30-75 us, so idle workers spin for a short while before they sleep.
#pragma once
#include <atomic>
#include <cstdint>

#include "flashinfer/core/context.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// The library's pool, whatever default_executor() is.
Executor own_executor();
/// Sets the executor of contexts created from now on without another one.
void set_default_executor(const Executor& e);

/// CPUs that the cgroup quota of this process allows, rounded up; 0: it has none.
int cpu_quota();
/// Number of CPUs this process may use: its affinity mask, reduced by that quota. At least 1.
int usable_cpus();

class ThreadPool {
 public:
  using Task = void (*)(void* arg, int64_t index);

  /// Threads start at the first call of run().
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }
  /// Runs task(arg, 0..n-1) on the caller and the workers; tasks must not throw. Several threads may call at once:
  /// while one uses the workers, the others run their own tasks themselves and use the workers as soon as they are
  /// free.
  void run(int64_t n, Task task, void* arg);

  struct Workers;

 private:
  friend struct ForkGuard;
  const int threads_;
  std::atomic<Workers*> workers_;  // replaced in a forked child, where the parent's threads do not exist
};

}  // namespace flashinfer

#pragma GCC visibility pop
