// SPDX-License-Identifier: Apache-2.0
// Mutexes that are held over fork(). A child has only the thread that forked: a mutex that another one held would stay
// locked in it for ever, and what that one was changing half-changed. So fork() waits for all of these and takes them,
// and both processes release them.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>

#pragma GCC visibility push(default)

namespace flashinfer {

/// Whose a mutex is. Fork takes those of an earlier layer first.
enum class ForkLayer : uint8_t { kRecord, kFfi, kJit, kOps, kOp, kCore };

/// Declared by its owner, constinit and static: `constinit ForkMutex g_mutex(ForkLayer::kOps);`. It lives as long as
/// the process. At its first use it joins those that fork() takes: before, no thread can hold it.
///
/// Who holds one takes only later ones: of a later layer, or of the same layer with a larger `place`. Two of one layer
/// and place are never held together. Python is not called under any of them: the thread that forks may hold the
/// interpreter's lock. A layer with several declares them in its locks.h, in their order.
class alignas(64) ForkMutex {
 public:
  constexpr explicit ForkMutex(ForkLayer layer, int place = 0) : layer_(layer), place_(place) {}
  ForkMutex(const ForkMutex&) = delete;
  ForkMutex& operator=(const ForkMutex&) = delete;

  void lock() { get().lock(); }
  void unlock() { mutex_.unlock(); }
  /// For what needs a std::mutex (a condition variable). It has joined when this returns.
  std::mutex& get() {
    if (!joined_.load(std::memory_order_acquire)) [[unlikely]]
      join();
    return mutex_;
  }

 private:
  friend struct ForkHandlers;
  void join();
  bool before(const ForkMutex& other) const {
    return layer_ != other.layer_ ? layer_ < other.layer_ : place_ < other.place_;
  }

  std::mutex mutex_;
  std::atomic<bool> joined_{false};
  ForkLayer layer_;
  int place_;
  ForkMutex* next_ = nullptr;   // of those that joined, in the order in which they are taken
  ForkMutex* taken_ = nullptr;  // of those that the fork under way takes
};

}  // namespace flashinfer

#pragma GCC visibility pop
