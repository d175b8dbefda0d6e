// SPDX-License-Identifier: Apache-2.0
// Parts of one piece of scratch memory, so that a layout is written once: its constructor takes the parts of a piece,
// and over no memory gives their total size. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/int_math.h"

namespace flashinfer {

class ScratchParts {
 public:
  explicit ScratchParts(void* base) : base_(reinterpret_cast<uintptr_t>(base)) {}
  /// The next n values (of void: bytes), at a multiple of 64 bytes of the piece.
  template <class T>
  void take(T*& part, int64_t n) {
    part = static_cast<T*>(next(n * static_cast<int64_t>(sizeof(T))));
  }
  void take(void*& part, int64_t bytes) { part = next(bytes); }
  int64_t bytes() const { return bytes_; }

 private:
  void* next(int64_t bytes) {
    const uintptr_t at = base_ + static_cast<uintptr_t>(bytes_);
    bytes_ += round_up(bytes, 64);
    return reinterpret_cast<void*>(at);
  }
  uintptr_t base_;
  int64_t bytes_ = 0;
};

}  // namespace flashinfer
