// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/fork_mutex.h"

#include <pthread.h>

namespace flashinfer {
namespace {
constinit std::mutex g_forking;  // taken first: one fork at a time
constinit std::mutex g_list;     // taken last: guards next_ and g_first
constinit ForkMutex* g_first = nullptr;
constinit ForkMutex* g_taken = nullptr;  // under g_forking
}  // namespace

void ForkMutex::join() {
  const std::lock_guard lock(g_list);
  if (joined_.load(std::memory_order_relaxed)) return;
  ForkMutex** at = &g_first;
  while (*at && !before(**at)) at = &(*at)->next_;
  next_ = *at;
  *at = this;
  joined_.store(true, std::memory_order_release);
}

struct ForkHandlers {
  static void take_all() {
    g_forking.lock();
    g_list.lock();
    for (;;) {
      g_taken = g_first;
      for (ForkMutex* m = g_first; m; m = m->next_) m->taken_ = m->next_;
      g_list.unlock();  // who holds one of them may be about to join another
      for (ForkMutex* m = g_taken; m; m = m->taken_) m->mutex_.lock();
      g_list.lock();  // none joins from here on
      if (same()) return;
      release_taken();
    }
  }
  static void release_all() {
    release_taken();
    g_list.unlock();
    g_forking.unlock();
  }

 private:
  static bool same() {
    if (g_taken != g_first) return false;
    for (const ForkMutex* m = g_taken; m; m = m->taken_)
      if (m->taken_ != m->next_) return false;
    return true;
  }
  static void release_taken() {
    for (ForkMutex* m = g_taken; m; m = m->taken_) m->mutex_.unlock();
  }
};

namespace {
// Registered when the library is loaded, so before its parts register their own handlers, which find the mutexes free.
[[maybe_unused]] const int registered =
    pthread_atfork(ForkHandlers::take_all, ForkHandlers::release_all, ForkHandlers::release_all);
}  // namespace

}  // namespace flashinfer
