// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/context.h"

#include <atomic>
#include <exception>
#include <utility>

#include "flashinfer/core/once.h"

namespace flashinfer {
namespace {

thread_local const Context* t_context = nullptr;
thread_local bool t_in_task = false;  // this thread is inside a parallel task: nested parallel calls run inline

/// One parallel call. On whichever threads its tasks run, they see the caller's context, and an exception is rethrown
/// in the caller.
struct ParallelCall {
  void (*task)(void*, int64_t);
  void* arg;
  const Context* context;
  std::atomic<bool> failed{false};
  std::exception_ptr error = nullptr;  // written by the one thread that set `failed`

  void operator()(int64_t index) noexcept {
    if (failed.load(std::memory_order_relaxed)) return;
    const Context* const context_before = std::exchange(t_context, context);
    const bool in_task_before = std::exchange(t_in_task, true);
    try {
      task(arg, index);
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
    t_context = context_before;
    t_in_task = in_task_before;
  }
};

}  // namespace

const Context& Context::current() {
  if (t_context) return *t_context;
  static constinit Once<const Context> context;  // never destroyed: static destructors may still call
  return context.get([] { return Context(); });
}

ContextScope::ContextScope(const Context& c) : previous_(std::exchange(t_context, &c)) {}
ContextScope::~ContextScope() { t_context = previous_; }

namespace detail {

void parallel_run(int64_t n, void (*task)(void*, int64_t), void* arg) {
  if (n <= 0) return;
  const Context& context = Context::current();
  const Executor& executor = context.executor;
  if (n == 1 || executor.threads <= 1 || executor.run == nullptr || t_in_task) {
    for (int64_t i = 0; i < n; ++i) task(arg, i);
    return;
  }
  ParallelCall call{task, arg, &context};
  executor.run(executor.self, n, [](void* c, int64_t i) { (*static_cast<ParallelCall*>(c))(i); }, &call);
  if (call.failed.load(std::memory_order_relaxed)) std::rethrow_exception(call.error);
}

}  // namespace detail
}  // namespace flashinfer
