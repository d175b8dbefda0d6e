// SPDX-License-Identifier: Apache-2.0
// Global memory as it was before a run, so that a launch can be run more than once.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_set>

#include "flashinfer/kernels/emu/emu.h"

namespace flashinfer::emu {

class Undo {
 public:
  /// Before an access to [at, at + bytes) of `range`: pieces that it touches for the first time are copied.
  void keep(const Range& range, uintptr_t at, size_t bytes) {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(range.begin);
    for (size_t i = (at - begin) / kPiece; i <= (at + bytes - 1 - begin) / kPiece; ++i)
      if (const uintptr_t piece = begin + i * kPiece; recent_[piece / kPiece % kRecent] != piece)
        keep_piece(range, piece);
  }
  /// More was touched than is kept: nothing can be taken back any more.
  bool full() const { return bytes_ > kMostBytes; }
  /// Memory, and which of its bytes were written, become what was kept, and what was kept what they were.
  void exchange();

 private:
  static constexpr size_t kPiece = 4096, kRecent = 64, kMostBytes = size_t{256} << 20;
  /// Pieces are of one range, and begin at a multiple of kPiece of its bytes.
  struct Kept {
    char* begin;
    size_t bytes;
    uint8_t* written;  // null: not tracked
    std::unique_ptr<char[]> copy, bits;
  };
  void keep_piece(const Range& range, uintptr_t piece);
  std::unordered_set<uintptr_t> known_;
  std::deque<Kept> pieces_;
  size_t bytes_ = 0;
  uintptr_t recent_[kRecent] = {};  // pieces that are kept
};

}  // namespace flashinfer::emu
