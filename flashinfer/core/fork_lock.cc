// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/fork_lock.h"

#include <pthread.h>

#include <cstddef>

namespace flashinfer {
namespace {

constexpr size_t kCount = static_cast<size_t>(ForkLock::kCount);
struct alignas(64) Padded {
  std::mutex mutex;
};
constinit Padded g_locks[kCount];

void take_all() {
  for (size_t i = 0; i < kCount; ++i) g_locks[i].mutex.lock();
}
void release_all() {
  for (size_t i = kCount; i-- > 0;) g_locks[i].mutex.unlock();
}
// Registered when the library is loaded, so before its parts register their own handlers, which find the mutexes free.
[[maybe_unused]] const int registered = pthread_atfork(take_all, release_all, release_all);

}  // namespace

std::mutex& fork_lock(ForkLock which) { return g_locks[static_cast<size_t>(which)].mutex; }

}  // namespace flashinfer
