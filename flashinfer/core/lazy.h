// SPDX-License-Identifier: Apache-2.0
// An object that its first use in the process fills, such as a library opened at run time.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace flashinfer {

/// Declared constinit and static. No T is ever destroyed: exit handlers and references to forgotten ones use it.
template <class T, class Mutex = std::mutex>
class Lazy {
 public:
  template <class... A>
  constexpr explicit Lazy(A... mutex) : mutex_(mutex...) {}

  /// The object. The first call fills it with open(T&), which runs once at a time; when it throws, the next call runs
  /// it again.
  template <class Open>
  const T& get(Open open) {
    if (const T* t = opened_.load(std::memory_order_acquire)) return *t;
    const std::lock_guard lock(mutex_);
    if (const T* t = opened_.load(std::memory_order_relaxed)) return *t;
    auto t = std::make_unique<T>();
    open(*t);
    if (!all_) all_ = new std::vector<std::unique_ptr<const T>>;
    all_->push_back(std::move(t));
    opened_.store(all_->back().get(), std::memory_order_release);
    return *all_->back();
  }
  /// The next get() fills a new object; references to the old one stay valid. For tests.
  void forget() { opened_.store(nullptr, std::memory_order_release); }

 private:
  Mutex mutex_;
  std::atomic<const T*> opened_{nullptr};
  std::vector<std::unique_ptr<const T>>* all_ = nullptr;
};

}  // namespace flashinfer
