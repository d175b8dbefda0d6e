// SPDX-License-Identifier: Apache-2.0
// Fibers with our own context switch: 5 to 9 ns where ucontext takes 220 (two system calls for the signal mask).
#pragma once
#include <cstddef>
#include <cstdint>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace flashinfer::emu {

/// Saved state of a suspended fiber or of the scheduler.
struct Context {
#if defined(__x86_64__)
  void* sp = nullptr;
#else
  ucontext_t at{};
#endif
};

/// Suspends `from`, resumes `to`.
void switch_context(Context& from, Context& to);
/// The next switch to `context` calls `entry` on the stack [bottom, top).
void prepare_context(Context& context, char* bottom, char* top, void (*entry)());

/// Stacks with a guard page each, in one mapping, kept for later runs.
class Stacks {
 public:
  static constexpr size_t kBytes = 256 * 1024, kGuard = 4096;
  ~Stacks();
  /// Allocates stacks for `n` fibers; throws RuntimeError when out of memory.
  void reserve(size_t n);
  char* bottom(size_t i) const { return base_ + i * (kBytes + kGuard) + kGuard; }
  /// Staggered: stacks whose tops have equal page offsets would compete for the same few sets of L1.
  char* top(size_t i) const { return bottom(i) + kBytes - (i * 5 % 64) * 64; }
  uintptr_t begin() const { return reinterpret_cast<uintptr_t>(base_); }
  size_t bytes() const { return count_ * (kBytes + kGuard); }

 private:
  char* base_ = nullptr;
  size_t count_ = 0;
};

}  // namespace flashinfer::emu
