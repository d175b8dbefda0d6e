// SPDX-License-Identifier: Apache-2.0
// A call that a candidate has looked at: either the reason why it does not support the call, or a launch that holds all
// that running needs (Config, kernels, Params, grid). Selection, explain(), the AOT list, warm-up and the launch read
// this one value.
#pragma once
#include <concepts>
#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace flashinfer::op {

/// Why a candidate does not support a call, as a sentence for users: "head_dim is 96, but must be 64, 128 or 256".
struct Unsupported {
  std::string why;
};

/// What prepare() returns, always as a prvalue: it is built where the caller keeps it and never moves. A launch of up
/// to kInline bytes is stored in place, so that the usual call allocates nothing; a larger one is on the heap.
///   if (!kernel.fn) return op::Unsupported{kernel.why_not};
///   return [fn = kernel.fn, p] { ops::run_rows(fn, p, p.rows, p.rows_per_task); };
/// The launch may refer to the block, which outlives it, and to nothing else that prepare() had on its stack.
class Prepared {
 public:
  static constexpr size_t kInline = 768;

  Prepared(Unsupported unsupported) : why_not_(std::move(unsupported.why)) {}
  template <class F>
    requires(std::invocable<F&> && !std::same_as<std::remove_cvref_t<F>, Prepared>)
  Prepared(F&& launch) {
    using Launch = std::remove_cvref_t<F>;
    if constexpr (sizeof(Launch) <= kInline && alignof(Launch) <= alignof(std::max_align_t)) {
      new (storage_) Launch(std::forward<F>(launch));
      run_ = [](void* p) { (*static_cast<Launch*>(p))(); };
      if constexpr (!std::is_trivially_destructible_v<Launch>)
        destroy_ = [](void* p) { static_cast<Launch*>(p)->~Launch(); };
    } else {
      new (storage_) std::unique_ptr<Launch>(std::make_unique<Launch>(std::forward<F>(launch)));
      run_ = [](void* p) { (**static_cast<std::unique_ptr<Launch>*>(p))(); };
      destroy_ = [](void* p) { static_cast<std::unique_ptr<Launch>*>(p)->~unique_ptr(); };
    }
  }
  ~Prepared() {
    if (destroy_) destroy_(storage_);
  }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  bool supported() const { return run_ != nullptr; }
  /// Empty when supported.
  std::string& why_not() { return why_not_; }
  /// Launches; more than once is allowed (a plan may keep what it prepared).
  void run() { run_(storage_); }

 private:
  void (*run_)(void*) = nullptr;
  void (*destroy_)(void*) = nullptr;
  std::string why_not_;
  alignas(std::max_align_t) std::byte storage_[kInline];
};

}  // namespace flashinfer::op

#pragma GCC visibility pop
