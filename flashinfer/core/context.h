// SPDX-License-Identifier: Apache-2.0
// Execution context of a call: device, stream, threads, memory. One context is current per thread; the default one is
// for programs that do not use contexts.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "flashinfer/core/tensor.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// Runs `n` independent tasks, on any threads, and returns when all are done. An engine passes its own pool this way.
/// Results do not depend on the number of threads.
struct Executor {
  using Task = void (*)(void* arg, int64_t index);
  void* self = nullptr;
  int threads = 1;  // number of tasks that can usefully run at once
  void (*run)(void* self, int64_t n, Task task, void* arg) = nullptr;
};
/// The library's pool: FLASHINFER_NUM_THREADS threads (default: the cores this process may use), started at the first
/// parallel call. Workers spin briefly between calls, then sleep. A forked child gets a new pool.
Executor default_executor();
/// A separate pool with `threads` threads (for tests and engines); lives as long as the pointer.
std::shared_ptr<const Executor> make_thread_pool(int threads);

/// Memory for results and scratch. The default keeps freed blocks in size classes for reuse (decode steps repeat their
/// sizes).
struct Allocator {
  void* self = nullptr;
  void* (*allocate)(void* self, size_t bytes, size_t alignment, Device device) = nullptr;
  void (*release)(void* self, void* p, size_t bytes, Device device) = nullptr;
};
Allocator default_allocator();

struct Context {
  Device device = kCpu;
  void* stream = nullptr;  // CUstream
  Executor executor = default_executor();
  Allocator allocator = default_allocator();

  /// The calling thread's context.
  static const Context& current();
};

/// Makes `c` current in this thread until the end of the scope; `c` must outlive it.
class ContextScope {
 public:
  explicit ContextScope(const Context& c);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  const Context* previous_;
};

/// Runs f(i) for i in [0, n) on the current context's executor. The first exception thrown by a task is rethrown here.
template <class F>
void parallel_for(int64_t n, F&& f);

namespace detail {
void parallel_run(int64_t n, void (*task)(void*, int64_t), void* arg);
}
template <class F>
void parallel_for(int64_t n, F&& f) {
  detail::parallel_run(
      n, [](void* p, int64_t i) { (*static_cast<std::remove_reference_t<F>*>(p))(i); },
      const_cast<void*>(static_cast<const void*>(&f)));
}

}  // namespace flashinfer

#pragma GCC visibility pop
