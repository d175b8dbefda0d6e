// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "flashinfer/core/context.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/fork_mutex.h"
#include "flashinfer/core/once.h"

namespace flashinfer {
namespace {

constexpr int64_t kMaxRound = int64_t{1} << 30;  // tasks are counted in 32 bits; more go in rounds
// Idle workers spin this long. The gaps between the calls of a decode step are shorter (1-20 us, a sampling step 50
// us); afterwards the cores are free for others.
constexpr auto kSpin = std::chrono::microseconds(100);
constexpr auto kSpinWithoutYield = std::chrono::microseconds(20);

inline void cpu_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Polls until ready() or `limit` has passed. After 20 us it yields the core to other runnable threads (another
/// library's OpenMP workers, a descheduled worker of ours) at every check of the clock.
template <class Ready>
bool poll(std::chrono::microseconds limit, Ready&& ready) {
  if (ready()) return true;
  if (limit.count() == 0) return false;
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    for (int i = 0; i < 32; ++i) {
      if (ready()) return true;
      cpu_pause();
    }
    const auto elapsed = std::chrono::steady_clock::now() - start;
    if (elapsed > limit) return false;
    if (elapsed > kSpinWithoutYield) std::this_thread::yield();
  }
}

/// Signals are for the host program's threads, but a kernel's faults are delivered to the thread that caused them.
class BlockSignals {
 public:
  BlockSignals() {
    sigset_t set;
    sigfillset(&set);
    for (const int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) sigdelset(&set, s);
    pthread_sigmask(SIG_SETMASK, &set, &before_);
  }
  ~BlockSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

// `state` holds the number of the call (high half) and the number of its unclaimed tasks (low half). A worker claims by
// compare-and-swap, so a late one can neither take a task of a finished call nor lose one of the next; the caller waits
// for claimed tasks only, never for a worker that is still asleep. The job's fields are read after a claim and written
// after all claimed tasks are reported in `done`: no lock, and nothing for the caller to reset.
struct ThreadPool::Workers {
  explicit Workers(int threads)
      : threads(threads), spin(threads <= usable_cpus() ? kSpin : std::chrono::microseconds(0)) {}

  const int threads;
  const std::chrono::microseconds spin;  // more threads than CPUs: spinning would only delay the busy ones
  std::vector<std::thread> started;
  const std::unique_ptr<std::atomic<bool>[]> asleep{
      new std::atomic<bool>[static_cast<size_t>(threads)] {}};  // by place in `started`

  alignas(64) std::atomic<bool> taken{false};  // a caller uses the workers
  Task task = nullptr;
  void* arg = nullptr;
  int64_t first = 0;
  uint32_t n = 0;
  alignas(64) std::atomic<uint64_t> state{0};
  alignas(64) std::atomic<int32_t> done{0};
  std::atomic<bool> caller_sleeps{false};
  alignas(64) std::atomic<int32_t> sleepers{0};
  std::atomic<int32_t> wake{0};
  std::atomic<bool> stop{false};

  static uint32_t unclaimed(uint64_t s) { return static_cast<uint32_t>(s); }

  /// Claims and runs tasks until none is left; returns their number. Many tasks are claimed in shrinking runs (one
  /// atomic operation each), the last ones singly, so that unequal tasks still end together.
  uint32_t work() {
    uint32_t count = 0;
    uint64_t s = state.load(std::memory_order_relaxed);
    while (unclaimed(s) > 0) {
      const uint32_t take = std::max(1u, unclaimed(s) / (4 * static_cast<uint32_t>(threads)));
      if (!state.compare_exchange_weak(s, s - take, std::memory_order_acq_rel, std::memory_order_relaxed)) continue;
      const int64_t begin = first + (n - unclaimed(s));
      for (uint32_t i = 0; i < take; ++i) task(arg, begin + i);
      count += take;
      s = state.load(std::memory_order_relaxed);
    }
    return count;
  }

  void report(uint32_t count) {
    done.fetch_add(static_cast<int32_t>(count), std::memory_order_seq_cst);
    if (caller_sleeps.load(std::memory_order_seq_cst)) done.notify_all();
  }

  void worker(size_t index) {
    const auto has_work = [this] {
      return unclaimed(state.load(std::memory_order_relaxed)) > 0 || stop.load(std::memory_order_relaxed);
    };
    while (!stop.load(std::memory_order_relaxed)) {
      if (const uint32_t count = work(); count > 0) report(count);
      if (poll(spin, has_work)) continue;
      const int32_t seen = wake.load(std::memory_order_seq_cst);
      asleep[index].store(true, std::memory_order_relaxed);
      sleepers.fetch_add(1, std::memory_order_seq_cst);
      if (unclaimed(state.load(std::memory_order_seq_cst)) == 0 && !stop.load(std::memory_order_seq_cst))
        wake.wait(seen);
      sleepers.fetch_sub(1, std::memory_order_seq_cst);
      asleep[index].store(false, std::memory_order_relaxed);
    }
  }

  void start() {
    const BlockSignals block;
    try {
      for (int i = 1; i < threads; ++i) started.emplace_back([this, i] { worker(static_cast<size_t>(i - 1)); });
    } catch (const std::system_error&) {
      // The process may not create more threads: those that started, and the caller, do the work.
    }
  }

  /// A guest's idle CPUs are halted, which Linux takes for "not available": it queues woken threads on the waker's own
  /// CPU, where they wait for 4 to 8 ms behind the caller whom they should help (2 CPUs under KVM: calls of 90 us took
  /// 160 us that long). So sleepers may not wake on this CPU; they stay off it until they are woken the next time.
  /// About 1 us, of the 30 to 75 of a wake-up.
  void keep_sleepers_off_this_cpu() {
#if defined(__linux__)
    constexpr int kMost = 16;  // with more CPUs a few threads on the wrong one matter little, and calls add up
    cpu_set_t others;
    const int cpu = sched_getcpu();
    if (cpu < 0 || threads > kMost || sched_getaffinity(0, sizeof others, &others) != 0 || CPU_COUNT(&others) < threads)
      return;
    CPU_CLR(cpu, &others);
    for (size_t i = 0; i < started.size(); ++i)
      if (asleep[i].load(std::memory_order_relaxed))
        pthread_setaffinity_np(started[i].native_handle(), sizeof others, &others);
#endif
  }

  void wake_sleepers(uint32_t useful) {
    const int32_t sleeping = sleepers.load(std::memory_order_seq_cst);
    if (sleeping == 0 || useful == 0) return;
    keep_sleepers_off_this_cpu();
    wake.fetch_add(1, std::memory_order_seq_cst);
    if (static_cast<uint32_t>(sleeping) <= useful) return wake.notify_all();
    for (uint32_t i = 0; i < useful; ++i) wake.notify_one();
  }

  /// One round of at most kMaxRound tasks; the caller holds `taken`.
  void round(int64_t begin, uint32_t tasks, Task f, void* a) {
    task = f;
    arg = a;
    first = begin;
    n = tasks;
    done.store(0, std::memory_order_relaxed);
    const uint64_t call = (state.load(std::memory_order_relaxed) >> 32) + 1;
    state.store(call << 32 | tasks, std::memory_order_seq_cst);
    wake_sleepers(tasks - 1);
    const auto others = static_cast<int32_t>(tasks - work());
    const auto finished = [&] { return done.load(std::memory_order_acquire) == others; };
    if (poll(kSpin, finished)) return;
    caller_sleeps.store(true, std::memory_order_seq_cst);
    for (int32_t d; (d = done.load(std::memory_order_seq_cst)) != others;) done.wait(d);
    caller_sleeps.store(false, std::memory_order_relaxed);
  }

  ~Workers() {
    stop.store(true, std::memory_order_seq_cst);
    wake.fetch_add(1, std::memory_order_seq_cst);
    wake.notify_all();
    for (std::thread& t : started) t.join();
  }
};

constinit ForkMutex g_workers_mutex(ForkLayer::kCore, 1);

/// Registry of pools for fork(): a child has none of the parent's threads, so each pool gets new workers there. The old
/// ones are abandoned (their threads cannot be joined).
struct ForkGuard {
  ForkMutex& mutex = g_workers_mutex;
  std::vector<ThreadPool*> pools;

  static ForkGuard& instance() {
    static constinit Once<ForkGuard> guard;
    return guard.get([] {
      pthread_atfork(nullptr, nullptr, [] {
        for (ThreadPool* p : instance().pools) p->workers_.store(new ThreadPool::Workers(p->threads_));
      });
      return ForkGuard();
    });
  }
};

ThreadPool::ThreadPool(int threads) : threads_(std::max(threads, 1)), workers_(new Workers(threads_)) {
  ForkGuard& guard = ForkGuard::instance();
  const std::lock_guard lock(guard.mutex);
  guard.pools.push_back(this);
}

ThreadPool::~ThreadPool() {
  ForkGuard& guard = ForkGuard::instance();
  {
    const std::lock_guard lock(guard.mutex);
    std::erase(guard.pools, this);
  }
  delete workers_.load();
}

void ThreadPool::run(int64_t n, Task task, void* arg) {
  Workers& w = *workers_.load(std::memory_order_relaxed);
  int64_t i = 0;
  if (threads_ == 1) {
    for (; i < n; ++i) task(arg, i);
    return;
  }
  while (i < n && (w.taken.load(std::memory_order_relaxed) || w.taken.exchange(true, std::memory_order_acquire)))
    task(arg, i++);
  if (i >= n) return;
  if (w.started.empty()) w.start();
  for (; i < n; i += kMaxRound) w.round(i, static_cast<uint32_t>(std::min(n - i, kMaxRound)), task, arg);
  w.taken.store(false, std::memory_order_release);
}

// ---- the executors of context.h ----

namespace {
Executor executor_of(ThreadPool& pool) {
  return {&pool, pool.threads(), [](void* self, int64_t n, Executor::Task task, void* arg) {
            static_cast<ThreadPool*>(self)->run(n, task, arg);
          }};
}
}  // namespace

namespace {
std::atomic<const Executor*> g_default{nullptr};
}
void set_default_executor(const Executor& e) {
  g_default.store(new Executor(e), std::memory_order_release);
}  // kept: contexts copy it

Executor own_executor() {
  static constinit Once<ThreadPool> pool;  // never destroyed: static destructors may still call
  return executor_of(pool.get([] {
    const int64_t wanted = env::integer("FLASHINFER_NUM_THREADS");
    return ThreadPool(wanted > 0 ? static_cast<int>(std::min<int64_t>(wanted, 1024)) : usable_cpus());
  }));
}

Executor default_executor() {
  const Executor* given = g_default.load(std::memory_order_acquire);
  return given ? *given : own_executor();
}

std::shared_ptr<const Executor> make_thread_pool(int threads) {
  struct Owned {
    explicit Owned(int threads) : pool(threads), executor(executor_of(pool)) {}
    ThreadPool pool;
    Executor executor;
  };
  auto owned = std::make_shared<Owned>(threads);
  return std::shared_ptr<const Executor>(owned, &owned->executor);
}

}  // namespace flashinfer
