// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/openmp.h"
#include "flashinfer/core/once.h"
#include "flashinfer/core/thread_pool.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace flashinfer {
namespace {

/// The entry that compilers call for `#pragma omp parallel`; part of the ABI of libgomp, and of LLVM's and Intel's
/// runtimes too.
using Parallel = void (*)(void (*fn)(void*), void* data, unsigned num_threads, unsigned flags);

struct Entries {
  Parallel parallel = nullptr;
  int (*max_threads)() = nullptr;
};

/// GOMP_parallel and omp_get_max_threads of a runtime that is already loaded; loads none.
Entries find_entries() {
  Entries found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* result) {
        const char* slash = std::strrchr(info->dlpi_name, '/');
        const char* file = slash ? slash + 1 : info->dlpi_name;
        bool runtime = false;
        for (const char* name : {"libgomp", "libomp", "libiomp5"})
          runtime = runtime || std::strncmp(file, name, std::strlen(name)) == 0;
        if (!runtime) return 0;
        if (void* library = ::dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD)) {
          Entries& entries = *static_cast<Entries*>(result);  // the handle is kept: the runtime stays loaded
          entries.parallel = reinterpret_cast<Parallel>(::dlsym(library, "GOMP_parallel"));
          entries.max_threads = reinterpret_cast<int (*)()>(::dlsym(library, "omp_get_max_threads"));
        }
        return static_cast<Entries*>(result)->parallel != nullptr ? 1 : 0;
      },
      &found);
  return found;
}

std::atomic<bool> g_forked{false};
Entries g_entries;  // of available()

struct Job {
  Executor::Task task;
  void* arg;
  int64_t n;
  int64_t threads;
  std::atomic<int64_t> next{0};
};

/// Body of each thread: claims tasks in shrinking runs, so that unequal tasks end together.
void work(void* data) {
  Job& job = *static_cast<Job*>(data);
  int64_t at = job.next.load(std::memory_order_relaxed);
  while (at < job.n) {
    const int64_t take = std::max<int64_t>(1, (job.n - at) / (4 * job.threads));
    if (!job.next.compare_exchange_weak(at, at + take, std::memory_order_relaxed)) continue;
    for (int64_t i = at; i < at + take; ++i) job.task(job.arg, i);
    at = job.next.load(std::memory_order_relaxed);
  }
}

void run(void* self, int64_t n, Executor::Task task, void* arg) {
  if (g_forked.load(std::memory_order_relaxed)) {
    const Executor own = own_executor();
    return own.run(own.self, n, task, arg);
  }
  const int64_t threads = std::min<int64_t>(reinterpret_cast<intptr_t>(self), n);
  if (threads <= 1) {
    for (int64_t i = 0; i < n; ++i) task(arg, i);
    return;
  }
  Job job{task, arg, n, threads};
  g_entries.parallel(work, &job, static_cast<unsigned>(threads), 0);
}

bool available() {
  static constinit Once<bool> found;
  return found.get([] {
    g_entries = find_entries();
    if (g_entries.parallel) pthread_atfork(nullptr, nullptr, [] { g_forked.store(true, std::memory_order_relaxed); });
    return g_entries.parallel != nullptr;
  });
}

}  // namespace

Executor openmp_executor(int threads) {
  Executor e;
  if (!available()) return e;
  e.self = reinterpret_cast<void*>(static_cast<intptr_t>(std::max(threads, 1)));
  e.threads = std::max(threads, 1);
  e.run = run;
  return e;
}

int openmp_threads() { return available() && g_entries.max_threads ? g_entries.max_threads() : 0; }

bool is_openmp(const Executor& e) { return e.run == run; }

}  // namespace flashinfer
