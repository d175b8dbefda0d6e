// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <new>

namespace flashinfer::ops {

/// `bytes` of memory of this thread for one task, aligned to 64, kept for the next; a second call gives the same
/// memory.
inline void* thread_scratch(int64_t bytes) {
  struct Free {
    void operator()(void* p) const { ::operator delete(p, std::align_val_t{64}); }
  };
  static thread_local std::unique_ptr<void, Free> memory;
  static thread_local int64_t size = 0;
  if (size < bytes) {
    memory.reset();
    size = 0;
    memory.reset(::operator new(static_cast<size_t>(bytes), std::align_val_t{64}));
    size = bytes;
  }
  return memory.get();
}

}  // namespace flashinfer::ops
