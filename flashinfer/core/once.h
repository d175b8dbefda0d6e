// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <mutex>

namespace flashinfer {

/// A value made at its first use and never destroyed, as a local static is, but for fork(): a child forked while
/// another thread makes it makes its own, where a static would have it wait for a thread that it does not have (libc's
/// once, below call_once, knows of fork).
template <class T>
class Once {
 public:
  constexpr Once() = default;
  template <class F>
  T& get(F&& make) {
    if (T* made = value_.load(std::memory_order_acquire)) return *made;
    std::call_once(once_, [&] { value_.store(new T(make()), std::memory_order_release); });
    return *value_.load(std::memory_order_acquire);
  }

 private:
  std::once_flag once_;
  std::atomic<T*> value_{nullptr};
};

}  // namespace flashinfer
