// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <mutex>

namespace flashinfer {

/// Fork-safe lazy initialisation of a value that is never destroyed. A local static could deadlock in a child forked
/// while another thread initialises it; here the child initialises its own value (libc's once, below call_once, handles
/// fork).
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
